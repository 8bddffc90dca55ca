// Plans of calls, remembered.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/exec/operation.h"
#include "cuop/dist/header.h"

namespace cuop::dist {

/// The call with every argument, the forced strategy included.
std::string full_text(const Operation& operation, const CallOptions& options);
/// Inputs of these names that all lie under one sharding.
std::vector<Placement> placements_on(const std::vector<std::string>& names,
                                     const std::vector<Header>& headers, const Sharding& sharding);
/// A plan with its hash, and what its spans are called: "add [row]".
struct Planned {
  Plan plan;
  uint64_t hash = 0;
  std::string label = {};
};

/// Plans, or returns the plan that the same arguments gave before: planners are pure functions, and
/// the operation's text holds every argument of its own.
std::shared_ptr<const Planned> planned(const Operation& operation, const CallOptions& options,
                                       const std::vector<Placement>& inputs,
                                       const std::optional<Sharding>& output,
                                       const Machine& machine);

/// The same for inputs that all lie on rank 0 of so many, where the result is wanted: found again
/// without what `planned` looks by, which takes longer than a short call's work.
std::shared_ptr<const Planned> planned_at_root(const Operation& operation,
                                               const CallOptions& options,
                                               const std::vector<Header>& inputs, int ranks,
                                               const Machine& machine);

/// As `planned`. Inside a StrictScope GatherError for a plan that makes a tensor whole which lies
/// in parts: it names the tensor, how it lies, the bytes, the calls that do it openly, and the
/// strategies that do without.
std::shared_ptr<const Planned> planned_openly(const Operation& operation,
                                              const CallOptions& options,
                                              const std::vector<Placement>& inputs,
                                              const Machine& machine);

}  // namespace cuop::dist
