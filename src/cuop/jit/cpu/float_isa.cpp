// The elementwise operations on float32 and float64.
#include "cuop/jit/cpu/block_loops.h"

namespace cuop::jit {

template <>
void add_float_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_op_kernels<float>(table, ElementwiseOps{});
  add_op_kernels<double>(table, ElementwiseOps{});
}

}  // namespace cuop::jit
