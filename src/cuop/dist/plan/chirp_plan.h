// Few transforms of any length, a prime number's too, each over all ranks: convolutions with a
// chirp w[j] = exp(-+i pi j^2 / n) (L. I. Bluestein, "A linear filtering approach to the
// computation of discrete Fourier transform", IEEE Trans. Audio Electroacoust. 18, 1970), X[k] =
// w[k] sum_j (w[j] x[j]) conj(w[k - j]), around m >= inputs + outputs - 1 elements without large
// prime factors, as a matrix of m1 rows of m2. The lines and the one chirp, side by side, are
// transformed along columns and along rows, multiplied, and transformed back along rows and
// columns. The parts change hands four times: lines into columns, all into rows, products into
// columns, results into rows.
#pragma once

#include "cuop/dist/plan/fft_problem.h"
#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/dist/plan/pass_plan.h"

namespace cuop::dist {

inline constexpr const char* kChirp = "chirp";

/// The convolution that a line's transform is.
struct ChirpSizes {
  FftKind kind = FftKind::kFft;
  int64_t n = 1;     ///< of the transform
  int64_t used = 1;  ///< elements that are read
  int64_t outputs = 1;
  Factors matrix;

  /// Of a line of `given` elements. 1 or more, n below 2^49.
  ChirpSizes(FftKind kind, int64_t n, int64_t given);
  int64_t m() const { return matrix.n1 * matrix.n2; }
  bool is_from_half() const { return kind == FftKind::kIrfft; }
  bool is_inverse() const { return is_from_half() || kind == FftKind::kIfft; }
};

/// Where the tensors of such a transform along one axis lie, for planner and executor.
class ChirpSteps {
 public:
  explicit ChirpSteps(const FftProblem& problem);

  const ChirpSizes& sizes() const { return sizes_; }
  int axis() const { return axis_; }
  int64_t lines() const { return lines_; }
  /// Of matrices [rows, lines, columns]: whole rows, or columns.
  Sharding in_rows() const { return split_dimension(0); }
  Sharding in_columns() const { return split_dimension(2); }

  /// x, cut or padded, as whole rows, lying in_rows.
  Shape input_shape() const;
  /// What each rank has of them, as far as it is there, as boxes of x.
  std::vector<Box> input_boxes() const;
  /// [m1, lines and the chirp, m2] of columns, [m1, lines, m2] of products, and the results' rows.
  std::vector<Pass> passes() const;
  /// Where the result is made: where it is wanted, if all of it is there, else in whole rows.
  Sharding output_sharding() const;
  /// What each rank needs of the last matrix for it.
  std::vector<Need> needs_for_output(const Sharding& output) const;

 private:
  int ranks() const { return problem_.x.sharding.mesh().size(); }
  Sharding split_dimension(int dim) const;

  FftProblem problem_;
  Placement result_;
  int axis_;
  int64_t lines_ = 1;
  ChirpSizes sizes_;
};

/// Of a problem of one axis that is not empty.
Plan plan_chirp(const FftProblem& problem, const Machine& machine);

}  // namespace cuop::dist
