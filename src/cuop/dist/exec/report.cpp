#include "cuop/dist/exec/report.h"

#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

Report& report_of_thread() {
  thread_local Report report;
  return report;
}

}  // namespace

std::string Report::to_string() const {
  return cat(plan.op, ": ", plan.strategy, plan.detail.empty() ? "" : " ", plan.detail, ", ",
             format_bytes(plan.bytes()), " moved, ", format_seconds(seconds));
}

const Report& last_report() { return report_of_thread(); }

void set_last_report(Report report) { report_of_thread() = std::move(report); }

}  // namespace cuop::dist
