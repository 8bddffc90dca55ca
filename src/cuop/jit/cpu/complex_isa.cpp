// The elementwise operations on complex64 and complex128.
#include "cuop/jit/cpu/block_loops.h"

namespace cuop::jit {

template <>
void add_complex_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_op_kernels<std::complex<float>>(table, ElementwiseOps{});
  add_op_kernels<std::complex<double>>(table, ElementwiseOps{});
}

}  // namespace cuop::jit
