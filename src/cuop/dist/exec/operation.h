// A distributed operation as a value: a planner (a pure function) and an executor.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/dist_tensor.h"
#include "cuop/dist/plan/plan.h"

namespace cuop::dist {

/// The options of every distributed operation.
struct CallOptions {
  std::string strategy = {};  ///< forces one of the planner's strategies
  std::optional<Sharding> output =
      {};  ///< where the result is wanted; none leaves it where it is made
  std::optional<Machine> machine = {};  ///< figures to plan with, and the memory limit
};

/// What a planner is given beside the operation's own arguments.
struct PlanArguments {
  const std::vector<Placement>& inputs;
  const std::optional<Sharding>& output;  ///< where the result is wanted
  const Machine& machine;
  const std::string& strategy;  ///< that is forced; "" for none
};

struct Operation {
  std::string text;  ///< the call with every argument that must be the same on all ranks
  std::vector<std::string> names;  ///< of the inputs; those that may be left out come last
  std::function<Plan(const PlanArguments& given)> plan;
  std::function<DistTensor(const Plan& plan, const std::vector<DistTensor>& inputs)> execute;
  bool is_on_host = false;  ///< parts on GPUs are copied to the host for it, the result back
  /// The same for another rank of this process, of an operation that writes to its caller's memory.
  std::function<Operation()> for_other_rank = {};
  /// The same where one rank has all inputs whole and keeps the result: nothing is cut or moved.
  std::function<Tensor(const Plan& plan, const std::vector<Tensor>& inputs)> alone = {};
};

}  // namespace cuop::dist
