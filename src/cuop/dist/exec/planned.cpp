#include "cuop/dist/exec/planned.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <type_traits>

#include "cuop/core/lru_cache.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/packed.h"
#include "cuop/dist/strict.h"

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
  static_assert(std::is_trivially_copyable_v<Machine> && sizeof(Machine) == 21 * sizeof(double));
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

/// Whether one rank has all inputs.
bool is_rooted(const std::vector<Placement>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Placement& x) { return x.sharding.single_rank() >= 0; });
}

/// Whether some rank has all of it.
bool is_whole_somewhere(const Placement& x) {
  if (element_count(x.shape) == 0) return true;
  const std::vector<Box> owners = x.sharding.owner_boxes(x.shape);
  return std::find(owners.begin(), owners.end(), whole_box(x.shape)) != owners.end();
}

/// What the plan makes whole that lies in parts; "" when nothing.
std::string gathered_by(const Plan& plan, const CallOptions& options,
                        const std::vector<Placement>& inputs) {
  for (const PlanStep& step : plan.steps) {
    if (step.whole_on < 2) continue;  // one rank: its block of a result that lies in blocks
    return cat(step.text, " makes it whole on ", step.whole_on, " ranks (",
               format_bytes(step.bytes), " moved)");
  }
  const int rank = plan.outputs.at(0).sharding.single_rank();
  if (rank < 0 || options.output) return "";
  const auto parted = std::find_if_not(inputs.begin(), inputs.end(), is_whole_somewhere);
  if (parted == inputs.end()) return "";
  return cat(parted->name, ' ', parted->shape, ": ", parted->sharding, " -> on rank ", rank,
             " makes it whole there (", format_bytes(plan.bytes()), " moved)");
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
  using Known = LruCache<std::string, std::shared_ptr<const Planned>>;
  auto& known = of_thread([] { return new Known(128); });
  const std::string key = key_of(operation, options, inputs, output, machine);
  if (const auto* found = known.find(key)) return *found;
  const trace::Span span(cat("plan ", operation.text), "plan");
  Plan plan = operation.plan({inputs, output, machine, options.strategy});
  plan.call_seconds = is_rooted(inputs) ? machine.call_overhead : machine.sharded_call_overhead;
  const uint64_t hash = plan.hash();
  std::string label = cat(plan.op, " [", plan.strategy, ']');
  const auto made =
      std::make_shared<const Planned>(Planned{std::move(plan), hash, std::move(label)});
  known.put(key, made);
  return made;
}

namespace {

/// A rooted call, by all that its plan depends on.
struct RootedCall {
  std::string text, strategy;
  std::vector<Header> inputs;
  int ranks = 0;
  Machine machine;
  std::shared_ptr<const Planned> made = {};

  bool is(const Operation& operation, const CallOptions& options,
          const std::vector<Header>& headers, int count, const Machine& figures) const {
    return ranks == count && text == operation.text && strategy == options.strategy &&
           inputs == headers && std::memcmp(&machine, &figures, sizeof machine) == 0;
  }
};

}  // namespace

std::shared_ptr<const Planned> planned_at_root(const Operation& operation,
                                               const CallOptions& options,
                                               const std::vector<Header>& inputs, int ranks,
                                               const Machine& machine) {
  constexpr size_t kLast = 8;  // calls of a program that makes the same ones in turn
  auto& last = of_thread([] { return new std::array<RootedCall, kLast>; });
  thread_local size_t next = 0;
  for (const RootedCall& call : last) {
    if (call.is(operation, options, inputs, ranks, machine)) return call.made;
  }
  const Sharding at_root = Sharding::on_rank(Mesh::line(ranks), 0);
  auto made = planned(operation, options, placements_on(operation.names, inputs, at_root), at_root,
                      machine);
  last[next++ % kLast] = {operation.text, options.strategy, inputs, ranks, machine, made};
  return made;
}

std::shared_ptr<const Planned> planned_openly(const Operation& operation,
                                              const CallOptions& options,
                                              const std::vector<Placement>& inputs,
                                              const Machine& machine) {
  auto made = planned(operation, options, inputs, options.output, machine);
  if (!is_strict()) return made;
  const std::string reason = gathered_by(made->plan, options, inputs);
  if (reason.empty()) return made;
  std::set<std::string> others;
  CallOptions forced = options;
  forced.strategy.clear();  // a plan of a forced one may know no others
  const auto open = planned(operation, forced, inputs, options.output, machine);
  for (const Candidate& candidate : open->plan.candidates) {
    const bool is_known =
        candidate.strategy == options.strategy || candidate.strategy == forced.strategy;
    if (is_known || !candidate.is_feasible) continue;
    forced.strategy = candidate.strategy;
    const auto other = planned(operation, forced, inputs, options.output, machine);
    if (gathered_by(other->plan, options, inputs).empty()) others.insert(forced.strategy);
  }
  refuse_to_gather(operation.text, reason,
                   cat("redistribute, gather_all or gather before this call",
                       others.empty() ? "" : cat(", or force strategy ", join(others, " or "))));
}

}  // namespace cuop::dist
