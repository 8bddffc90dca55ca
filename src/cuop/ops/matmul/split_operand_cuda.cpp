// Splitting the elements of float32 matrices into parts: room for them, and the kernel's launch.
#include <utility>

#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop::kernels {

namespace {

/// How the kernel is compiled for an operand, and how many blocks it has.
struct SplitForm {
  bool is_along_depth;
  int groups;
  int64_t blocks;
};

SplitForm form_of(const SplitStack& split) {
  // Where lines are neighbours in memory, four groups read whole rows of 128 bytes together, if
  // there are enough of them.
  constexpr int64_t kBusy = 2048;
  const int64_t matrices = split.parts.shape(0), groups = split.lines.groups;
  const bool is_along_depth = split.stack.depth_step == 1;
  const int together = !is_along_depth && groups * matrices >= kBusy ? 4 : 1;
  return {is_along_depth, together, matrices * divide_up(groups, int64_t{together})};
}

jit::SplitOperand argument_of(const SplitStack& split) {
  const MatrixStack& s = split.stack;
  return {static_cast<const float*>(s.data),
          s.lines,
          s.depth,
          s.line_step,
          s.depth_step,
          s.matrix_step,
          split.lines};
}

}  // namespace

MatrixStack MatrixStack::of(const Tensor& t, int64_t offset, int64_t matrices, int64_t step) {
  const int r = t.ndim() - 2;
  return {static_cast<float*>(const_cast<void*>(t.data())) + offset,
          t.shape(r),
          t.shape(r + 1),
          t.strides()[r],
          t.strides()[r + 1],
          matrices,
          matrices == 1 ? 0 : step,
          t.device()};
}

MatrixStack MatrixStack::turned() const {
  MatrixStack other = *this;
  std::swap(other.lines, other.depth);
  std::swap(other.line_step, other.depth_step);
  return other;
}

namespace {

/// How one matrix is laid out in parts.
struct PartsLayout {
  int64_t groups, bytes, lines;
  PartsLayout(int64_t given, int64_t depth)
      // Tiles of either side find whole groups.
      : groups(round_up(given, int64_t{jit::kSplitRows}) / jit::kSplitGroup),
        bytes(divide_up(depth, int64_t{jit::kSplitDepth}) * groups * jit::kSplitGroupBytes),
        lines(groups * jit::kSplitGroup) {}
};

}  // namespace

int64_t parts_bytes(int64_t lines, int64_t depth, int64_t matrices) {
  const PartsLayout one(lines, depth);
  return matrices * (one.bytes + one.lines * itemsize(DType::kInt32));
}

SplitStack room_for_parts(const MatrixStack& stack) {
  SplitStack split;
  split.stack = stack;
  const auto [groups, bytes, lines] = PartsLayout(stack.lines, stack.depth);
  const int64_t matrices = stack.matrix_step == 0 ? 1 : stack.matrices;
  split.parts = empty({matrices, bytes}, DType::kUInt8, stack.device);
  split.exponents = empty({matrices, lines}, DType::kInt32, stack.device);
  split.lines = {split.parts.data<uint8_t>(), split.exponents.data<int32_t>(), groups,
                 matrices == 1 ? 0 : bytes, matrices == 1 ? 0 : lines};
  return split;
}

jit::TextKernel split_operands_kernel(bool along_a, int groups_a, bool along_b, int groups_b) {
  return {"gemm split", "cuop/ops/matmul/split_operand.cuh", "SplitOperands",
          jit::instance("split_operands", along_a, groups_a, along_b, groups_b),
          jit::kSplitThreads};
}

namespace {

/// One launch for `first` and, where it has blocks, `second`.
void launch_split(const SplitStack& first, const SplitStack& second, int64_t blocks_of_second) {
  const SplitForm a = form_of(first), b = form_of(second);
  const jit::SplitOperands operands{argument_of(first), argument_of(second), a.blocks};
  jit::launch_text(split_operands_kernel(a.is_along_depth, a.groups, b.is_along_depth, b.groups),
                   first.stack.device, a.blocks + blocks_of_second, &operands);
}

}  // namespace

void split_stacks(const SplitStack& first, const SplitStack& second) {
  launch_split(first, second, form_of(second).blocks);
}

void split_stack(const SplitStack& one) { launch_split(one, one, 0); }

}  // namespace cuop::kernels
