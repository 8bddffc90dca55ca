#include "cuop/backend/cpu/isa.h"
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

/// Independent sums hide the adder's latency and fill the vector registers.
constexpr int kSums = 32;

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

template <class R>
std::complex<double> dot_complex(int64_t count, const std::complex<R>* x, const std::complex<R>* y,
                                 bool conjugate) {
  constexpr int kPairs = kSums / 4;
  double real[kPairs] = {}, cross[kPairs] = {}, imag[kPairs] = {}, other[kPairs] = {};
  for (int64_t i = 0; i < count; i += kPairs) {
    const int filled = static_cast<int>(count - i < kPairs ? count - i : kPairs);
    for (int j = 0; j < filled; ++j) {
      const double a = x[i + j].real(), b = x[i + j].imag();
      const double c = y[i + j].real(), d = y[i + j].imag();
      real[j] += a * c;
      cross[j] += b * d;
      imag[j] += a * d;
      other[j] += b * c;
    }
  }
  double sums[4] = {};
  for (int j = 0; j < kPairs; ++j) {
    sums[0] += real[j];
    sums[1] += cross[j];
    sums[2] += imag[j];
    sums[3] += other[j];
  }
  return conjugate ? std::complex<double>(sums[0] + sums[1], sums[2] - sums[3])
                   : std::complex<double>(sums[0] - sums[1], sums[2] + sums[3]);
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
