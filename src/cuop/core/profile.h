// The profiler: a line for every operation when its time is known, and a table at the end. Time is
// that of the GPU's stream for work on a GPU, that of the call for work on the CPU.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/trace.h"

namespace cuop {

/// The operations of one name on one device.
struct ProfileRow {
  std::string name;
  std::string device;  ///< "cpu", "cuda:0"
  int64_t calls = 0;
  double total_ms = 0.0;
  double mean_ms = 0.0;
  double share = 0.0;  ///< part of the time of all rows, 0 to 1
};

/// Turns profiling on or off for the process. On, every operation that is not part of another one
/// prints a line as "matmul_kernel: 0.15ms" when its time is known: on a GPU that is behind the
/// call, and nothing waits for it. Off waits for the rest and prints the table, as does the end of
/// the process. Turning it on anew begins a new table.
void enable_profiling(bool is_on = true);
bool is_profiling();
/// The table so far, the longest first; waits for GPUs.
std::vector<ProfileRow> profiling_rows();
/// The rows as text, a line each: operation, device, calls, total and mean time, share.
std::string profiling_summary();
/// Gets the lines and the table instead of the standard output; empty for that again. Called by the
/// thread whose operation ended, never inside itself.
void set_profiling_output(std::function<void(const std::string& text)> write);

/// What the functions above do, for one stream of spans.
class Profiler {
 public:
  void add(trace::Finished finished);
  /// The lines of those whose turn has come: all before the first whose work is still going on.
  std::string ready_lines();
  /// The lines of all that are left; waits.
  std::string remaining_lines();
  std::vector<ProfileRow> rows() const;
  /// Operations whose time a GPU could not tell because it failed.
  int64_t lost_count() const { return lost_; }

 private:
  void take_front(std::string& lines);

  std::deque<trace::Finished> pending_;
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, int64_t>> sums_;  // calls, ns
  int64_t lost_ = 0;
};

std::string to_text(const std::vector<ProfileRow>& rows);

}  // namespace cuop
