#include <algorithm>

#include "cuop/backend/cpu/isa.h"
#include "cuop/ops/lanes_internal.h"
#include "cuop/ops/stencil/stencil_kernels.h"

namespace cuop::kernels {

namespace {

/// A group of taps at once: the partial sum stays in a register.
template <int Taps, bool IsFirst, class T>
void add_group(const T* const* inputs, const T* weights, int64_t count, T* __restrict out) {
  const T* in[Taps];
  T weight[Taps];
  for (int n = 0; n < Taps; ++n) {
    in[n] = inputs[n];
    weight[n] = weights[n];
  }
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) {
    T sum = IsFirst ? weight[0] * in[0][j] : out[j] + weight[0] * in[0][j];
    for (int n = 1; n < Taps; ++n) sum += weight[n] * in[n][j];
    out[j] = sum;
  }
}

/// The parts side by side, so that the compiler sees plain loops over floats.
template <int Taps, bool IsFirst, class R>
void add_group(const std::complex<R>* const* inputs, const std::complex<R>* weights, int64_t count,
               std::complex<R>* __restrict out) {
  const R* in[Taps];
  R real[Taps], imag[Taps];
  for (int n = 0; n < Taps; ++n) {
    in[n] = reinterpret_cast<const R*>(inputs[n]);
    real[n] = weights[n].real();
    imag[n] = weights[n].imag();
  }
  R* const to = reinterpret_cast<R*>(out);
#pragma GCC ivdep
  for (int64_t j = 0; j < 2 * count; j += 2) {
    R re = real[0] * in[0][j] - imag[0] * in[0][j + 1];
    R im = real[0] * in[0][j + 1] + imag[0] * in[0][j];
    if constexpr (!IsFirst) {
      re = to[j] + re;
      im = to[j + 1] + im;
    }
    for (int n = 1; n < Taps; ++n) {
      re += real[n] * in[n][j] - imag[n] * in[n][j + 1];
      im += real[n] * in[n][j + 1] + imag[n] * in[n][j];
    }
    to[j] = re;
    to[j + 1] = im;
  }
}

template <class T>
void add_taps(const T* const* inputs, const T* weights, int64_t taps, int64_t count, T* out) {
  // Pieces that stay in the first-level cache while the groups follow each other.
  constexpr int64_t kPiece = 1024;
  if (taps == 0) std::fill(out, out + count, T{0});
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t length = std::min(kPiece, count - begin);
    for (int64_t n = 0; n < taps;) {
      const T* in[9];
      const auto group = [&](auto first_only, auto size) {
        constexpr int kSize = decltype(size)::value;
        for (int k = 0; k < kSize; ++k) in[k] = inputs[n + k] + begin;
        add_group<kSize, decltype(first_only)::value>(in, weights + n, length, out + begin);
        n += kSize;
      };
      const auto sized = [&](auto first_only) {
        const int64_t left = taps - n;
        if (left >= 9) {
          group(first_only, std::integral_constant<int, 9>{});
        } else if (left >= 5) {
          group(first_only, std::integral_constant<int, 5>{});
        } else if (left >= 3) {
          group(first_only, std::integral_constant<int, 3>{});
        } else {
          group(first_only, std::integral_constant<int, 1>{});
        }
      };
      if (n == 0) {
        sized(std::true_type{});
      } else {
        sized(std::false_type{});
      }
    }
  }
}

template <class T>
double jacobi(const T* north, const T* south, const T* center, const T* rhs, T dx2, int64_t count,
              T* __restrict out) {
#pragma GCC ivdep
  for (int64_t j = 0; j < count; ++j) {
    out[j] = (((north[j] + south[j]) + (center[j - 1] + center[j + 1])) - dx2 * rhs[j]) * T(0.25);
  }
  return sum_in_lanes(count, [&](int64_t j) {
    const double update = static_cast<double>(out[j] - center[j]);
    return update * update;
  });
}

template <class T>
double residual(const T* north, const T* south, const T* center, const T* rhs, double scale,
                int64_t count) {
  return sum_in_lanes(count, [&](int64_t j) {
    const double sum = (static_cast<double>(north[j]) + static_cast<double>(south[j])) +
                       (static_cast<double>(center[j - 1]) + static_cast<double>(center[j + 1]));
    const double laplacian = (sum - 4.0 * static_cast<double>(center[j])) * scale;
    const double rest = static_cast<double>(rhs[j]) - laplacian;
    return rest * rest;
  });
}

}  // namespace

template <class Level, class T>
WeightedSum<T> weighted_sum() {
  return &add_taps<T>;
}
template WeightedSum<float> weighted_sum<isa::CUOP_ISA, float>();
template WeightedSum<double> weighted_sum<isa::CUOP_ISA, double>();
template WeightedSum<std::complex<float>> weighted_sum<isa::CUOP_ISA, std::complex<float>>();
template WeightedSum<std::complex<double>> weighted_sum<isa::CUOP_ISA, std::complex<double>>();

template <class Level, class T>
const JacobiLoops<T>& jacobi_loops() {
  static constexpr JacobiLoops<T> kLoops{&jacobi<T>, &residual<T>};
  return kLoops;
}
template const JacobiLoops<float>& jacobi_loops<isa::CUOP_ISA, float>();
template const JacobiLoops<double>& jacobi_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::kernels
