// Arrays of one rank's process in reach of all ranks: a rank reads the boxes that its tiles need
// and writes its tiles to their place, while the others do theirs. In the ways that are there, the
// first that all ranks can take:
//
//   here    the ranks are threads of the process: views of the arrays themselves
//   host    processes of one host: read and written in the root's memory by the system. A file that
//           all have mapped is written there, and a result whose tiles have no box of it is memory
//           that all share
//   parts   otherwise each rank gets the boxes of all its tiles before the work, into its host's
//           memory, and its results go to the root behind it
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/header.h"
#include "cuop/executor/root_array.h"
#include "cuop/executor/thread_boxes.h"

namespace cuop::executor {

/// The rank that gives a call's arrays and gets its result.
inline constexpr int kRoot = 0;

/// New memory on the root's host that all ranks of the host can map, as tiles need that are no
/// boxes of their array. Not collective.
Tensor new_result(const dist::Communicator& comm, const dist::Header& header);

/// Puts the tile of a box of the result into the result's array.
using PutTile = std::function<void(const Tensor& array, const Box& box, const Tensor& tile)>;

class RootArrays : NonCopyable {
 public:
  enum class Way : uint8_t { kHere, kHost, kParts };

  /// Collective. `arrays` are the root's, on the host; others give none. `headers` are theirs, then
  /// that of the result, which is new or, where it is given, `into` (a view of it too). Another
  /// process gives as `into` its own way to the same memory, of a file that all map.
  /// needs[i][r]: all that rank r reads of array i; of the result what it writes. With `put` boxes
  /// of the result are not its array's, and it puts them there.
  RootArrays(dist::Communicator& comm, int root, const std::vector<Tensor>& arrays,
             const Tensor& into, const std::vector<dist::Header>& headers,
             const std::vector<std::vector<Box>>& needs, PutTile put = {});
  ~RootArrays();

  Way way() const { return way_; }
  const RootArray& input(size_t i) const { return arrays_[i]; }
  /// By which the ranks' GPUs, being all of this process, share what they read; null elsewhere.
  std::shared_ptr<ThreadBoxes> boxes() const { return way_ == Way::kHere ? boxes_ : nullptr; }
  /// A tile of the result goes to its place.
  void write(const Box& box, const Tensor& tile) const;

  /// Collective, when all tiles are written: the result on the root, undefined elsewhere.
  Tensor finish();

 private:
  struct Offer;
  const RootArray& output() const { return arrays_.back(); }

  dist::Communicator& comm_;
  int root_;
  PutTile put_;
  Way way_ = Way::kHere;
  std::vector<RootArray> arrays_;  ///< the result last
  Tensor result_;                  ///< the root's
  std::shared_ptr<ThreadBoxes> boxes_;
  std::vector<Box> written_;  ///< by each rank
  int64_t offered_ = 0;       ///< number under which this process offers its arrays
  bool is_finished_ = false;  ///< all ranks have written
};

}  // namespace cuop::executor
