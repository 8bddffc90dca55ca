// Calls in several passes over the host's memory: pass n writes into array n, of as many arrays as
// take turns, and reads what the pass before has written. With a log a later run goes on where this
// one is cut off: behind the passes that are finished, and the tiles of the one that is not.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/dist_tensor.h"
#include "cuop/executor/call_plan.h"
#include "cuop/executor/pass_log.h"
#include "cuop/executor/tiled_call.h"

namespace cuop::executor {

/// What a pass is beside its operation.
struct PassSettings {
  /// The part of the pass's array that its result becomes; all of it without.
  std::function<Tensor(const Tensor& array)> view = {};
  /// What is noted with a tile that is in its place; nothing is noted of a tile without.
  std::function<std::optional<std::vector<double>>(const Box& output)> figures = {};
  /// On rank 0, of each tile that an earlier run has made; errors are raised on all ranks.
  std::function<void(const DoneTile& tile)> restore = {};
};

/// Passes are planned on the ranks' devices. Collective.
PlanPass on_ranks(const dist::CommunicatorPtr& comm, const TiledOptions& options);

/// The passes of one call. All calls are collective.
class Passes {
 public:
  Passes(const dist::CommunicatorPtr& comm, const std::string& call, const TiledOptions& options);

  /// Whether a later run may go on with them.
  bool is_kept() const { return is_logged() && options_.log->is_kept(); }
  /// The pass that an earlier run was cut off in, on every rank.
  const std::optional<PassState>& left() const { return left_; }
  /// Before the first pass: the arrays that passes write into, in turns. The log takes room for all
  /// of them.
  void open(std::vector<Header> arrays);
  /// What pass `number` has made, on rank 0.
  Tensor made(int64_t number);

  /// One pass; what it has made on rank 0.
  Tensor run(const PassState& state, const TileOperation& operation,
             const std::vector<Tensor>& inputs, const PassSettings& settings = {});

 private:
  bool is_logged() const { return options_.log != nullptr; }
  size_t slot(int64_t number) const { return static_cast<size_t>(number) % headers_.size(); }
  /// The pass's array, on ranks that reach it, and boxes that are done, on all.
  Tensor begin(const PassState& state, const PassSettings& settings, std::vector<Box>& done);
  void add_to_report(const TiledReport& pass);

  dist::CommunicatorPtr comm_;
  std::string call_;
  TiledOptions options_;
  std::vector<Header> headers_;
  std::vector<Tensor> arrays_;
  std::optional<PassState> left_;
};

/// The way of a call whose arrays fit: in one pass.
inline constexpr const char* kAtOnce = "at once";
/// A way of a call, and the number of its last pass where they are kept.
struct KnownWay {
  std::string way;
  int64_t last = 0;
};
/// The way that the call goes: of an earlier run that has left its passes theirs, else the plan's,
/// which must be feasible. ExecutionError when this call does not know it.
std::string way_of(const Passes& passes, const CallPlan& plan, const std::vector<KnownWay>& known);

/// run_tiled as the only pass of a call.
Tensor run_logged(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                  const std::vector<Tensor>& inputs, const TiledOptions& options);

}  // namespace cuop::executor
