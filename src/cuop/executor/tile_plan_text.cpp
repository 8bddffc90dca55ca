// Plans of tiles as text.
#include <iomanip>
#include <sstream>

#include "cuop/core/byte_size.h"
#include "cuop/core/json.h"
#include "cuop/core/text.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/executor/tile_plan.h"

namespace cuop::executor {

namespace {

std::string name_of(const std::string& strategy, const std::string& detail) {
  return detail.empty() ? strategy : cat(strategy, " ", detail);
}

}  // namespace

std::string TilePlan::to_string() const {
  std::string text = cat(op, " [", name_of(strategy, detail), "]: ", tiles(), " tiles of ", steps,
                         " steps, ", format_bytes(memory), " of ", format_bytes(limit),
                         " on each of ", devices(), " devices, ", dist::format_seconds(seconds));
  if (!is_feasible) text += cat("; not feasible, needed are ", format_bytes(smallest));
  return text;
}

std::string TilePlan::explain() const {
  std::ostringstream out;
  out << to_string() << '\n';
  out << "  result   " << result << ", cut into (" << join(cuts) << ")";
  if (!order.empty()) out << ", loops over dimensions " << join(order) << ", the innermost last";
  out << '\n';
  out << "  moved    " << format_bytes(uploaded) << " to the busiest device, ";
  if (shared > 0) out << format_bytes(shared) << " to it from other devices, ";
  out << format_bytes(downloaded) << " back, " << format_bytes(data_bytes) << " of data in all\n";
  out << "  memory   " << format_bytes(memory) << " at most, " << format_bytes(limit)
      << " may be used, with less than " << format_bytes(smallest) << " there is no plan\n";
  out << "  time     " << dist::format_seconds(seconds) << " predicted, of which arithmetic "
      << dist::format_seconds(compute) << ", floor " << dist::format_seconds(floor) << '\n';
  if (candidates.size() > 1) out << "  considered\n";
  for (const TileCandidate& candidate : candidates) {
    if (candidates.size() < 2) break;
    const bool is_chosen = candidate.strategy == strategy && candidate.detail == detail;
    out << "  " << (is_chosen ? "* " : "  ") << name_of(candidate.strategy, candidate.detail)
        << ": " << candidate.tiles << " tiles of " << candidate.steps << " steps, "
        << format_bytes(candidate.memory) << " a device, "
        << dist::format_seconds(candidate.seconds);
    if (!candidate.is_feasible) {
      out << ", does not fit, needed are " << format_bytes(candidate.smallest);
    }
    out << '\n';
  }
  return out.str();
}

std::string TilePlan::to_json() const {
  std::ostringstream out;
  out << std::setprecision(9);
  JsonWriter json(out);
  json.open('{').members("op", op, "strategy", strategy, "detail", detail, "devices", devices(),
                         "busy", busy, "shape", result.shape, "dtype", cat(result.dtype), "tiles",
                         tiles(), "steps", steps, "cuts", cuts, "order", order, "lengths", lengths);
  json.members("memory", memory, "limit", limit, "smallest", smallest, "feasible", is_feasible,
               "uploaded", uploaded, "shared", shared, "downloaded", downloaded, "data_bytes",
               data_bytes, "compute", compute, "seconds", seconds, "floor", floor);
  json.key("candidates").open('[');
  for (const TileCandidate& candidate : candidates) {
    json.object("strategy", candidate.strategy, "detail", candidate.detail, "tiles",
                candidate.tiles, "steps", candidate.steps, "memory", candidate.memory, "smallest",
                candidate.smallest, "seconds", candidate.seconds, "feasible",
                candidate.is_feasible);
  }
  json.close().close();
  return out.str();
}

}  // namespace cuop::executor
