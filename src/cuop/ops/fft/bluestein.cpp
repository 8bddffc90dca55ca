#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "cuop/core/divide_up.h"
#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/fft/line_transform_internal.h"

namespace cuop::spectral {

using backend::TransformKind;

namespace {

/// A complex product without the checks for infinities that std::complex makes.
template <class Real>
std::complex<Real> product(std::complex<Real> a, std::complex<Real> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// exp(sign i pi j^2 / n); the square is reduced mod 2n so that the angle stays small.
std::vector<std::complex<double>> chirp(int64_t n, double sign) {
  std::vector<std::complex<double>> result(static_cast<size_t>(n));
  int64_t square = 0;  // j^2 mod 2n
  for (int64_t j = 0; j < n; ++j) {
    const double angle = std::numbers::pi * static_cast<double>(square) / static_cast<double>(n);
    result[static_cast<size_t>(j)] = {std::cos(angle), sign * std::sin(angle)};
    square = (square + 2 * j + 1) % (2 * n);
  }
  return result;
}

template <class Real>
class Bluestein final : public LineTransform {
 public:
  using Complex = std::complex<Real>;
  static constexpr bool kDouble = sizeof(Real) == sizeof(double);

  Bluestein(TransformKind kind, int64_t n)
      : kind_(kind),
        n_(n),
        padded_(smooth_length(2 * n - 1, kDouble)),
        chirp_(static_cast<size_t>(n)) {
    in_distance_ = round_up(input_length(kind, n), 4);
    out_distance_ = round_up(output_length(kind, n), 4);
    forward_ = line_transform(TransformKind::kForward, kDouble, padded_);
    backward_ = line_transform(TransformKind::kBackward, kDouble, padded_);
    is_in_order_ = true;  // the products read and write lines, not the library
    work_bytes_ = 2 * line_bytes() + forward_->work_bytes();
    const bool is_forward = kind == TransformKind::kForward || kind == TransformKind::kRealForward;
    const auto wave = chirp(n, is_forward ? -1.0 : 1.0);
    for (int64_t j = 0; j < n; ++j) chirp_[at(j)] = static_cast<Complex>(wave[at(j)]);
    prepare_filter(wave);
  }

  void execute(void* in, void* out, void* work) const override {
    auto* const time = static_cast<Complex*>(work);
    auto* const frequency = time + line_bytes() / static_cast<int64_t>(sizeof(Complex));
    void* const inner = frequency + line_bytes() / static_cast<int64_t>(sizeof(Complex));
    load(in, time);
    for (int64_t j = n_; j < padded_; ++j) time[j] = Complex{};
    forward_->execute(time, frequency, inner);
    loops_.multiply(frequency, filter_.data(), padded_, frequency);
    backward_->execute(frequency, time, inner);
    store(time, out);
  }

 private:
  /// Of one padded line, rounded up so that what follows it is aligned.
  int64_t line_bytes() const {
    return round_up(padded_ * static_cast<int64_t>(sizeof(Complex)), kWorkAlignment);
  }
  static size_t at(int64_t i) { return static_cast<size_t>(i); }

  /// The transform of the conjugate chirp, wrapped around, with the inverse's 1/padded; in double
  /// so that float lines lose nothing to it.
  void prepare_filter(const std::vector<std::complex<double>>& wave) {
    struct alignas(64) Block {
      std::complex<double> value[4];
    };
    const size_t blocks = at(padded_ + 3) / 4;
    std::vector<Block> time(blocks), frequency(blocks);
    const auto element = [](std::vector<Block>& v, int64_t i) -> std::complex<double>& {
      return v[at(i) / 4].value[at(i) % 4];
    };
    element(time, 0) = std::conj(wave[0]);
    for (int64_t j = 1; j < n_; ++j) {
      element(time, j) = element(time, padded_ - j) = std::conj(wave[at(j)]);
    }
    backend::fft_plan({TransformKind::kForward, true, padded_, 1, padded_, padded_})
        ->execute(time.data(), frequency.data());
    filter_.resize(at(padded_));
    for (int64_t j = 0; j < padded_; ++j) {
      filter_[at(j)] = static_cast<Complex>(element(frequency, j) / static_cast<double>(padded_));
    }
  }

  void load(const void* in, Complex* time) const {
    if (kind_ == TransformKind::kRealForward) {
      const auto* x = static_cast<const Real*>(in);
      loops_.multiply_real(x, chirp_.data(), n_, time);
      return;
    }
    const auto* x = static_cast<const Complex*>(in);
    if (kind_ != TransformKind::kRealBackward) {
      loops_.multiply(x, chirp_.data(), n_, time);
      return;
    }
    // The half that is given stands for a conjugate-symmetric whole.
    time[0] = product({x[0].real(), Real{0}}, chirp_[0]);
    for (int64_t j = 1; 2 * j <= n_; ++j) {
      const Complex value = 2 * j == n_ ? Complex{x[j].real(), Real{0}} : x[j];
      time[j] = product(value, chirp_[at(j)]);
      if (2 * j < n_) time[n_ - j] = product(std::conj(value), chirp_[at(n_ - j)]);
    }
  }

  void store(const Complex* time, void* out) const {
    if (kind_ == TransformKind::kRealBackward) {
      auto* y = static_cast<Real*>(out);
      for (int64_t k = 0; k < n_; ++k) y[k] = product(time[k], chirp_[at(k)]).real();
      return;
    }
    auto* y = static_cast<Complex*>(out);
    const int64_t count = output_length(kind_, n_);
    loops_.multiply(time, chirp_.data(), count, y);
    if (kind_ == TransformKind::kRealForward) {  // these are their own conjugates: exactly real
      y[0] = {y[0].real(), Real{0}};
      if (n_ % 2 == 0) y[n_ / 2] = {y[n_ / 2].real(), Real{0}};
    }
  }

  const ComplexLoops<Real>& loops_ = complex_loops_in_use<Real>();
  TransformKind kind_;
  int64_t n_;
  int64_t padded_;
  std::vector<Complex> chirp_;
  std::vector<Complex> filter_;
  std::shared_ptr<const LineTransform> forward_;
  std::shared_ptr<const LineTransform> backward_;
};

}  // namespace

std::unique_ptr<LineTransform> make_bluestein(TransformKind kind, bool is_double, int64_t n) {
  if (is_double) return std::make_unique<Bluestein<double>>(kind, n);
  return std::make_unique<Bluestein<float>>(kind, n);
}

}  // namespace cuop::spectral
