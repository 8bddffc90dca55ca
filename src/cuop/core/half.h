// Storage types for the two 16-bit floats. Arithmetic happens in float32; conversion rounds to
// nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace cuop {

namespace detail {

/// IEEE binary16 bits to float32 (exact).
constexpr float half_bits_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  const uint32_t exponent = magnitude & 0x0f800000u;
  uint32_t wide = magnitude + 0x38000000u;
  if (exponent == 0x0f800000u) {
    wide += 0x38000000u;  // inf or NaN
  } else if (exponent == 0) {
    const float normal =
        std::bit_cast<float>(wide + 0x00800000u) - std::bit_cast<float>(0x38800000u);
    wide = std::bit_cast<uint32_t>(normal);
  }
  return std::bit_cast<float>(sign | wide);
}

/// float32 to IEEE binary16 bits, nearest even; NaN stays NaN, overflow becomes infinity.
constexpr uint16_t float_to_half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x47800000u) {  // overflow, inf, NaN
    const uint32_t payload =
        magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : 0x7c00u;
    return static_cast<uint16_t>(sign | payload);
  }
  if (magnitude < 0x38800000u) {  // subnormal or zero: let the float adder round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  magnitude += 0xc8000fffu + odd;
  return static_cast<uint16_t>(sign | (magnitude >> 13));
}

constexpr float bfloat16_bits_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

constexpr uint16_t float_to_bfloat16_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace detail

/// IEEE binary16.
struct Half {
  uint16_t bits = 0;
  constexpr Half() = default;
  constexpr explicit Half(float value) : bits(detail::float_to_half_bits(value)) {}
  constexpr operator float() const { return detail::half_bits_to_float(bits); }
};

/// The upper half of a float32: 8 exponent bits, 7 mantissa bits.
struct BFloat16 {
  uint16_t bits = 0;
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(detail::float_to_bfloat16_bits(value)) {}
  constexpr operator float() const { return detail::bfloat16_bits_to_float(bits); }
};

}  // namespace cuop
