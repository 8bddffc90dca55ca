// A matrix in rows over four ranks that are threads: a product in parts, an exact sum, and the plan
// that was followed. Under mpirun, cuop::dist::world() takes the place of run_ranks.
#include <cmath>
#include <iostream>

#include "cuop/cuop.h"

int main() {
  namespace dist = cuop::dist;
  cuop::manual_seed(0);
  const cuop::Tensor a = cuop::random({300, 40}, cuop::DType::kFloat64);
  const cuop::Tensor expected = cuop::matmul(cuop::transpose(a), a);
  double error = -1.0;

  // [ranks]
  dist::run_ranks(4, [&](const dist::CommunicatorPtr& comm) {
    const dist::Sharding rows(dist::Mesh::line(comm->size()), dist::split_dim(2, 0));
    const cuop::Tensor given = comm->rank() == 0 ? a : cuop::Tensor();
    const dist::DistTensor x = dist::redistribute(dist::DistTensor::from_root(comm, given), rows);

    const dist::DistTensor gram = dist::matmul(dist::transpose(x), x);  // 40 x 40, in parts
    const std::string plan = dist::last_report().plan.explain();
    const dist::DistTensor total = dist::reduce(gram, {.mode = cuop::SumMode::kExact});
    const cuop::Tensor whole = dist::gather(gram);  // on rank 0, undefined elsewhere
    // [ranks]

    if (comm->rank() != 0) return;
    error = cuop::max(cuop::abs(cuop::subtract(whole, expected))).data<double>()[0];
    std::cout << plan << "sum of all elements: " << total.local().data<double>()[0] << '\n';
  });
  std::cout << "largest difference from one product: " << error << '\n';
  return error >= 0.0 && error < 1e-11 ? 0 : 1;
}
