// What fused groups and JIT wrappers did, for `explain`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/dims.h"
#include "cuop/core/noncopyable.h"

namespace cuop {

namespace jit {

/// What one group did, for `explain`. Bytes are what arrays cost; caches are not counted.
struct GroupReport {
  std::vector<std::string> ops;  ///< in the order of their recording
  Shape shape;                   ///< of the iteration
  int inputs = 0;
  int outputs = 0;            ///< values that were still held and had to be written
  int64_t unfused_bytes = 0;  ///< each op reading its arrays and writing its result
  int64_t fused_bytes = 0;    ///< each input read once, each output written once
  std::string reason;         ///< why the group ended where it did
};

/// While one lives, the reports of the groups that this thread runs are collected in it.
class Reports : NonCopyable {
 public:
  Reports();
  ~Reports();
  const std::vector<GroupReport>& groups() const { return groups_; }
  /// What `note` was told: a line for each call of a JIT wrapper.
  const std::vector<std::string>& notes() const { return notes_; }
  void add(GroupReport report) { groups_.push_back(std::move(report)); }
  void add_note(std::string text) { notes_.push_back(std::move(text)); }

 private:
  std::vector<GroupReport> groups_;
  std::vector<std::string> notes_;
  Reports* before_;
};

/// Whether this thread has a `Reports`; a group's report and a line for it.
bool is_reporting();
void report(GroupReport report);
void note(std::string text);

}  // namespace jit

/// The reports as text: one paragraph a group and a line of totals.
std::string to_text(const std::vector<jit::GroupReport>& groups);

}  // namespace cuop
