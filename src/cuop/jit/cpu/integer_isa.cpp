// The elementwise operations on bool and the integers, and those on the sign of 16-bit floats,
// which need no more than their bits.
#include "cuop/jit/cpu/block_loops.h"

namespace cuop::jit {
namespace {

/// x & And ^ Xor.
template <uint16_t And, uint16_t Xor>
void run_bits(void* out, const void* first, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* a = static_cast<const uint16_t*>(first);
  auto* result = static_cast<uint16_t*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) result[i] = static_cast<uint16_t>((a[i] & And) ^ Xor);
}

}  // namespace

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
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    table.ops[size_t{op_code<fn::Abs>}][static_cast<size_t>(dtype)] = run_bits<0x7fff, 0>;
    table.ops[size_t{op_code<fn::Negative>}][static_cast<size_t>(dtype)] = run_bits<0xffff, 0x8000>;
  }
}

}  // namespace cuop::jit
