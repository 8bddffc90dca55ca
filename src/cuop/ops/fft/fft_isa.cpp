#include <utility>

#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/fft/fft_kernels.h"

namespace cuop::spectral {

namespace {

// std::complex is an array of two reals; on those the loops vectorise, on the class they do not.
template <class Real>
void multiply(const std::complex<Real>* a, const std::complex<Real>* b, int64_t count,
              std::complex<Real>* out) {
  const Real* x = reinterpret_cast<const Real*>(a);
  const Real* y = reinterpret_cast<const Real*>(b);
  Real* z = reinterpret_cast<Real*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const Real re = x[2 * i] * y[2 * i] - x[2 * i + 1] * y[2 * i + 1];
    const Real im = x[2 * i] * y[2 * i + 1] + x[2 * i + 1] * y[2 * i];
    z[2 * i] = re;
    z[2 * i + 1] = im;
  }
}

template <class Real>
void multiply_real(const Real* x, const std::complex<Real>* b, int64_t count,
                   std::complex<Real>* out) {
  const Real* y = reinterpret_cast<const Real*>(b);
  Real* z = reinterpret_cast<Real*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    z[2 * i] = x[i] * y[2 * i];
    z[2 * i + 1] = x[i] * y[2 * i + 1];
  }
}

#define CUOP_INLINE [[gnu::always_inline]] inline

/// A register of complex numbers, each a pair of lanes. Loops do not vectorise by themselves where
/// numbers are read backwards.
template <class Real, class = std::make_index_sequence<lanes::kRegisterBytes / sizeof(Real)>>
struct Pairs;
template <class Real, size_t... I>
struct Pairs<Real, std::index_sequence<I...>> {
  using Lanes = typename lanes::Vector<Real>::Register;
  static constexpr int64_t kNumbers = sizeof...(I) / 2;

  CUOP_INLINE static Lanes load(const Real* from) {
    Lanes x;
    __builtin_memcpy(&x, from, sizeof(x));
    return x;
  }
  CUOP_INLINE static void store(const Lanes& x, Real* to) { __builtin_memcpy(to, &x, sizeof(x)); }
  CUOP_INLINE static Lanes real_parts(const Lanes& x) {
    return __builtin_shufflevector(x, x, static_cast<int>(I & ~size_t{1})...);
  }
  CUOP_INLINE static Lanes imaginary_parts(const Lanes& x) {
    return __builtin_shufflevector(x, x, static_cast<int>(I | 1)...);
  }
  CUOP_INLINE static Lanes parts_swapped(const Lanes& x) {
    return __builtin_shufflevector(x, x, static_cast<int>(I ^ 1)...);
  }
  /// The numbers in reverse order and conjugated.
  CUOP_INLINE static Lanes mirrored(const Lanes& x) {
    const Lanes sign{(I % 2 == 0 ? Real{1} : Real{-1})...};
    return sign * __builtin_shufflevector(x, x, static_cast<int>(sizeof...(I) - 1 - (I ^ 1))...);
  }
  CUOP_INLINE static Lanes product(const Lanes& a, const Lanes& b) {
    const Lanes sign{(I % 2 == 0 ? Real{-1} : Real{1})...};
    return real_parts(a) * b + sign * imaginary_parts(a) * parts_swapped(b);
  }
};

template <class Real>
void mirrored_butterflies(const std::complex<Real>* z, const std::complex<Real>* b, int64_t m,
                          Real scale, int64_t first, int64_t last, std::complex<Real>* out) {
  using P = Pairs<Real>;
  const Real* x = reinterpret_cast<const Real*>(z);
  const Real* y = reinterpret_cast<const Real*>(b);
  Real* to = reinterpret_cast<Real*>(out);
  int64_t k = first;
  for (; k + P::kNumbers <= last; k += P::kNumbers) {
    const int64_t j = m - k - P::kNumbers + 1;  // the first of their mirror images
    const auto low = P::load(x + 2 * k), high = P::mirrored(P::load(x + 2 * j));
    const auto even = scale * (low + high), odd = P::product(P::load(y + 2 * k), low - high);
    P::store(even + odd, to + 2 * k);
    P::store(P::mirrored(even - odd), to + 2 * j);
  }
  for (; k < last; ++k) {  // in the same order of operations
    const int64_t j = m - k;
    const Real even_re = scale * (x[2 * k] + x[2 * j]);
    const Real even_im = scale * (x[2 * k + 1] - x[2 * j + 1]);
    const Real re = x[2 * k] - x[2 * j], im = x[2 * k + 1] + x[2 * j + 1];
    const Real odd_re = y[2 * k] * re - y[2 * k + 1] * im;
    const Real odd_im = y[2 * k] * im + y[2 * k + 1] * re;
    to[2 * k] = even_re + odd_re;
    to[2 * k + 1] = even_im + odd_im;
    to[2 * j] = even_re - odd_re;
    to[2 * j + 1] = -(even_im - odd_im);
  }
}

#undef CUOP_INLINE

}  // namespace

template <class Level, class Real>
const ComplexLoops<Real>& complex_loops() {
  static constexpr ComplexLoops<Real> kLoops{&multiply<Real>, &multiply_real<Real>,
                                             &mirrored_butterflies<Real>};
  return kLoops;
}
template const ComplexLoops<float>& complex_loops<isa::CUOP_ISA, float>();
template const ComplexLoops<double>& complex_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::spectral
