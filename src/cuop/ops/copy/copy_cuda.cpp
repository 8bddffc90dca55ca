#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/trace.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/copy/row_copies_cuda.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {
/// Shorter axes leave most of a tile empty.
constexpr int64_t kLeastEdge = 8;
/// Shorter rows keep a copy engine from the speed of its link, and above 8 calls of it a kernel is
/// started once instead.
constexpr RowLimits kByCopyEngine{4096, 0, 8};

/// The bytes of a contiguous tensor.
Tensor bytes_of(const Tensor& tensor) {
  const int64_t begin = tensor.layout().offset * itemsize(tensor.dtype());
  return {tensor.storage(), {{tensor.nbytes()}, {1}, begin}, DType::kUInt8};
}

/// Copies long rows by the copy engine. False, and nothing is done, where rows are short or strides
/// are not those of rows.
bool copy_long_rows(const Tensor& dst, const Tensor& src) {
  const auto copies = row_copies(dst, src, kByCopyEngine);
  const Stream stream = current_stream(dst.device());
  for (const backend::cuda::RowCopy& copy : copies) backend::cuda::copy_rows(copy, stream);
  return !copies.empty();
}

}  // namespace

void strided_copy_cuda(const Tensor& dst, const Tensor& src) {
  if (dst.dtype() == src.dtype() && dst.is_contiguous() && src.is_contiguous()) {
    return backend::runtime(dst.device())
        .copy(dst.data(), src.data(), src.nbytes(), current_stream(dst.device()));
  }
  if (dst.dtype() == src.dtype()) {
    if (const auto copy = plan_transposed_copy(dst, src)) {
      return jit::launch_text(transposed_copy_kernel(itemsize(dst.dtype())), dst.device(),
                              copy->tiles, &*copy);
    }
  }
  jit::TensorExpr expr;
  expr.write(expr.leaf(src), dst);
}

void copy_beside_work_cuda(const Tensor& dst, const Tensor& src) {
  trace::Span span("copy", "op");
  if (dst.size() == 0) return;
  span.add_bytes(src.nbytes() + dst.nbytes());
  if (!copy_long_rows(dst, src)) strided_copy_cuda(dst, src);
}

bool copy_few_from_peer_cuda(const Tensor& dst, const Tensor& src) {
  constexpr int64_t kMost = 64 << 10;  // between two H200s states of sums come 5 to 12 us sooner
  if (backend::execution_options().is_beside_work || dst.nbytes() > kMost) return false;
  trace::Span span("copy", "op");
  span.add_bytes(src.nbytes() + dst.nbytes());
  const Tensor source = bytes_of(src);
  jit::TensorExpr expr;
  expr.write(expr.leaf(source), bytes_of(dst));
  return true;
}

std::optional<jit::TransposedCopy> plan_transposed_copy(const Tensor& to, const Tensor& from) {
  const LoopNest<2> nest = make_loop_nest<2>(to.shape(), {&to.strides(), &from.strides()});
  const auto& inner = nest.inner();
  if (inner.strides[0] != 1 || inner.strides[1] == 1 || inner.size < kLeastEdge) {
    return std::nullopt;
  }
  jit::TransposedCopy copy{};
  jit::Places<2>& batch = copy.batch;
  for (int i = 0; i + 1 < nest.count; ++i) {
    const auto& axis = nest.axes[static_cast<size_t>(i)];
    if (copy.columns == 0 && axis.strides[1] == 1 && axis.size >= kLeastEdge) {
      copy.columns = axis.size;
      copy.column_stride = axis.strides[0];
      continue;
    }
    batch.sizes[batch.axes] = axis.size;
    batch.strides[0][batch.axes] = axis.strides[1];
    batch.strides[1][batch.axes++] = axis.strides[0];
  }
  if (copy.columns == 0) return std::nullopt;
  const int64_t tile = transpose_tile(itemsize(to.dtype()));
  copy.to = to.data();
  copy.from = from.data();
  copy.rows = inner.size;
  copy.row_stride = inner.strides[1];
  copy.down = divide_up(copy.rows, tile);
  copy.across = divide_up(copy.columns, tile);
  copy.tiles = copy.down * copy.across;
  for (int i = 0; i < batch.axes; ++i) copy.tiles *= batch.sizes[i];
  return copy;
}

int transpose_tile(int64_t itemsize) { return itemsize <= 4 ? 64 : 32; }

jit::TextKernel transposed_copy_kernel(int64_t itemsize) {
  return {"transpose", "cuop/ops/copy/copy.cuh", "TransposedCopy",
          jit::instance("transposed_copy", jit::word_type(itemsize), transpose_tile(itemsize)),
          jit::kTransposeThreads};
}

}  // namespace cuop::kernels
