#include "cuop/core/text.h"
#include "cuop/jit/expr.h"
#include "cuop/jit/run.h"
#include "cuop/ops/create/create_cuda_internal.h"
#include "cuop/ops/create/create_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kThreadBytes = 16;

template <class Sequence>
void fill_sequence(const Tensor& out, const Sequence& sequence) {
  if (out.size() == 0) return;
  const jit::SequenceFill<Sequence> arguments{out.data(), out.size(), sequence};
  constexpr bool kIsWhole = std::is_same_v<Sequence, jit::WholeSequence>;
  const int64_t block_bytes = kThreads * kThreadBytes;
  jit::launch_text(fill_sequence_kernel(out.dtype(), kIsWhole), out.device(),
                   (out.nbytes() + block_bytes - 1) / block_bytes, &arguments);
}

}  // namespace

jit::TextKernel fill_sequence_kernel(DType dtype, bool is_whole) {
  return {is_whole ? "arange" : "linspace", "cuop/ops/create/sequence.cuh",
          is_whole ? "WholeFill" : "RealFill",
          cat("fill_sequence<", jit::text_type(dtype),
              is_whole ? ", WholeSequence>" : ", RealSequence>"),
          kThreads};
}

void fill_whole_cuda(const Tensor& out, const jit::WholeSequence& sequence) {
  fill_sequence(out, sequence);
}

void fill_real_cuda(const Tensor& out, const jit::RealSequence& sequence) {
  fill_sequence(out, sequence);
}

void fill_strided_cuda(const Tensor& out, const Scalar& value) {
  jit::Expr expr;
  expr.add_output(expr.add_parameter(out.dtype()));
  const Tensor* const output = &out;
  jit::run(expr, {out.shape(), 0, {}, {&value, 1}, {&output, 1}});
}

}  // namespace cuop::kernels
