// What the last distributed call of this rank did.
#pragma once

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct Report {
  Plan plan;               ///< as executed; `plan.bytes()` is what all ranks together moved
  int64_t bytes_sent = 0;  ///< by this rank, the agreement before and after the work included
  double seconds = 0;      ///< wall time on this rank
  std::string to_string() const;
};

/// Of the calling thread (each rank that is a thread has its own); an empty plan before the first
/// call.
const Report& last_report();
void set_last_report(Report report);

}  // namespace cuop::dist
