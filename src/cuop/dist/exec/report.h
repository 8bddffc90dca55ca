// What distributed calls of this rank did: the last one, and all that were recorded in the trace.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/trace.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

struct Report {
  /// As executed, with what was measured; `plan.bytes()` is what all ranks together moved.
  Plan plan;
  int64_t bytes_sent = 0;  ///< by this rank, the agreement before and after the work included
  double seconds = 0;      ///< wall time on this rank
  std::string to_string() const;
};

/// Of the calling thread (each rank that is a thread has its own); an empty plan before the first
/// call. Good until the thread's next call.
const Report& last_report();

/// The report of a call as it is kept: with a shared plan, not a copy of it. A Report is made of it
/// when somebody asks for one.
struct FiledReport {
  std::shared_ptr<const Plan> plan = {};
  int64_t bytes_sent = 0;
  Measured measured = {};
};
void file_report(FiledReport report);
/// What this thread filed last; no plan before the first call.
const FiledReport& filed_report();

/// What a call's span says, on any rank.
struct CallFigures : trace::Detail {
  std::string plan = {};  ///< in one line
  double predicted = 0;   ///< seconds
  double floor = 0;       ///< seconds; 0 where it is not known
  Measured measured = {};
  std::vector<std::pair<int, int64_t>> sent_to = {};  ///< ranks as traces number them, and bytes
  void write(JsonWriter& json) const override;
};

/// The detail of a call's span on the rank that made it.
struct CallDetail final : trace::Detail {
  FiledReport filed = {};
  std::vector<std::pair<int, int64_t>> sent_to = {};  ///< as above, in following the plan
  CallFigures figures() const;
  void write(JsonWriter& json) const override { figures().write(json); }
};

/// Of all calls of this process's ranks that the trace holds, in the order in which they began;
/// waits for GPUs, whose time they have.
std::vector<Report> recorded_reports();

}  // namespace cuop::dist
