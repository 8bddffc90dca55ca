#include "cuop/dist/exec/planned.h"

#include <type_traits>

#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/packed.h"

namespace cuop::dist {
namespace {

void put(Packer& key, const Sharding& sharding) {
  key.put(sharding.single_rank());
  const Mesh& mesh = sharding.mesh();
  key.put(mesh.idle());
  key.put(mesh.shape());
  if (sharding.single_rank() >= 0) return;  // which tells all but the names
  for (const std::string& name : mesh.names()) key.put(name);
  const Spec& spec = sharding.spec();
  key.put(spec.ndim());
  for (int dim = 0; dim < spec.ndim(); ++dim) {
    key.put(static_cast<int64_t>(spec.axes(dim).size()));
    for (const std::string& axis : spec.axes(dim)) key.put(axis);
  }
  key.put(static_cast<int64_t>(sharding.blocks().size()));
  for (const auto& [dim, sizes] : sharding.blocks()) {
    key.put(dim);
    key.put(static_cast<int64_t>(sizes.size()));
    for (const int64_t size : sizes) key.put(size);
  }
}

/// All that a plan depends on; different calls give different bytes. Quicker to make than a text.
std::string key_of(const Operation& operation, const CallOptions& options,
                   const std::vector<Placement>& inputs, const std::optional<Sharding>& output,
                   const Machine& machine) {
  Packer key;
  key.put(operation.text);
  key.put(options.strategy);
  static_assert(std::is_trivially_copyable_v<Machine> && sizeof(Machine) == 15 * sizeof(double));
  key.append({reinterpret_cast<const char*>(&machine), sizeof machine});
  key.put(static_cast<int64_t>(inputs.size()));
  for (const Placement& input : inputs) {
    key.put(static_cast<int>(input.dtype));
    key.put(input.shape);
    put(key, input.sharding);
  }
  if (output) put(key, *output);
  return key.take();
}

}  // namespace

std::string full_text(const Operation& operation, const CallOptions& options) {
  return options.strategy.empty() ? operation.text
                                  : operation.text + ", strategy " + options.strategy;
}

std::vector<Placement> placements_on(const std::vector<std::string>& names,
                                     const std::vector<Header>& headers, const Sharding& sharding) {
  std::vector<Placement> placements;
  for (size_t i = 0; i < headers.size(); ++i) {
    placements.push_back({names.at(i), headers[i].shape, headers[i].dtype, sharding});
  }
  return placements;
}

std::shared_ptr<const Planned> planned(const Operation& operation, const CallOptions& options,
                                       const std::vector<Placement>& inputs,
                                       const std::optional<Sharding>& output,
                                       const Machine& machine) {
  thread_local LruCache<std::string, std::shared_ptr<const Planned>> known(128);
  const std::string key = key_of(operation, options, inputs, output, machine);
  if (const auto* found = known.find(key)) return *found;
  const trace::Span span(cat("plan ", operation.text), "plan");
  Plan plan = operation.plan(inputs, output, machine, options.strategy);
  const uint64_t hash = plan.hash();
  std::string label = cat(plan.op, " [", plan.strategy, ']');
  const auto made =
      std::make_shared<const Planned>(Planned{std::move(plan), hash, std::move(label)});
  known.put(key, made);
  return made;
}

}  // namespace cuop::dist
