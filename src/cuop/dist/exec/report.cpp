#include "cuop/dist/exec/report.h"

#include <utility>

#include "cuop/core/json.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

struct LastReport {
  FiledReport filed;
  Report report;
  bool is_made = true;  ///< `report` says what was filed
};

LastReport& last_of_thread() {
  return of_thread([] { return new LastReport; });
}

Report made_of(const FiledReport& filed) {
  Report report{*filed.plan, filed.bytes_sent, filed.measured.seconds};
  report.plan.measured = filed.measured;
  return report;
}

}  // namespace

std::string Report::to_string() const {
  return cat(plan.op, ": ", plan.strategy, plan.detail.empty() ? "" : " ", plan.detail, ", ",
             format_bytes(plan.bytes()), " moved, ", format_seconds(seconds));
}

const Report& last_report() {
  LastReport& last = last_of_thread();
  if (!last.is_made) last.report = last.filed.plan ? made_of(last.filed) : Report();
  last.is_made = true;
  return last.report;
}

void file_report(FiledReport report) {
  LastReport& last = last_of_thread();
  last.filed = std::move(report);
  last.is_made = false;
}

const FiledReport& filed_report() { return last_of_thread().filed; }

void CallFigures::write(JsonWriter& json) const {
  constexpr double kMicro = 1e6;
  json.members("plan", plan, "predicted_us", predicted * kMicro, "floor_us", floor * kMicro,
               "work_us", measured.work_seconds * kMicro, "moves_us",
               measured.move_seconds * kMicro);
  json.key("sent").open('{');
  for (const auto& [rank, bytes] : sent_to) json.members(cat("rank ", rank), bytes);
  json.close();
}

CallFigures CallDetail::figures() const {
  CallFigures figures;
  figures.plan = filed.plan->to_string();
  figures.predicted = filed.plan->seconds();
  figures.floor = filed.plan->floor.seconds;
  figures.measured = filed.measured;
  figures.sent_to = sent_to;
  return figures;
}

std::vector<Report> recorded_reports() {
  std::vector<Report> reports;
  for (const trace::Event& event : trace::events()) {
    const auto* record = dynamic_cast<const CallDetail*>(event.detail.get());
    if (record == nullptr) continue;
    reports.push_back(made_of(record->filed));
    reports.back().plan.measured->gpu_seconds = static_cast<double>(event.gpu_ns) * 1e-9;
  }
  return reports;
}

}  // namespace cuop::dist
