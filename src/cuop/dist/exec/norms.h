// 2-norms over a grid that lies in blocks: each rank's sums of squares are gathered on every host
// and added there in the order of the grid's rows, whoever has them. On GPUs that is work of a
// stream of its own, so that later sweeps run meanwhile.
#pragma once

#include <memory>
#include <vector>

#include "cuop/backend/event.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/box.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/memory/workspace.h"

namespace cuop::dist {

/// `start`, later `wait`. Several may be under way at once.
class NormReduction {
 public:
  /// `blocks[r]` is what rank r has of the grid, nothing where it has no cells.
  NormReduction(Communicator& comm, std::vector<Box> blocks, Device device);

  /// float64 [n, rows of this rank's block]: for each of n norms the sums of squares of each row.
  /// They have been written when the current stream has done what it holds now, and stay as they
  /// are until `wait` returns. Collective: they are on their way to every host behind that,
  /// without the current stream.
  void start(const Tensor& squares);

  /// The n norms, the same on every rank. Waits for what was marked and for nothing that the
  /// current stream was given since. Sums over blocks of whole rows are the same bits for any
  /// number of ranks; rows that are cut are added piece by piece.
  std::vector<double> wait();

 private:
  using Event = backend::Event;

  /// Takes what is marked, and room for all ranks'; the stream aside goes on behind what wrote it.
  void prepare(const Tensor& squares);

  Communicator& comm_;
  std::vector<Box> blocks_;
  std::vector<size_t> order_;  ///< ranks with cells, by their first row
  int64_t sums_ = 0;           ///< of all ranks, for one norm
  Device device_;
  Tensor squares_;
  Tensor all_;  ///< of all ranks, where the grid lies; of a single one its own

  // On GPUs.
  std::unique_ptr<backend::OwnedStream> aside_;
  std::unique_ptr<Event> is_written_, is_there_;
  std::unique_ptr<memory::Workspace> locked_;  ///< of the host, as large as `all_`
  int64_t locked_bytes_ = 0;
};

/// The norms of `squares` at once.
std::vector<double> norms_of_rows(Communicator& comm, const Tensor& squares,
                                  const std::vector<Box>& blocks);

}  // namespace cuop::dist
