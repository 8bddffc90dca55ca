// Planning two-dimensional transforms that work along rows, then along columns: each rank
// transforms whole rows, an all-to-all turns rows into columns ("pencils"), each rank transforms
// whole columns. The result is left in columns unless it is wanted elsewhere, which saves the
// second all-to-all.
#pragma once

#include <optional>
#include <string_view>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct PencilProblem {
  std::string op;
  Placement x;                        ///< [rows, columns] where it lies
  DType working = DType::kComplex64;  ///< what travels between the two passes
  DType result = DType::kComplex64;
  int passes = 2;  ///< all-to-alls are passes - 1; 4 for there and back
  std::optional<Sharding> wanted;
};

/// Strategies: "root" (when x lies on one rank) and "pencil". inputs[0]: x in whole rows;
/// outputs[0]: as made; outputs[1]: as wanted.
Plan plan_pencil(const PencilProblem& problem, const Machine& machine,
                 std::string_view strategy = {});

/// Whole rows, or whole columns, of a matrix over all ranks (or on one, as `like` is).
Sharding whole_rows(const Plan& plan);
Sharding whole_columns(const Plan& plan);

}  // namespace cuop::dist
