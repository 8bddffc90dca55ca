// One line of any length that fits on no device, a prime number's too, as a convolution with a
// chirp (dist/plan/chirp_plan.h) of m = m1 m2 elements: by transforms of the line as a matrix, in
// four passes over the host's memory:
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

#include "cuop/dist/plan/chirp_plan.h"
#include "cuop/executor/line_parts.h"

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

  /// Whole rows of the line that is given, and elements of the begun one.
  int64_t rows() const { return given_ / sizes_.matrix.n2; }
  int64_t rest() const { return given_ % sizes_.matrix.n2; }
  void put(const Tensor& line, const Box& box, const Tensor& tile) const;

  dist::FftBatch batch_;
  Header x_, line_;
  dist::ChirpSizes sizes_;
  int64_t given_ = 0;  ///< elements that are read, and zeros behind them
};

}  // namespace cuop::executor
