#include "cuop/executor/known_plans.h"

#include <algorithm>
#include <iomanip>
#include <memory>

#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/dist/cost/machine_figures.h"

namespace cuop::executor {
namespace {

constexpr size_t kMostPlans = 256;

std::string key_of(const std::string& text, const TileProblem& problem, const TileMachine& machine,
                   int64_t least_tiles) {
  std::string key =
      cat(std::setprecision(17), text, problem.wire.text(), "; tiles ", least_tiles, "; ",
          machine.devices, " devices of ", machine.memory, " bytes, ", machine.upload, " up, ",
          machine.download, " down, ", machine.duplex, ", ", machine.stretch, " a stretch, ",
          machine.between, " between; ", dist::to_text(machine.device));
  // Parts of a longer call may have one text and inputs in which they do not differ.
  const Box whole = whole_box(problem.output.shape);
  const Interval range{0, std::max<int64_t>(1, problem.summed)};
  key += cat("; ", problem.output, " of ", problem.element_bytes(), " bytes, ", problem.flops,
             " flops, ", problem.efficiency, problem.speed == nullptr ? "" : " measured", "; ",
             problem.summed, " summed");
  for (const int dim : problem.cut_dims) key += cat(", cut ", dim);
  key += cat("; placed ", problem.placed_order);
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    key += cat("; ", problem.inputs[i]);
    if (!whole.empty()) key += cat(", ", problem.needed(i, whole, range));
  }
  const WorkFigures& on = machine.figures;
  key += cat("; ", on.multiprocessors, on.splits_products ? " split" : "", on.spare.has_copies,
             ", workspace ", on.spare.workspace.value_or(-1), " of ", problem.most_workspace);
  if (problem.scratch && !whole.empty()) key += cat("; ", problem.scratch(whole, range, on));
  return key;
}

}  // namespace

TilePlan plan_once(const std::string& text, const TileProblem& problem, const TileMachine& machine,
                   int64_t least_tiles) {
  // Never destroyed: threads may compute while the process ends.
  static auto& known =
      *new SharedLruCache<std::string, std::shared_ptr<const TilePlan>>(kMostPlans);
  return *known.get(key_of(text, problem, machine, least_tiles), [&] {
    return std::make_shared<const TilePlan>(plan_tiles(problem, machine, least_tiles));
  });
}

}  // namespace cuop::executor
