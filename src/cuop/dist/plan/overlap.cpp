#include "cuop/dist/plan/overlap.h"

#include <algorithm>
#include <cmath>

#include "cuop/core/divide_up.h"
#include "cuop/core/text.h"

namespace cuop::dist {
namespace {

/// Seconds that a chunk of its own costs a move: each is started for itself.
double start_of(const PlanStep& step, const Machine& machine) {
  return start_seconds(machine,
                       {step.rank_bytes, step.messages, step.network_bytes,
                        step.network_bytes > 0 ? step.messages : 0},
                       1);
}

}  // namespace

double overlapped_seconds(double compute, double moves, int64_t chunks, double each) {
  if (chunks <= 1) return compute + moves + each;
  const auto count = static_cast<double>(chunks);
  return std::max(compute, moves) + std::min(compute, moves) / count + count * each;
}

int64_t best_chunks(double compute, double moves, double each, int64_t most) {
  most = std::max<int64_t>(most, 1);
  const double wanted =
      each > 0.0 ? std::sqrt(std::min(compute, moves) / each) : static_cast<double>(most);
  const auto near = static_cast<int64_t>(std::clamp(wanted, 1.0, static_cast<double>(most)));
  int64_t best = 1;
  for (const int64_t chunks : {near, std::min(near + 1, most)}) {
    if (overlapped_seconds(compute, moves, chunks, each) <
        overlapped_seconds(compute, moves, best, each)) {
      best = chunks;
    }
  }
  return best;
}

int64_t most_chunks(const std::vector<Box>& blocks, int axis, int64_t unit) {
  constexpr int64_t kMostUseful = 8;
  int64_t longest = 0;
  for (const Box& block : blocks) {
    if (!block.empty()) longest = std::max(longest, block.interval(axis).length());
  }
  return std::min(longest / unit, kMostUseful);
}

void overlap_moves(Plan& plan, const Machine& machine, const std::vector<size_t>& moves,
                   size_t compute, int64_t most,
                   const std::function<bool(int64_t chunks)>& is_possible,
                   std::optional<double> others) {
  plan.settings["chunks"] = 1;
  double seconds = 0, each = 0;
  for (const size_t i : moves) {
    seconds += plan.steps[i].seconds;
    each += start_of(plan.steps[i], machine);
  }
  const double hidden = machine.overlap * seconds, all = plan.steps[compute].seconds;
  const double work = others.value_or(all);
  if (hidden <= 0) return;
  int64_t chunks = best_chunks(work, hidden, each, most);
  while (chunks > 1 && is_possible && !is_possible(chunks)) --chunks;
  const double together = std::max(all, overlapped_seconds(work, hidden, chunks, each));
  const double left = seconds - hidden + together - all;
  if (chunks == 1 || left >= seconds) return;
  for (const size_t i : moves) plan.steps[i].seconds *= left / seconds;
  plan.steps[compute].text += cat(", in ", chunks, " chunks while others move");
  plan.settings["chunks"] = chunks;
}

int64_t chunks_of(const Plan& plan) {
  const auto found = plan.settings.find("chunks");
  return found == plan.settings.end() ? 1 : found->second;
}

std::vector<Box> chunk_of(std::vector<Box> blocks, int axis, int64_t chunks, int64_t chunk,
                          int64_t unit) {
  for (Box& block : blocks) {
    if (block.empty()) continue;
    const Interval whole = block.interval(axis);
    const Interval units = split_evenly({0, divide_up(whole.length(), unit)}, chunks, chunk);
    block.set_interval(axis, {std::min(whole.low + units.low * unit, whole.high),
                              std::min(whole.low + units.high * unit, whole.high)});
  }
  return blocks;
}

}  // namespace cuop::dist
