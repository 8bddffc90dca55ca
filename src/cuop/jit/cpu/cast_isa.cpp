// Conversions of blocks between dtypes. float16 and bfloat16 become float32, in which programs
// compute; every real dtype becomes one of them.
#include "cuop/jit/cpu/block_loops.h"
#include "cuop/jit/kernels/conversion.h"

namespace cuop::jit {
namespace {

template <class From, class To>
void cast_block(void* out, const void* in, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* x = static_cast<const From*>(in);
  auto* y = static_cast<To*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = convert<To, From>(x[i]);
}

/// Floats between -2^31 and 2^31 become integers in instructions that every instruction set has for
/// vectors; a block with others is converted one by one.
template <class From, class To>
void narrow_block(void* out, const void* in, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* x = static_cast<const From*>(in);
  auto* y = static_cast<To*>(out);
  int outside = 0;
  for (int64_t i = 0; i < n; ++i) outside |= !(x[i] >= From(-0x1p31)) | !(x[i] < From(0x1p31));
  if (outside != 0) return cast_block<From, To>(out, in, nullptr, nullptr, n);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<To>(static_cast<int32_t>(x[i]));
}

/// In two loops of one width each, which become vectors where one loop does not.
template <class From, class To>
void round_block(void* out, const void* in, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* x = static_cast<const From*>(in);
  auto* y = static_cast<To*>(out);
  for (int64_t i = 0; i < n; i += kBlockMultiple) {
    double wide[kBlockMultiple];
    float rounded[kBlockMultiple];
    for (int k = 0; k < kBlockMultiple; ++k) wide[k] = detail::rounded_to<To>(x[i + k]);
    for (int k = 0; k < kBlockMultiple; ++k) rounded[k] = static_cast<float>(wide[k]);
    for (int k = 0; k < kBlockMultiple; ++k) y[i + k] = To(rounded[k]);
  }
}

template <class From, class To>
constexpr BlockKernel cast_kernel() {
  if constexpr (is_narrow_type<To> && std::is_same_v<From, double>) return round_block<From, To>;
  if constexpr (is_float_type<From> && is_integer_type<To> && sizeof(To) < 8) {
    return narrow_block<From, To>;
  } else {
    return cast_block<From, To>;
  }
}

template <class From, class To>
void add_cast(BlockTable& table) {
  if constexpr (!is_complex_type<From> || is_complex_type<To> || is_bool_type<To>) {
    table.casts[static_cast<size_t>(dtype_of<From>)][static_cast<size_t>(dtype_of<To>)] =
        cast_kernel<From, To>();
  }
}

template <class From, class... To>
void add_casts_from(BlockTable& table, TypeList<To...>) {
  (add_cast<From, To>(table), ...);
}

template <class... T>
void add_casts(BlockTable& table, TypeList<T...> types) {
  (add_casts_from<T>(table, types), ...);
}

template <class Narrow, class... From>
void add_casts_to(BlockTable& table, TypeList<From...>) {
  (add_cast<From, Narrow>(table), ...);
  add_cast<Narrow, Narrow>(table);
  add_cast<Narrow, float>(table);
}

using ComputeTypes = TypeList<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                              uint64_t, float, double, std::complex<float>, std::complex<double>>;

}  // namespace

template <>
void add_cast_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_casts(table, ComputeTypes{});
  add_casts_to<Half>(table, ComputeTypes{});
  add_casts_to<BFloat16>(table, ComputeTypes{});
}

}  // namespace cuop::jit
