// Tensors whose elements say where they come from, to see what moved where.
#pragma once

#include <algorithm>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/box.h"
#include "cuop/dist/dist_tensor.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/ordered_faults.h"
#include "tests/sanitized.h"

namespace cuop::dist::rank_test {

/// Whether the tensors of these tests lie on GPUs: two programs run the same tests, and each has
/// its own.
extern const bool kRanksOnGpus;

inline Device home() { return kRanksOnGpus ? backend::current_device() : kCpu; }

/// For a rank whose thread began without a device: a GPU of its own, where there are as many.
inline void take_own_device(int rank) {
  if (!kRanksOnGpus) return;
  backend::set_current_device({DeviceType::kCuda, rank % backend::device_count(DeviceType::kCuda)});
}

/// Simulated GPUs and sanitizers take ten times as long: there some cases are left out.
inline bool is_slow() {
  return test::kIsSanitized || (kRanksOnGpus && test::find_fault_order() != nullptr);
}

/// Every how manyth of many cases is tried.
inline int case_step() { return is_slow() ? test::kSlowCaseStep : 1; }

/// 0, 1, 2, ... in row-major order.
inline Tensor counting(const Shape& shape, DType dtype = DType::kFloat64) {
  return to_device(reshape(arange(0, element_count(shape), 1, dtype), shape), home());
}

/// The values in row-major order.
inline std::vector<double> values(const Tensor& tensor) {
  const Tensor flat = contiguous(cast(to_device(tensor, kCpu), DType::kFloat64));
  const double* data = flat.data<double>();
  return {data, data + flat.size()};
}

/// `whole` laid out by slicing on every rank, without communication.
inline DistTensor laid_out(const CommunicatorPtr& comm, const Tensor& whole,
                           const Sharding& sharding) {
  const Box box = sharding.owner_box(whole.shape(), comm->rank());
  Tensor local;
  if (!box.is_void) {
    local = whole;
    for (int axis = 0; axis < box.ndim(); ++axis) {
      local = slice(local, axis, box.low[axis], box.high[axis]);
    }
  }
  return DistTensor(comm, sharding, whole.shape(), whole.dtype(), local, home());
}

/// Shardings of a matrix worth trying on `ranks` ranks.
inline std::vector<Sharding> matrix_shardings(int ranks) {
  const Grid2d grid = compute_2d_grid(ranks);
  const Mesh line = Mesh::line(ranks);
  const Mesh mesh({grid.rows, grid.cols}, {"a", "b"});
  const int busy = std::max(1, ranks - 1);
  const Mesh with_idle = Mesh(Dims{busy}, {"r"}, ranks - busy);
  using Axes = Spec::Axes;
  return {Sharding(line, split_dim(2, 0)),
          Sharding(line, split_dim(2, 1)),
          Sharding(mesh, P(Axes{"b"}, Axes{"a"})),
          Sharding(mesh, P(Axes{}, Axes{"a"})),
          Sharding(mesh, P(Axes{"b", "a"})),
          Sharding(with_idle, split_dim(2, 0)),
          Sharding::replicated(with_idle),
          Sharding::replicated(line),
          Sharding::on_rank(line, 0),
          Sharding::on_rank(line, ranks - 1)};
}

}  // namespace cuop::dist::rank_test
