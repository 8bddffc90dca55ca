// One line of any length that fits on no device, a prime number's too, as a convolution with a
// chirp w[j] = exp(-+i pi j^2 / n) (ops/fft/chirp.h): X[k] = w[k] sum_j (w[j] x[j]) conj(w[k - j]),
// over m >= outputs + inputs - 1 elements around. m = m1 m2 has small prime factors, so that the
// convolution is made by transforms of the line as a matrix, in four passes over the host's memory:
//
//   filter    columns of conj(w), transformed, times twiddle factors
//   columns   columns of w x, transformed, times twiddle factors
//   products  rows of both, transformed, multiplied, transformed back, times twiddle factors
//   result    columns, transformed back, times w
//
// Spectra stay in the order in which rows make them. All that is made between is two matrices of m
// complex numbers, or three where a later run may go on with them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/executor/line_parts.h"
#include "cuop/ops/fft/chirp.h"

namespace cuop::executor {

class ChirpLine {
 public:
  /// Nothing for what is no line, and for fewer than 5 elements. `line` is the result.
  static std::optional<ChirpLine> of(const dist::FftBatch& batch, const Header& x,
                                     const Header& line);

  /// What each pass but the last one makes.
  Header matrix() const;
  LineStep filter() const;
  LineStep columns() const;
  LineStep products() const;
  LineStep result() const;

  /// What `filter` reads: one number.
  static std::vector<Tensor> filter_inputs(DType dtype);
  /// The line, on rank 0, as `columns` reads it: views, but of one that is very short.
  std::vector<Tensor> column_inputs(const Tensor& x) const;

 private:
  ChirpLine(const dist::FftBatch& batch, const Header& x, const Header& line, int64_t n);

  bool is_from_half() const { return batch_.kind == dist::FftKind::kIrfft; }
  bool is_inverse() const { return is_from_half() || batch_.kind == dist::FftKind::kIfft; }
  int64_t m() const { return shape_.n1 * shape_.n2; }
  int64_t outputs() const { return line_.shape[0]; }
  /// Whole rows of the line that is given, and elements of the begun one.
  int64_t rows() const { return given_ / shape_.n2; }
  int64_t rest() const { return given_ % shape_.n2; }
  /// Of a block of columns of the line as a matrix.
  spectral::Chirp chirp(Interval columns) const;
  void put(const Tensor& line, const Box& box, const Tensor& tile) const;
  double scale() const;

  dist::FftBatch batch_;
  Header x_, line_;
  int64_t n_;
  int64_t given_ = 0;  ///< elements that are read
  dist::Factors shape_;
};

}  // namespace cuop::executor
