#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/jit/tensor_expr.h"
#include "cuop/ops/create/create_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kThreadBytes = 16;

template <class Sequence>
void fill_sequence(SequenceKind kind, const Tensor& out, const Sequence& sequence) {
  if (out.size() == 0) return;
  const jit::SequenceFill<Sequence> arguments{out.data(), out.size(), sequence};
  const int64_t block_bytes = kThreads * kThreadBytes;
  jit::launch_text(fill_sequence_kernel(out.dtype(), kind), out.device(),
                   divide_up(out.nbytes(), block_bytes), &arguments);
}

}  // namespace

jit::TextKernel fill_sequence_kernel(DType dtype, SequenceKind kind) {
  constexpr struct {
    const char *title, *arguments, *type;
  } kNames[] = {{"arange", "WholeFill", "WholeSequence"},
                {"linspace", "RealFill", "RealSequence"},
                {"logspace", "PowerFill", "PowerSequence"}};
  const auto& names = kNames[static_cast<size_t>(kind)];
  return {names.title, "cuop/ops/create/create.cuh", names.arguments,
          jit::instance("fill_sequence", dtype, names.type), kThreads};
}

void fill_whole_cuda(const Tensor& out, const jit::WholeSequence& sequence) {
  fill_sequence(SequenceKind::kWhole, out, sequence);
}

void fill_real_cuda(const Tensor& out, const jit::RealSequence& sequence) {
  fill_sequence(SequenceKind::kReal, out, sequence);
}

void fill_powers_cuda(const Tensor& out, const jit::PowerSequence& sequence) {
  fill_sequence(SequenceKind::kPowers, out, sequence);
}

void fill_strided_cuda(const Tensor& out, const Scalar& value) {
  jit::TensorExpr expr;
  expr.write(expr.number(value, out.dtype()), out);
}

}  // namespace cuop::kernels
