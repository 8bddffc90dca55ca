// Planning transforms that are made in passes: in each pass every rank works along axes that are
// whole where it has its part, and between two passes the parts change hands. A grid that is
// transformed along both axes has its rows done first, then, after an all-to-all, its columns.
#pragma once

#include <algorithm>
#include <optional>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct Pass {
  Sharding at;            ///< where the tensor lies meanwhile; `axes` are whole there
  std::vector<int> axes;  ///< that are transformed
  Shape shape;            ///< afterwards
  DType dtype = DType::kComplex64;
  bool is_recurrence = false;  ///< along its axis instead, over all lines at once
};

struct PassChoice {
  std::string strategy;
  std::string detail;
  std::vector<Pass> passes;
};

struct PassProblem {
  std::string op;
  Placement x;  ///< where it lies
  std::vector<PassChoice> choices;
  DType result = DType::kComplex64;
  std::optional<Sharding> wanted;  ///< none leaves the result where the last pass makes it
};

/// Whether libraries make a line of this length of longer ones: it has a prime factor above 127.
bool has_large_factor(int64_t length);

/// Of transforms of this length that take so many elements together.
double transform_flops(double elements, int64_t length);

/// The share of flops that no transform exceeds.
inline double best_fft_efficiency(const Machine& machine) {
  return std::max(machine.fft_speed, machine.long_fft_speed);
}

/// Appends passes over what lies at `from`, and returns what lies where after the last. Counts what
/// the busiest rank has during a pass as the plan's memory where that is more.
Placement add_passes(Plan& plan, const Machine& machine, const Placement& from,
                     const std::vector<Pass>& passes);

/// Appends that what arrives, and what stays on its rank, is put where columns are rows.
void add_reordering(Plan& plan, const Machine& machine, const Placement& matrix);

/// A plan for each choice. inputs[0]: x in the first pass; each step of arithmetic carries its axes
/// (of a recurrence the others, which are worked on side by side) and what it makes; outputs[0]: as
/// made; outputs[1]: as wanted.
std::vector<Plan> pass_plans(const PassProblem& problem, const Machine& machine);

}  // namespace cuop::dist
