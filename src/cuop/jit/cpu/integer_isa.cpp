// The elementwise operations on bool and the integers.
#include "cuop/jit/cpu/block_loops.h"

namespace cuop::jit {

template <>
void add_integer_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_op_kernels<bool>(table, ElementwiseOps{});
  add_op_kernels<int8_t>(table, ElementwiseOps{});
  add_op_kernels<int16_t>(table, ElementwiseOps{});
  add_op_kernels<int32_t>(table, ElementwiseOps{});
  add_op_kernels<int64_t>(table, ElementwiseOps{});
  add_op_kernels<uint8_t>(table, ElementwiseOps{});
  add_op_kernels<uint16_t>(table, ElementwiseOps{});
  add_op_kernels<uint32_t>(table, ElementwiseOps{});
  add_op_kernels<uint64_t>(table, ElementwiseOps{});
}

}  // namespace cuop::jit
