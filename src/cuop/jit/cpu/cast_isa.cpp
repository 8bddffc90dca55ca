// Conversions of blocks between dtypes. float16 and bfloat16 become float32, in which programs
// compute; every real dtype becomes one of them.
#include <algorithm>

#include "cuop/backend/cpu/half_convert.h"
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

/// In loops with one conversion each, which become vectors (floats: see kernels/narrow.h).
template <class From, class To>
void round_block(void* out, const void* in, const void*, const void*, int64_t n) {
  const backend::HalfConverter& converter = backend::half_converter<isa::CUOP_ISA>();
  const auto* x = static_cast<const From*>(in);
  auto* y = static_cast<To*>(out);
  if constexpr (std::is_same_v<From, float>) {
    converter.from_float(x, y, n);
  } else {
    constexpr int64_t kPiece = 256;
    float piece[kPiece];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t count = std::min(kPiece, n - i);
      if constexpr (is_narrow_type<From>) {
        converter.to_float(x + i, piece, count);
      } else {
        promise_whole_vectors(count);
        for (int64_t k = 0; k < count; ++k) piece[k] = detail::float_rounding_as(x[i + k]);
      }
      converter.from_float(piece, y + i, count);
    }
  }
}

#if defined(__AVX2__) && !defined(__AVX512DQ__)
constexpr bool converts_in_halves = true;
#else
constexpr bool converts_in_halves = false;  // one by one, or by an instruction
#endif

template <class From>
void double_block(void* out, const void* in, const void*, const void*, int64_t n) {
  promise_whole_vectors(n);
  const auto* x = static_cast<const From*>(in);
  auto* y = static_cast<double*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    y[i] = detail::joined(detail::high_half(x[i]), detail::low_half(x[i]));
  }
}

template <class From, class To>
constexpr BlockKernel cast_kernel() {
  if constexpr (std::is_same_v<From, To>) {
    return cast_block<From, To>;
  } else if constexpr (is_bool_type<From>) {
    return cast_kernel<uint8_t, To>();  // bools are 0 or 1
  } else if constexpr (is_narrow_type<To>) {
    return round_block<From, To>;
  } else if constexpr (converts_in_halves && is_integer_type<From> && sizeof(From) == 8 &&
                       std::is_same_v<To, double>) {
    return double_block<From>;
  } else if constexpr (is_float_type<From> && is_integer_type<To> && sizeof(To) < 8 &&
                       (sizeof(From) == 4 || math::has_fast_fma)) {  // SSE2 gains with floats alone
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
  add_cast<Half, BFloat16>(table);
  add_cast<BFloat16, Half>(table);
}

}  // namespace cuop::jit
