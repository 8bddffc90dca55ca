#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace cuop::backend {

namespace {

void half_to_float(const Half* from, float* to, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
  }
#endif
  for (; i < count; ++i) to[i] = detail::half_bits_to_float(from[i].bits);
}

/// to[i] gets the lower half of bits(from[i]), a number from -2^15 to 2^15: SSE2 has no other way
/// to make vectors of halves, and GCC does not find this one.
template <class T, class Bits>
[[gnu::always_inline]] inline void round_to(const float* from, T* to, int64_t count, Bits&& bits) {
  int64_t i = 0;
#if defined(__SSE2__) && !defined(__AVX__)
  constexpr int kPiece = 128;
  for (; i + kPiece <= count; i += kPiece) {
    int32_t wide[kPiece];
    for (int k = 0; k < kPiece; ++k) wide[k] = bits(std::bit_cast<int32_t>(from[i + k]));
    for (int k = 0; k < kPiece; k += 8) {
      const auto* halves = reinterpret_cast<const __m128i*>(wide + k);
      const __m128i packed = _mm_packs_epi32(_mm_loadu_si128(halves), _mm_loadu_si128(halves + 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i + k), packed);
    }
  }
#endif
  for (; i < count; ++i) to[i].bits = static_cast<uint16_t>(bits(std::bit_cast<int32_t>(from[i])));
}

/// As detail::float_to_half_bits, in choices among signed integers, which SSE2 can compare.
int32_t half_bits(int32_t bits) {
  const int32_t magnitude = bits & 0x7fffffff, sign = (bits >> 31) & ~0x7fff;
  const int32_t nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  const int32_t finite = magnitude < 0x47800000 ? magnitude : 0x47800000;
  const int32_t normal = (finite - 0x38000000 + 0xfff + ((finite >> 13) & 1)) >> 13;
  const int32_t small = std::bit_cast<int32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const int32_t number = magnitude < 0x38800000 ? small : normal;
  return sign | (magnitude > 0x7f800000 ? nan : number);
}

void float_to_half(const float* from, Half* to, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
  }
#endif
  round_to(from + i, to + i, count - i, half_bits);
}

void bfloat16_to_float(const BFloat16* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = detail::bfloat16_bits_to_float(from[i].bits);
}

void float_to_bfloat16(const float* from, BFloat16* to, int64_t count) {
  round_to(from, to, count, [](int32_t bits) {
    const auto odd = static_cast<uint32_t>((bits >> 16) & 1);
    const auto rounded = static_cast<int32_t>(static_cast<uint32_t>(bits) + 0x7fffu + odd) >> 16;
    return (bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16) | 0x40 : rounded;
  });
}

constexpr HalfConverter kConverter{half_to_float, bfloat16_to_float, float_to_half,
                                   float_to_bfloat16};

}  // namespace

template <>
const HalfConverter& half_converter<isa::CUOP_ISA>() {
  return kConverter;
}

}  // namespace cuop::backend
