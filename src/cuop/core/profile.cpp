#include "cuop/core/profile.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/home_process.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

struct State {
  ForkMutex mutex;
  Profiler profiler;
  std::function<void(const std::string&)> write;
  bool is_on = false;
  HomeProcess process;  ///< that has asked for it, whose end ends it
};
State& state() {
  static State* instance = new State;  // outlives static destructors that may still run operations
  return *instance;
}

/// Three digits that count, or four places.
std::string milliseconds(double ms) {
  const int places = ms >= 100 ? 0 : ms >= 10 ? 1 : ms >= 0.1 ? 2 : 4;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", places, ms);
  return text;
}

/// Called without the lock: the output may run operations itself, or wait for another thread.
void write_out(const std::string& text) {
  if (text.empty()) return;
  std::function<void(const std::string&)> write;
  {
    const std::lock_guard lock(state().mutex);
    write = state().write;
  }
  if (write) return write(text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void listen(trace::Finished&& finished) {
  // Parts of another operation, and what is no operation, count with that or not at all.
  if (finished.event.category != "op" || !finished.event.is_outermost) return;
  static thread_local bool is_writing = false;  // the output's own operations are not profiled
  if (is_writing) return;
  std::string lines;
  {
    const std::lock_guard lock(state().mutex);
    if (!state().is_on) return;
    state().profiler.add(std::move(finished));
    lines = state().profiler.ready_lines();
  }
  is_writing = true;
  write_out(lines);
  is_writing = false;
}

}  // namespace

void Profiler::add(trace::Finished finished) { pending_.push_back(std::move(finished)); }

void Profiler::take_front(std::string& lines) {
  const trace::Finished front = std::move(pending_.front());
  pending_.pop_front();
  const bool is_on_cpu = front.work.empty();
  try {
    const int64_t time_ns = is_on_cpu ? front.event.duration_ns : front.gpu_ns();
    auto& [calls, total] =
        sums_[{front.event.name, is_on_cpu ? "cpu" : cat(front.work.front().stream.device)}];
    ++calls;
    total += time_ns;
    lines += cat(front.event.name, "_kernel: ", milliseconds(static_cast<double>(time_ns) * 1e-6),
                 "ms\n");
  } catch (const Error&) {  // the failure itself is raised where the GPU is used next
    ++lost_;
  }
}

std::string Profiler::ready_lines() {
  std::string lines;
  const auto is_ready = [this] {
    try {
      return pending_.front().is_done();
    } catch (const Error&) {
      return true;  // take_front finds out as well
    }
  };
  while (!pending_.empty() && is_ready()) take_front(lines);
  return lines;
}

std::string Profiler::remaining_lines() {
  std::string lines;
  while (!pending_.empty()) take_front(lines);
  return lines;
}

std::vector<ProfileRow> Profiler::rows() const {
  std::vector<ProfileRow> rows;
  int64_t all = 0;
  for (const auto& [key, sum] : sums_) all += sum.second;
  for (const auto& [key, sum] : sums_) {
    const auto [calls, ns] = sum;
    const double total_ms = static_cast<double>(ns) * 1e-6;
    rows.push_back({key.first, key.second, calls, total_ms, total_ms / static_cast<double>(calls),
                    all > 0 ? static_cast<double>(ns) / static_cast<double>(all) : 0.0});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ProfileRow& a, const ProfileRow& b) {
    return a.total_ms > b.total_ms;
  });
  return rows;
}

std::string to_text(const std::vector<ProfileRow>& rows) {
  size_t width = 9;
  for (const ProfileRow& row : rows) width = std::max(width, row.name.size());
  std::string text;
  char line[128];
  const auto add = [&](const std::string& name, const char* rest) {
    text += name + std::string(width - name.size(), ' ') + rest + '\n';
  };
  std::snprintf(line, sizeof line, "  %-8s %8s %12s %12s %7s", "device", "calls", "total ms",
                "mean ms", "share");
  add("operation", line);
  for (const ProfileRow& row : rows) {
    std::snprintf(line, sizeof line, "  %-8s %8lld %12.4f %12.4f %6.1f%%", row.device.c_str(),
                  static_cast<long long>(row.calls), row.total_ms, row.mean_ms, row.share * 100.0);
    add(row.name, line);
  }
  return text;
}

void enable_profiling(bool is_on) {
  static const int registered = std::atexit([] {
    if (state().process.is_here()) enable_profiling(false);  // not at the end of a fork
  });
  (void)registered;
  std::string text;
  {
    const std::lock_guard lock(state().mutex);
    state().process = {};
    if (state().is_on == is_on) return;
    state().is_on = is_on;
    if (is_on) {
      state().profiler = {};
    } else {
      text = state().profiler.remaining_lines();
      text += to_text(state().profiler.rows());
      const int64_t lost = state().profiler.lost_count();
      if (lost > 0) text += cat(lost, " operations have no time: the GPU failed\n");
    }
    trace::set_listener(is_on ? &listen : nullptr);
  }
  write_out(text);
}

bool is_profiling() {
  const std::lock_guard lock(state().mutex);
  return state().is_on;
}

std::vector<ProfileRow> profiling_rows() {
  std::string lines;
  std::vector<ProfileRow> rows;
  {
    const std::lock_guard lock(state().mutex);
    lines = state().profiler.remaining_lines();
    rows = state().profiler.rows();
  }
  write_out(lines);
  return rows;
}

std::string profiling_summary() { return to_text(profiling_rows()); }

void set_profiling_output(std::function<void(const std::string& text)> write) {
  {
    const std::lock_guard lock(state().mutex);
    state().write.swap(write);
  }
  // The one before dies without the lock: what it holds may wait for a thread that ends a span.
}

}  // namespace cuop
