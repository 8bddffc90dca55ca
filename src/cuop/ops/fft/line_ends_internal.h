// What the CPU makes of a line in scratch memory before its transform and afterwards.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/fft/line_transform_internal.h"
#include "cuop/ops/fft/root_table.h"

namespace cuop::spectral {

inline bool takes_turns(const LinePass& pass) {
  return pass.input == LineInput::kCosineSums || pass.output == LineOutput::kTurnedCosine;
}

/// Lines are completed before their transform and afterwards, in place.
template <class Real>
class LineEnds {
 public:
  using Complex = std::complex<Real>;

  explicit LineEnds(const LinePass& pass) : pass_(pass) {
    if (!takes_turns(pass)) return;
    for (const auto& turn : quarter_turns(pass.n)) turns_.push_back(Complex(turn));
  }

  /// Real numbers of scratch memory that `begin` and `end` need beside the line.
  int64_t spare_count() const {
    const bool is_moved = takes_turns(pass_) || pass_.input == LineInput::kEvensThenOdds;
    return is_moved ? pass_.n + 2 : 0;
  }

  /// Of the line's elements `given` are there, each of so many real numbers.
  void begin(Real* line, int64_t given, int64_t reals_per_element, Real* spare) const {
    const int64_t n = pass_.n;
    const Real* const turns = parts_of_turns();
    switch (pass_.input) {
      case LineInput::kPlain: {
        const int64_t wanted = input_length(pass_.kind, n);
        std::fill(line + given * reals_per_element, line + wanted * reals_per_element, Real{0});
        break;
      }
      case LineInput::kOdd:
        std::memmove(line + 1, line, static_cast<size_t>(given) * sizeof(Real));
        line[0] = line[given + 1] = Real{0};
        for (int64_t j = 1; j <= given; ++j) line[n - j] = -line[j];
        break;
      case LineInput::kEven:
        for (int64_t j = 1; j + 1 < given; ++j) line[n - j] = line[j];
        break;
      case LineInput::kEvensThenOdds:
        std::copy_n(line, n, spare);
        for (int64_t j = 0; 2 * j < n; ++j) line[j] = spare[2 * j];
        for (int64_t j = 0; 2 * j + 1 < n; ++j) line[n - 1 - j] = spare[2 * j + 1];
        break;
      case LineInput::kCosineSums:
        std::copy_n(line, n, spare);
        spare[n] = Real{0};
        for (int64_t k = 0; 2 * k <= n; ++k) {
          const Real cosine = turns[2 * k], sine = turns[2 * k + 1];
          const Real re = spare[k], im = -spare[n - k];
          line[2 * k] = re * cosine + im * sine;
          line[2 * k + 1] = im * cosine - re * sine;
        }
        break;
    }
  }

  /// Of the transform's result the pass's.
  void end(Real* line, Real* spare) const {
    const int64_t n = pass_.n;
    const Real* const turns = parts_of_turns();
    auto* const spectrum = reinterpret_cast<Complex*>(line);
    switch (pass_.output) {
      case LineOutput::kPlain:
        break;
      case LineOutput::kMirrored:
        for (int64_t k = 1; 2 * k < n; ++k) spectrum[n - k] = std::conj(spectrum[k]);
        break;
      case LineOutput::kMirroredConjugate:
        for (int64_t k = 0; 2 * k <= n; ++k) {
          const Complex value = spectrum[k];
          spectrum[k] = std::conj(value);
          if (k > 0) spectrum[n - k] = 2 * k == n ? std::conj(value) : value;
        }
        break;
      case LineOutput::kSine:
        for (int64_t k = 0; k < pass_.out_count; ++k) line[k] = -line[2 * (k + 1) + 1];
        break;
      case LineOutput::kCosine:
        for (int64_t k = 0; k < pass_.out_count; ++k) line[k] = line[2 * k];
        break;
      case LineOutput::kTurnedCosine:
        std::copy_n(line, 2 * (n / 2 + 1), spare);
        for (int64_t k = 0; 2 * k <= n; ++k) {
          const Real cosine = turns[2 * k], sine = turns[2 * k + 1];
          const Real re = spare[2 * k], im = spare[2 * k + 1];
          // The other half of the spectrum is the conjugate: n - k is turned by i more.
          if (k > 0) line[n - k] = -2 * (re * sine + im * cosine);
          line[k] = 2 * (re * cosine - im * sine);
        }
        break;
      case LineOutput::kInOrder:
        std::copy_n(line, n, spare);
        for (int64_t j = 0; 2 * j < n; ++j) line[2 * j] = spare[j];
        for (int64_t j = 0; 2 * j + 1 < n; ++j) line[2 * j + 1] = spare[n - 1 - j];
        break;
    }
  }

 private:
  /// Whole complex numbers would be copied to the stack by halves, and read back at once.
  const Real* parts_of_turns() const { return reinterpret_cast<const Real*>(turns_.data()); }

  const LinePass& pass_;
  std::vector<Complex> turns_;
};

}  // namespace cuop::spectral
