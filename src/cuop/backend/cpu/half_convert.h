// float16 and bfloat16 blocks to float32 and back at the processor's speed.
#pragma once

#include <cstdint>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/half.h"

namespace cuop::backend {

/// The loops of one instruction set.
struct HalfConverter {
  void (*half_to_float)(const Half*, float*, int64_t);
  void (*bfloat16_to_float)(const BFloat16*, float*, int64_t);
  void (*float_to_half)(const float*, Half*, int64_t);
  void (*float_to_bfloat16)(const float*, BFloat16*, int64_t);

  void to_float(const Half* from, float* to, int64_t n) const { half_to_float(from, to, n); }
  void to_float(const BFloat16* from, float* to, int64_t n) const {
    bfloat16_to_float(from, to, n);
  }
  void from_float(const float* from, Half* to, int64_t n) const { float_to_half(from, to, n); }
  void from_float(const float* from, BFloat16* to, int64_t n) const {
    float_to_bfloat16(from, to, n);
  }
};
template <class Level>
const HalfConverter& half_converter();

/// Contiguous arrays of `count` elements of Half or BFloat16; rounds to nearest even as core/half.h
/// does.
template <class T>
void to_float(const T* from, float* to, int64_t count) {
  isa::choose([&]<class Level>(Level) { half_converter<Level>().to_float(from, to, count); });
}
template <class T>
void from_float(const float* from, T* to, int64_t count) {
  isa::choose([&]<class Level>(Level) { half_converter<Level>().from_float(from, to, count); });
}

}  // namespace cuop::backend
