#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/fft/line_transform_internal.h"
#include "cuop/ops/fft/root_table.h"

namespace cuop::spectral {

using backend::TransformKind;

namespace {

/// The elements x[2j] + i x[2j+1] make a line of length m = n / 2, whose transform is Z. Those of
/// the even and the odd elements are E[k] = (Z[k] + conj Z[m-k]) / 2 and
/// O[k] = (Z[k] - conj Z[m-k]) / 2i; with w = exp(-2 pi i / n), X[k] = E[k] + w^k O[k]. Backward
/// the same steps are taken in reverse.
template <class Real>
class Half final : public LineTransform {
 public:
  using Complex = std::complex<Real>;

  Half(TransformKind kind, int64_t n)
      : is_forward_(kind == TransformKind::kRealForward), m_(n / 2) {
    inner_ = line_transform(is_forward_ ? TransformKind::kForward : TransformKind::kBackward,
                            kDouble, m_);
    batch_ = inner_->batch();
    const int64_t spectrum = aligned_distance(m_ + 1, kBytes);
    in_distance_ = is_forward_ ? 2 * inner_->in_distance() : spectrum;
    out_distance_ = is_forward_ ? spectrum : 2 * inner_->out_distance();
    inner_distance_ = is_forward_ ? inner_->out_distance() : inner_->in_distance();
    // A line of its own has room for the element m of the spectrum; those of a batch lie closer.
    if (batch_ > 1) packed_bytes_ = round_up(batch_ * inner_distance_ * kBytes, kWorkAlignment);
    work_bytes_ = packed_bytes_ + inner_->work_bytes();
    for (int64_t k = 0; k < (m_ + 1) / 2; ++k) {
      const std::complex<double> root = root_of_unity(k, n);
      const double re = -root.imag(), im = root.real();
      roots_.push_back(is_forward_
                           ? Complex(static_cast<Real>(0.5 * re), static_cast<Real>(-0.5 * im))
                           : Complex(static_cast<Real>(re), static_cast<Real>(im)));
    }
  }

  void execute(void* in, void* out, void* work) const override {
    auto* const inner_work = static_cast<std::byte*>(work) + packed_bytes_;
    if (is_forward_) {
      auto* const spectra = static_cast<Complex*>(out);
      auto* const packed = batch_ > 1 ? static_cast<Complex*>(work) : spectra;
      inner_->execute(in, packed, inner_work);
      for (int64_t l = 0; l < batch_; ++l) {
        unpack(packed + l * inner_distance_, spectra + l * out_distance_);
      }
    } else {
      const auto* const spectra = static_cast<const Complex*>(in);
      auto* const packed = static_cast<Complex*>(batch_ > 1 ? work : in);
      for (int64_t l = 0; l < batch_; ++l) {
        pack(spectra + l * in_distance_, packed + l * inner_distance_);
      }
      inner_->execute(packed, out, inner_work);
    }
  }

 private:
  static constexpr bool kDouble = sizeof(Real) == sizeof(double);
  static constexpr int64_t kBytes = static_cast<int64_t>(sizeof(Complex));

  /// Z to X; both may lie at the same place.
  void unpack(const Complex* z, Complex* x) const {
    const Complex first = z[0];
    if (m_ % 2 == 0) x[m_ / 2] = std::conj(z[m_ / 2]);
    butterflies(z, Real{0.5}, x);
    x[0] = {first.real() + first.imag(), Real{0}};
    x[m_] = {first.real() - first.imag(), Real{0}};
  }

  /// X to 2 Z; both may lie at the same place. What X[0] and X[m] have of imaginary parts is
  /// ignored.
  void pack(const Complex* x, Complex* z) const {
    const Real first = x[0].real(), last = x[m_].real();
    if (m_ % 2 == 0) z[m_ / 2] = Real{2} * std::conj(x[m_ / 2]);
    butterflies(x, Real{1}, z);
    z[0] = {first + last, first - last};
  }

  void butterflies(const Complex* from, Real scale, Complex* to) const {
    constexpr int64_t kGrain = 8192;
    const int64_t last = (m_ + 1) / 2;
    if (last <= kGrain) {
      loops_.mirrored_butterflies(from, roots_.data(), m_, scale, 1, last, to);
      return;
    }
    backend::parallel_for(last - 1, kGrain, [&](int64_t begin, int64_t end) {
      loops_.mirrored_butterflies(from, roots_.data(), m_, scale, 1 + begin, 1 + end, to);
    });
  }

  const ComplexLoops<Real>& loops_ = complex_loops_in_use<Real>();
  bool is_forward_;
  int64_t m_;
  int64_t inner_distance_ = 0;
  int64_t packed_bytes_ = 0;
  std::vector<Complex> roots_;  // -i/2 exp(-2 pi i k / n), backward i exp(2 pi i k / n)
  std::shared_ptr<const LineTransform> inner_;
};

}  // namespace

bool prefers_half(TransformKind kind, bool is_double, int64_t n) {
  // The library's time over this one's, AVX-512, one core, FFTW 3.3.10 (AVX); forward / backward:
  //   n                        float               double
  //   14 ... 64, even          0.7-3.2 / 0.6-3.2   0.9-2.9 / 0.8-2.6, four fifths of them above 1
  //   256, 512, 1024           2.0-2.3 / 1.6-1.7   1.0-1.3 / 1.1-1.4
  //   2048, 4096               2.2 / 2.0           0.9-1.0 / 1.0
  //   8192, 16384, 65536       1.0-1.9 / 1.2-1.8   0.7-0.9 / 1.0-1.4
  //   768, 1536, 3072          1.8-2.2 / 1.4-1.9   0.7-1.0 / 0.7-0.9
  //   1000, 10000, 100000      1.2-1.6 / 1.4-1.6   1.0-1.1 / 0.9-1.1
  //   2^17 ... 2^20            0.4-1.4 / 0.4-1.8   0.5-1.8 / 0.3-1.6
  //   from 2^21 on             0.7-1.0 / 1.1-1.6   0.8-1.5 / 1.4-2.2
  // Of float's lengths between, multiples of 8 have 0.8 to 2.3, most of them 1.3 to 1.6: its
  // registers hold four complex numbers. Shorter ones have to be multiples of 32, others than
  // multiples of 8 have 0.7 to 1.4. Lengths that Bluestein's algorithm does have 1.5 to 3.7.
  constexpr int64_t kShortFrom = 14, kShortTo = 64, kFloatTo = int64_t{1} << 17;
  constexpr int64_t kBackwardFrom = int64_t{1} << 21;
  constexpr int64_t kTo = int64_t{1} << 23;  // a table of roots half as large as the line
  if (n % 2 != 0 || n < kShortFrom || n > kTo) return false;
  if (n <= kShortTo) return true;
  if (n >= kBackwardFrom) return kind == TransformKind::kRealBackward && n % 8 == 0;
  return !is_double && n <= kFloatTo && n % (n < 208 ? 32 : 8) == 0;
}

std::unique_ptr<LineTransform> make_half(TransformKind kind, bool is_double, int64_t n) {
  if (is_double) return std::make_unique<Half<double>>(kind, n);
  return std::make_unique<Half<float>>(kind, n);
}

}  // namespace cuop::spectral
