// One long transform over all ranks, in four steps: of n = n1 n2 elements in rows of n2, every
// column is transformed, multiplied by roots of unity (twiddle factors), and every row is
// transformed; the spectrum then lies in columns of n1 (W. M. Gentleman and G. Sande, "Fast Fourier
// transforms: for fun and profit", 1966; D. H. Bailey, "FFTs in external or hierarchical memory",
// 1990). Columns, rows and the result are each split over the ranks, and between them the parts
// change hands: three all-to-alls from parts to parts; from rank 0 to rank 0 a scatter, one
// all-to-all and a gather.
//
// Of real numbers n1 / 2 + 1 rows of the spectrum are made; the others are their conjugates,
// mirrored: X[n - k] = conj(X[k]). So real numbers, or half of the spectrum, travel each time.
//
// Worked example, n = 6 = 2 x 3: x0 x1 x2 | x3 x4 x5 are the rows; row k1 of the spectrum has
// X[k1], X[k1 + 2], X[k1 + 4].
#pragma once

#include <optional>

#include "cuop/dist/plan/fft_problem.h"
#include "cuop/dist/plan/pass_plan.h"

namespace cuop::dist {

inline constexpr const char* kFourStep = "four_step";

struct Factors {
  int64_t n1 = 1;
  int64_t n2 = 1;
};
/// n as a product of two factors above 1 that `ranks` ranks share evenly, near to each other;
/// nothing for prime numbers and below 4.
std::optional<Factors> four_step_factors(int64_t n, int ranks);
/// n1 n2 >= `least`, by a few per cent at most where that is not small, n1 >= n2 near to each other
/// and without prime factors above 7. 1 <= least < 2^61.
Factors smooth_factors(int64_t least);

/// Where the tensors of such a transform lie, for planner and executor. The axis of `x` becomes two
/// axes, at `axis` and behind it: "rows" and "columns" of a matrix.
class FourStep {
 public:
  FourStep(const FftProblem& problem, Factors factors);

  FftKind kind() const { return problem_.kind; }
  int axis() const { return axis_; }
  int64_t n1() const { return factors_.n1; }
  int64_t n2() const { return factors_.n2; }
  bool is_real() const { return kind() == FftKind::kRfft || is_to_real(); }
  bool is_to_real() const { return kind() == FftKind::kIrfft; }
  /// Rows of the spectrum that are made: n1, or n1 / 2 + 1 of real numbers.
  int64_t kept() const { return is_real() ? n1() / 2 + 1 : n1(); }

  /// [.., n1, n2, ..] in time, and [.., kept, n2, ..] of the spectrum.
  Shape time_shape() const { return matrix(n1(), n2()); }
  Shape spectrum_shape() const { return matrix(kept(), n2()); }
  /// Rows, or columns, over all ranks.
  Sharding in_rows() const;
  Sharding in_columns() const;

  /// x, cut or padded, as a matrix: time in rows of n2, or half a spectrum in rows of n1.
  Shape input_shape() const;
  Sharding input_sharding() const;
  /// The whole rows that each rank has of it, as far as they are there, as boxes of x.
  std::vector<Box> input_boxes() const;

  /// Where the result is made: where it is wanted, if its axis is whole there, else over all ranks
  /// in whole rows, of n1 (of the spectrum) or n2 (in time).
  Sharding output_sharding() const;
  /// Of the result's placement `at`, how many elements follow each other in one row.
  int64_t output_row() const { return is_to_real() ? n2() : n1(); }

  /// What a rank needs of a matrix: a box, and one that it gets for the conjugates of its elements,
  /// in the opposite order along both axes. Two a rank, empty where it needs nothing.
  static size_t direct(int rank) { return 2 * static_cast<size_t>(rank); }
  static size_t mirrored(int rank) { return direct(rank) + 1; }
  /// Of half a spectrum (input_shape) for the rows of the spectrum (in_rows).
  std::vector<Need> needs_for_spectrum() const;
  /// Of the last matrix for the result, lying as `output` says.
  std::vector<Need> needs_for_output(const Sharding& output) const;

  /// What is made, in this order: the last matrix is the result's.
  std::vector<Pass> passes() const;

 private:
  int ranks() const { return problem_.x.sharding.mesh().size(); }
  Shape matrix(int64_t rows, int64_t columns) const;
  Box expanded(const Box& box, Interval rows, Interval columns) const;

  FftProblem problem_;
  Factors factors_;
  Placement result_;
  int axis_;
  int64_t given_;  ///< elements of x along the axis that are read
};

/// Appends what brings x to where the ranks have these boxes of it.
void add_whole_rows(Plan& plan, const Machine& machine, const Placement& x,
                    const std::vector<Box>& rows);
/// Appends what makes a line, lying so, of the last matrix, and of that what the caller wants.
void add_line_of_matrix(Plan& plan, const Machine& machine, const FftProblem& problem,
                        const Placement& matrix, const Sharding& sharding,
                        const std::vector<Need>& needs);

/// The plan for a problem with one axis. Its settings "n1" and "n2" are the factors.
Plan plan_four_step(const FftProblem& problem, Factors factors, const Machine& machine);

}  // namespace cuop::dist
