// One line that fits on no device as a grid of n1 rows of n2 elements, which is transformed in two
// passes over the host's memory (dist/plan/four_step_plan.h): columns, twiddle factors, rows, and
// transposed. Of real numbers half of the rows are made, so that half the bytes move; back to real
// numbers the other way round: rows, from half of the spectrum, twiddle factors, columns.
#pragma once

#include <optional>
#include <vector>

#include "cuop/executor/half_spectrum.h"
#include "cuop/executor/line_parts.h"
#include "cuop/executor/passes.h"

namespace cuop::executor {

class LineSteps {
 public:
  /// Nothing for what is no line, and for a length without factors. `line` is the result.
  static std::optional<LineSteps> of(const dist::FftBatch& batch, const Header& x,
                                     const Header& line);

  /// What the first pass makes and the second one reads.
  Header middle() const;
  LineStep first() const;
  LineStep second() const;
  /// The line, on rank 0, as the first pass reads it: views, but of one that is too short.
  std::vector<Tensor> first_inputs(const Tensor& x) const;
  /// How the second pass writes into the line.
  PassSettings into_line() const;

 private:
  LineSteps(const dist::FftBatch& batch, const Header& x, const Header& line, int64_t n, int64_t n1,
            int64_t n2)
      : batch_(batch), x_(x), line_(line), n_(n), n1_(n1), n2_(n2) {}

  bool is_from_real() const { return batch_.kind == dist::FftKind::kRfft; }
  bool is_to_real() const { return batch_.kind == dist::FftKind::kIrfft; }
  HalfSpectrum half() const { return {n1_, n2_}; }
  TileOperation rows_from_half() const;
  TileOperation rows_into_half() const;

  dist::FftBatch batch_;
  Header x_, line_;
  int64_t n_, n1_, n2_;
};

}  // namespace cuop::executor
