#include <cstring>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/conv/conv_kernels.h"

namespace cuop::kernels {

namespace {

constexpr int kVectorBytes = lanes::kRegisterBytes;

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
  static constexpr int64_t kCount = kVectorBytes / static_cast<int64_t>(sizeof(T));
};

/// a * b + c in one rounding where the processor has it; the multiplication and the addition of
/// whole vectors may not be contracted by the compiler, so it is asked for.
template <class Vector, class T>
inline Vector multiply_add(Vector a, T b, Vector c) {
#ifdef __FMA__
  if constexpr (std::is_floating_point_v<T>) {
    Vector result;
    constexpr int kCount = sizeof(Vector) / sizeof(T);
    for (int i = 0; i < kCount; ++i) {
      if constexpr (sizeof(T) == 4) {
        result[i] = __builtin_fmaf(a[i], b, c[i]);
      } else {
        result[i] = __builtin_fma(a[i], b, c[i]);
      }
    }
    return result;
  }
#endif
  return a * b + c;
}

template <class T, int Rows, int Vectors>
void block(const DirectCall<T>& call, int64_t first, int64_t count) {
  using Vector = typename Lanes<T>::Vector;
  constexpr int64_t kLanes = Lanes<T>::kCount;
  Vector sums[Rows][Vectors];
  for (int r = 0; r < Rows; ++r) {
    for (int v = 0; v < Vectors; ++v) sums[r][v] = Vector{} + call.bias[r];
  }
  const T* const packed = call.packed + first;
  for (int64_t t = 0; t < call.taps; ++t) {
    const auto* const source = reinterpret_cast<const Vector*>(packed + call.offsets[t]);
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const Vector x = source[v];
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) sums[r][v] = multiply_add(x, call.weights[r][t], sums[r][v]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    if (count == Vectors * kLanes) {
      for (int v = 0; v < Vectors; ++v) {
        *reinterpret_cast<Vector*>(call.out[r] + first + v * kLanes) = sums[r][v];
      }
    } else {
      std::memcpy(call.out[r] + first, sums[r], static_cast<size_t>(count) * sizeof(T));
    }
  }
}

template <class T, int Rows>
void rows(const DirectCall<T>& call) {
  constexpr int kWide = Rows == 1 ? 4 : 2;
  constexpr int64_t kLanes = Lanes<T>::kCount;
  int64_t i = 0;
  for (; i + kWide * kLanes <= call.width; i += kWide * kLanes) {
    block<T, Rows, kWide>(call, i, kWide * kLanes);
  }
  for (; i < call.width; i += kLanes) {
    block<T, Rows, 1>(call, i, call.width - i < kLanes ? call.width - i : kLanes);
  }
}

template <class T>
void run(const DirectCall<T>& call) {
  if (call.rows == 1) {
    rows<T, 1>(call);
  } else {
    rows<T, kDirectRows>(call);
  }
}

constexpr DirectKernels kKernels{run<uint8_t>,  run<uint16_t>, run<uint32_t>,
                                 run<uint64_t>, run<float>,    run<double>};

}  // namespace

template <>
const DirectKernels& direct_kernels<isa::CUOP_ISA>() {
  return kKernels;
}

}  // namespace cuop::kernels
