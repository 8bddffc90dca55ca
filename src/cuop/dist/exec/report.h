// What the last distributed call of this rank did.
#pragma once

#include <memory>

#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct Report {
  Plan plan;               ///< as executed; `plan.bytes()` is what all ranks together moved
  int64_t bytes_sent = 0;  ///< by this rank, the agreement before and after the work included
  double seconds = 0;      ///< wall time on this rank
  std::string to_string() const;
};

/// Of the calling thread (each rank that is a thread has its own); an empty plan before the first
/// call. Good until the thread's next call.
const Report& last_report();

/// What calls file: the plan as those who remember it hold it. A Report is made of it when somebody
/// asks for one.
struct FiledReport {
  std::shared_ptr<const Plan> plan = {};
  int64_t bytes_sent = 0;
  double seconds = 0;
};
void file_report(FiledReport report);
/// What this thread filed last; no plan before the first call.
const FiledReport& filed_report();

}  // namespace cuop::dist
