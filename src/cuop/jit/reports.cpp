#include "cuop/jit/reports.h"

#include "cuop/core/text.h"

namespace cuop {

namespace jit {

namespace {

thread_local Reports* current_reports = nullptr;

}  // namespace

Reports::Reports() : before_(current_reports) { current_reports = this; }

Reports::~Reports() {
  // Not always the innermost: Python ends its blocks in the order it likes.
  Reports** link = &current_reports;
  while (*link != nullptr && *link != this) link = &(*link)->before_;
  if (*link == this) *link = before_;
}

bool is_reporting() { return current_reports != nullptr; }

void report(GroupReport report) {
  if (current_reports != nullptr) current_reports->add(std::move(report));
}

void note(std::string text) {
  if (current_reports != nullptr) current_reports->add_note(std::move(text));
}

}  // namespace jit

std::string to_text(const std::vector<jit::GroupReport>& groups) {
  std::string text;
  int64_t unfused = 0, fused = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const jit::GroupReport& group = groups[i];
    text += cat("group ", i + 1, ": ", group.ops.size(), " operations over ", group.shape, ": ",
                join(group.ops), "\n  reads ", group.inputs, " inputs, writes ", group.outputs,
                " outputs; ", group.fused_bytes, " bytes instead of ", group.unfused_bytes,
                "\n  ended because ", group.reason, "\n");
    unfused += group.unfused_bytes;
    fused += group.fused_bytes;
  }
  return text + cat(groups.size(), " groups; ", unfused - fused, " of ", unfused, " bytes saved\n");
}

}  // namespace cuop
