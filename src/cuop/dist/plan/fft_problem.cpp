#include "cuop/dist/plan/fft_problem.h"

namespace cuop::dist {

Placement fft_result(const FftProblem& problem) {
  Placement result{"result", problem.x.shape, DType::kComplex64, problem.x.sharding};
  for (size_t i = 0; i < problem.axes.size(); ++i) {
    result.shape[problem.axes[i]] = problem.lengths[i];
  }
  if (problem.kind == FftKind::kRfft) {
    result.shape[problem.axes.back()] = problem.lengths.back() / 2 + 1;
  }
  const DType real = compute_dtype(to_inexact(real_dtype(problem.x.dtype)));
  result.dtype = problem.kind == FftKind::kIrfft ? real : complex_dtype(real);
  return result;
}

}  // namespace cuop::dist
