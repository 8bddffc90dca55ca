// The elementwise operations on float32 and float64.
#include "cuop/jit/cpu/block_loops.h"

namespace cuop::jit {

template <>
void add_float_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_op_kernels<float>(table, ElementwiseOps{});
  add_op_kernels<double>(table, ElementwiseOps{});
}

template <>
void add_gathering_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_gathering_kernels_of<float>(table, ElementwiseOps{});
  add_gathering_kernels_of<double>(table, ElementwiseOps{});
}

template <>
void add_unpermuted_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_unpermuted_kernels_of<float>(table, ElementwiseOps{});
}

}  // namespace cuop::jit
