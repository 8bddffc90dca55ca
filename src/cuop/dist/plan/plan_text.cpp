// How a plan shows itself.
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "cuop/core/json.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {
namespace {

template <size_t N>
std::string scaled(double value, double base, const std::array<const char*, N>& units) {
  size_t unit = 0;
  while (unit + 1 < N && value >= base) {
    value /= base;
    ++unit;
  }
  std::ostringstream out;
  out << std::setprecision(value < 100 ? 3 : 4) << value << ' ' << units[unit];
  return out.str();
}

void write(JsonWriter& json, const char* key, const std::vector<Placement>& placements) {
  json.key(key).open('[');
  for (const Placement& placement : placements) {
    json.object("name", placement.name, "shape", placement.shape, "dtype", cat(placement.dtype),
                "sharding", cat(placement.sharding));
  }
  json.close();
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds <= 0) return "0 s";
  return scaled(seconds * 1e9, 1000.0, std::array<const char*, 4>{"ns", "us", "ms", "s"});
}

std::string Plan::to_string() const {
  return cat(op, ": ", strategy, detail.empty() ? "" : " ", detail, " on ", ranks,
             ranks == 1 ? " rank, " : " ranks, ", format_bytes(bytes()), " moved, ",
             format_bytes(memory_per_rank), " a rank, ", format_seconds(seconds()), " predicted");
}

std::string Plan::explain() const {
  std::ostringstream out;
  out << to_string() << '\n';
  for (const PlanStep& step : steps) {
    out << "  " << std::left << std::setw(8) << name(step.kind) << step.text;
    if (step.bytes > 0) {
      out << ": " << format_bytes(step.bytes) << " (busiest rank " << format_bytes(step.rank_bytes)
          << ", " << step.messages << " messages)";
    }
    if (step.flops > 0) out << ": " << std::setprecision(3) << step.flops << " flop on a rank";
    out << ", " << format_seconds(step.seconds) << '\n';
  }
  if (candidates.size() > 1) out << "  considered\n";
  for (const Candidate& candidate : candidates) {
    if (candidates.size() < 2) break;
    const bool is_chosen = candidate.strategy == strategy && candidate.detail == detail;
    out << "  " << (is_chosen ? "* " : "  ") << candidate.strategy << ' ' << candidate.detail
        << ": " << format_bytes(candidate.bytes) << " moved, " << format_bytes(candidate.memory)
        << " a rank, " << format_seconds(candidate.seconds)
        << (candidate.is_feasible ? "" : ", does not fit the memory") << '\n';
  }
  return out.str();
}

std::string Plan::to_json() const {
  std::ostringstream out;
  out << std::setprecision(9);
  JsonWriter json(out);
  json.open('{').members("op", op, "strategy", strategy, "detail", detail, "ranks", ranks, "bytes",
                         bytes(), "memory_per_rank", memory_per_rank, "flops", flops(), "seconds",
                         seconds());
  write(json, "inputs", inputs);
  write(json, "outputs", outputs);
  json.key("settings").open('{');
  for (const auto& [key, value] : settings) json.members(key, value);
  json.close().key("steps").open('[');
  for (const PlanStep& step : steps) {
    json.object("kind", name(step.kind), "text", step.text, "bytes", step.bytes, "rank_bytes",
                step.rank_bytes, "messages", step.messages, "flops", step.flops, "seconds",
                step.seconds);
  }
  json.close().key("candidates").open('[');
  for (const Candidate& candidate : candidates) {
    json.object("strategy", candidate.strategy, "detail", candidate.detail, "bytes",
                candidate.bytes, "memory", candidate.memory, "seconds", candidate.seconds,
                "is_feasible", candidate.is_feasible);
  }
  json.close().close();
  return out.str();
}

}  // namespace cuop::dist
