// A matrix times a vector on a GPU.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/execution.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/arrivals.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/memory/current.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "cuop/ops/matmul/product_arguments_internal.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kAccessBytes = 16;
/// By columns, as many rows as make neighbouring threads worth their while.
constexpr int64_t kMinColumnRows = 8;
/// Short rows. Of float32, in whole accesses, cuBLAS takes twice as long up to kShortPacks of them.
constexpr int64_t kShortBytes = 64;
constexpr int64_t kShortPacks = 16;
constexpr int64_t kShortColumns = 8;

/// The columns of one access, up to 16 bytes of neighbours in the matrix and in the vector.
int width_of(const jit::MatrixVector& v, int64_t columns, DType dtype) {
  if (v.a_column != 1 || v.x_step != 1) return 1;
  const auto addresses = reinterpret_cast<uintptr_t>(v.a) | reinterpret_cast<uintptr_t>(v.x);
  return jit::access_width(itemsize(dtype), jit::access_bytes(kAccessBytes), addresses,
                           columns | v.a_row | v.a_batch | v.x_batch);
}

bool is_short(const MatrixVectorPlan& plan) {
  const MatrixVectorForm& form = plan.form;
  const int64_t steps = plan.arguments.steps;
  if (form.is_column) return steps <= kShortColumns;
  if (form.dtype == DType::kFloat32 && form.width > 1) return steps <= kShortPacks;
  return plan.arguments.a_column == 1 && steps * form.width * itemsize(form.dtype) <= kShortBytes;
}

}  // namespace

jit::TextKernel matrix_vector_kernel(const MatrixVectorForm& form) {
  return {"gemv", "cuop/ops/matmul/matrix_vector.cuh", "MatrixVector",
          jit::instance("multiply_vector", form.dtype, form.width, form.conjugate_a, form.team,
                        form.is_column, form.is_wide ? "uint64_t" : "uint32_t"),
          jit::kReduceThreads};
}

std::optional<MatrixVectorPlan> plan_matrix_vector(const Product& p) {
  const auto nest = batch_nest(p);
  if (nest.count > 1) return std::nullopt;
  const auto& batch = nest.inner();
  MatrixVectorPlan plan;
  jit::MatrixVector& v = plan.arguments;
  const int r = p.c.ndim() - 2;
  const int64_t columns = p.a.shape(r + 1);
  const DType dtype = p.c.dtype();
  v.a = p.a.data();
  v.x = p.b.data();
  v.y = p.c.data();
  v.height = p.a.shape(r);
  v.rows = batch.size * v.height;
  v.a_row = p.a.strides()[r];
  v.a_column = p.a.strides()[r + 1];
  v.x_step = p.b.strides()[r];
  v.y_step = p.c.strides()[r];
  v.y_batch = batch.strides[0];
  v.a_batch = batch.strides[1];
  v.x_batch = batch.strides[2];
  v.alpha = coefficient_of(p.alpha, dtype);
  v.beta = coefficient_of(p.beta, dtype);
  MatrixVectorForm& form = plan.form;
  form.dtype = dtype;
  form.conjugate_a = p.conjugate_a;
  form.is_column =
      v.rows >= kMinColumnRows && v.a_column != 1 && std::abs(v.a_row) < std::abs(v.a_column);
  form.width = form.is_column ? 1 : width_of(v, columns, dtype);
  v.steps = columns / form.width;
  const int team = backend::execution_options().kernel.shape.team;
  const int64_t reach = (std::abs(v.a_column) * (columns - 1) + 1) * itemsize(dtype);
  form.team = team != 0 ? team : jit::team_of_row(v.rows, v.steps, form.is_column, reach);
  // Room for the counters to go beyond the last row and step.
  form.is_wide = std::max(v.rows, v.steps) > std::numeric_limits<int32_t>::max();
  return plan;
}

bool matrix_vector_cuda(const Product& p, VectorRows rows) {
  std::optional<MatrixVectorPlan> plan = plan_matrix_vector(p);
  if (!plan || (rows == VectorRows::kShort && !is_short(*plan))) return false;
  jit::MatrixVector& v = plan->arguments;
  const Device device = p.c.device();
  const Stream stream = current_stream(device);
  const jit::RowSharing sharing =
      jit::share_rows(v.rows, v.steps, plan->form.team,
                      backend::cuda::cuda_runtime(device).properties().multiprocessors);
  v.piece = sharing.piece;
  std::shared_ptr<Storage> partials;
  std::optional<jit::Arrivals> arrivals;  // both until the launch
  if (sharing.pieces > 1) {
    partials = memory::allocate_storage(v.rows * sharing.pieces * kVectorStateBytes, device);
    v.partials = partials->data();
    v.arrivals = arrivals.emplace(sharing.groups, stream).data();
  }
  jit::launch_text(matrix_vector_kernel(plan->form), device, sharing.groups, &v, sharing.pieces);
  return true;
}

}  // namespace cuop::kernels
