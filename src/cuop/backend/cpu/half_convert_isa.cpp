#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"

#ifdef __F16C__
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

void float_to_half(const float* from, Half* to, int64_t count) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
  }
#endif
  for (; i < count; ++i) to[i].bits = detail::float_to_half_bits(from[i]);
}

void bfloat16_to_float(const BFloat16* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = detail::bfloat16_bits_to_float(from[i].bits);
}

void float_to_bfloat16(const float* from, BFloat16* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x0040u;
    to[i].bits = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

constexpr HalfConverter kConverter{half_to_float, bfloat16_to_float, float_to_half,
                                   float_to_bfloat16};

}  // namespace

template <>
const HalfConverter& half_converter<isa::CUOP_ISA>() {
  return kConverter;
}

}  // namespace cuop::backend
