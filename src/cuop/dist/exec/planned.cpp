#include "cuop/dist/exec/planned.h"

#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"

namespace cuop::dist {

std::string full_text(const Operation& operation, const CallOptions& options) {
  return options.strategy.empty() ? operation.text
                                  : cat(operation.text, ", strategy ", options.strategy);
}

std::vector<Placement> placements_on(const Operation& operation, const std::vector<Header>& headers,
                                     const Sharding& sharding) {
  std::vector<Placement> placements;
  for (size_t i = 0; i < headers.size(); ++i) {
    placements.push_back({operation.names.at(i), headers[i].shape, headers[i].dtype, sharding});
  }
  return placements;
}

std::shared_ptr<const Planned> planned(const Operation& operation, const CallOptions& options,
                                       const std::vector<Placement>& inputs,
                                       const std::optional<Sharding>& output,
                                       const Machine& machine) {
  thread_local LruCache<std::string, std::shared_ptr<const Planned>> known(128);
  std::string key = cat(full_text(operation, options), " | ", to_text(machine));
  for (const Placement& input : inputs) {
    key += cat(" | ", input.dtype, input.shape, input.sharding);
  }
  if (output) key += cat(" -> ", *output);
  if (const auto* found = known.find(key)) return *found;
  const trace::Span span(cat("plan ", operation.text), "plan");
  Plan plan = operation.plan(inputs, output, machine, options.strategy);
  const uint64_t hash = plan.hash();
  const auto made = std::make_shared<const Planned>(Planned{std::move(plan), hash});
  known.put(key, made);
  return made;
}

}  // namespace cuop::dist
