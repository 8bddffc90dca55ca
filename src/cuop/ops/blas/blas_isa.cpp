#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/blas/blas_kernels.h"

namespace cuop::kernels {

namespace {

/// At least 32 bits, so that small types are not promoted to a signed int that overflows.
template <class T>
using Wide = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

template <class T>
T plus(T a, T b) {
  return static_cast<T>(a + b);
}

template <class T>
void scal(int64_t count, T alpha, const T* x, T* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = times(alpha, x[i]);
}

template <class T>
void axpy(int64_t count, T alpha, const T* x, const T* y, T* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = plus(times(alpha, x[i]), y[i]);
}

using V = lanes::Vector<double>;
constexpr int kLanes = lanes::kCount<double>;
/// Independent sums hide the adder's latency and fill the vector registers.
constexpr int kAbreast = 4;
constexpr int kSums = kAbreast * kLanes;

template <class T>
std::complex<double> dot_real(int64_t count, const T* x, const T* y, bool) {
  double sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int j = 0; j < kSums; ++j) {
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
    }
  }
  for (int j = 0; i < count; ++i, ++j) {
    sums[j] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  for (int width = kSums / 2; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) sums[j] += sums[j + width];
  }
  return sums[0];
}

/// Lanes in turn of real and imaginary parts: the sums of either, and of what is beyond groups.
struct PartSums {
  double real, imaginary;
};
template <class Product>
[[gnu::always_inline]] inline PartSums part_sums(const V (&sums)[kAbreast], int64_t begin,
                                                 int64_t n, const Product& product) {
  double lane[kLanes];
  lanes::store(lane, (sums[0] + sums[2]) + (sums[1] + sums[3]));
  for (int64_t i = begin; i < n; ++i) lane[i % kLanes] += product(i);
  lanes::fold_halves<2>(lane, [](double a, double b) { return a + b; });
  return {lane[0], lane[1]};
}
/// Each part with its like and with the other.
template <class R>
std::complex<double> dot_complex(int64_t count, const std::complex<R>* first,
                                 const std::complex<R>* second, bool conjugate) {
  const auto* x = reinterpret_cast<const R*>(first);
  const auto* y = reinterpret_cast<const R*>(second);
  V like[kAbreast] = {}, other[kAbreast] = {};
  const int64_t n = 2 * count;
  int64_t i = 0;
  for (; i + kSums <= n; i += kSums) {
#pragma GCC unroll 4
    for (int k = 0; k < kAbreast; ++k) {
      const int64_t at = i + k * kLanes;
      const V a = lanes::load_double(x + at), b = lanes::load_double(y + at);
      like[k] = like[k] + a * b;
      other[k] = other[k] + a * lanes::swapped_pairs(b);
    }
  }
  const auto product = [](R a, R b) { return static_cast<double>(a) * static_cast<double>(b); };
  const PartSums same = part_sums(like, i, n, [&](int64_t at) { return product(x[at], y[at]); });
  const PartSums cross =
      part_sums(other, i, n, [&](int64_t at) { return product(x[at], y[at ^ 1]); });
  return conjugate ? std::complex<double>(same.real + same.imaginary, cross.real - cross.imaginary)
                   : std::complex<double>(same.real - same.imaginary, cross.real + cross.imaginary);
}

template <class T>
uint64_t dot_integer(int64_t count, const T* x, const T* y, bool) {
  Wide<T> sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += Wide<T>(x[i]) * Wide<T>(y[i]);
  return sum;
}

template <class T>
constexpr Level1<T> kInteger{scal<T>, axpy<T>, dot_integer<T>};
template <class T>
constexpr Level1<T> kReal{scal<T>, axpy<T>, dot_real<T>};
template <class R>
constexpr Level1<std::complex<R>> kComplex{scal<std::complex<R>>, axpy<std::complex<R>>,
                                           dot_complex<R>};

constexpr Level1Kernels kKernels{kInteger<uint8_t>,  kInteger<uint16_t>, kInteger<uint32_t>,
                                 kInteger<uint64_t>, kReal<float>,       kReal<double>,
                                 kComplex<float>,    kComplex<double>};

}  // namespace

template <>
const Level1Kernels& level1_kernels<isa::CUOP_ISA>() {
  return kKernels;
}

}  // namespace cuop::kernels
