#include "cuop/dist/exec/report.h"

#include <utility>

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

struct LastReport {
  FiledReport filed;
  Report report;
  bool is_made = true;  ///< `report` says what was filed
};

LastReport& of_thread() {
  thread_local LastReport last;
  return last;
}

}  // namespace

std::string Report::to_string() const {
  return cat(plan.op, ": ", plan.strategy, plan.detail.empty() ? "" : " ", plan.detail, ", ",
             format_bytes(plan.bytes()), " moved, ", format_seconds(seconds));
}

const Report& last_report() {
  LastReport& last = of_thread();
  if (!last.is_made) last.report = {*last.filed.plan, last.filed.bytes_sent, last.filed.seconds};
  last.is_made = true;
  return last.report;
}

void file_report(FiledReport report) {
  LastReport& last = of_thread();
  last.filed = std::move(report);
  last.is_made = false;
}

const FiledReport& filed_report() { return of_thread().filed; }

}  // namespace cuop::dist
