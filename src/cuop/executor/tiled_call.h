// The frame of every call on arrays that may be larger than memory. They lie on rank 0's host; all
// ranks make the same call, agree on it, on the memory that there is and so on the plan, make their
// tiles, and rank 0 gets the result on its host.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cuop/dist/dist_tensor.h"
#include "cuop/executor/resources.h"
#include "cuop/executor/tile_plan.h"
#include "cuop/executor/tile_problem.h"

namespace cuop::executor {

class PassLog;

/// What came of a call, on every rank.
struct TiledReport {
  TilePlan plan;  ///< of several passes that which takes most memory
  Device device = kCpu;
  double seconds = 0;    ///< measured
  int64_t peak = 0;      ///< bytes on the device that had most at a time
  int64_t halvings = 0;  ///< how often memory was short on the rank that met it most
  int64_t passes = 0;    ///< over the host's memory; none: the ranks shared the arrays as they are
  double predicted = 0;  ///< seconds of all passes
  int64_t shared = 0;    ///< bytes from other devices to that which got most
};

struct TiledOptions {
  MemoryLimits limits = {};
  int64_t least_tiles = 1;  ///< of a device, where the work can be cut so often
  /// On rank 0, after each of its steps: those done and all.
  std::function<void(int64_t done, int64_t all)> on_progress = {};
  std::shared_ptr<TiledReport> report = {};  ///< where it is wanted
  /// Of an earlier call of the same inputs that was cut off: boxes of the result that `into` has
  /// already. The same on all ranks; tiles that they cover are left out.
  std::vector<Box> done = {};
  /// On the rank that made it, on any thread, when a tile of the result is in its place. What comes
  /// to the root at the end of the call, from ranks that do not reach its memory, is told there and
  /// then. Not called of sums that the ranks share.
  std::function<void(const Box& output)> on_tile = {};
  /// What is planned for, the same on all ranks; where none is given the devices as they are now.
  std::optional<TileMachine> machine = {};
  /// Of calls in passes (passes.h): where they keep what a later run can go on with.
  std::shared_ptr<PassLog> log = {};
};

/// Collective; inputs are read on rank 0 and undefined elsewhere, undefined ones at the end are
/// left out, those on GPUs are copied to the host. The result, on rank 0 alone, goes into `into`
/// where that is given: a tensor of the host of the result's shape and dtype; other processes may
/// give theirs over the same memory, such as a file that all map. MemoryError, naming
/// the least memory that would do, where no plan fits.
Tensor run_tiled(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                 const std::vector<Tensor>& inputs, const TiledOptions& options = {},
                 const Tensor& into = {});

/// Collective: shapes and dtypes of rank 0's arrays, on every rank. ExecutionError when one is
/// missing there.
std::vector<Header> agree_headers(dist::Communicator& comm, const std::string& call,
                                  const std::vector<Tensor>& inputs, const TiledOptions& options);

/// Collective: the plan for inputs that need not be there, the same on all ranks.
TilePlan plan_tiled(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                    const std::vector<Header>& inputs, const TiledOptions& options = {});

}  // namespace cuop::executor
