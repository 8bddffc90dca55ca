// Where a call keeps its arrays and what it has done, so that a later run can go on with it. The
// files of the command line are one (python/cuop/cli/partial_output.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuop/core/box.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/tensor.h"
#include "cuop/dist/header.h"

namespace cuop::executor {

/// How far a call in passes is.
struct PassState {
  int64_t number = 0;                ///< of the pass, from 0
  std::string way = {};              ///< what the passes are
  std::vector<int64_t> counts = {};  ///< what the call needs besides to go on
};

/// A tile that is in its place, and what is to be known of it.
struct DoneTile {
  Box box;
  std::vector<double> figures = {};
};

/// On every rank an object; errors of one are raised on all.
class PassLog : NonCopyable {
 public:
  virtual ~PassLog() = default;

  /// Whether what is done is kept, and not the arrays alone; the same on all ranks.
  virtual bool is_kept() const = 0;

  // On rank 0.

  /// The pass that an earlier run of the same call was in.
  virtual std::optional<PassState> left() = 0;
  /// The arrays of the call, in turns: new ones, for which room is taken, or what has been left.
  virtual void open(const std::vector<dist::Header>& arrays) = 0;
  /// What pass `number` writes into, or has.
  virtual Tensor array(int64_t number) = 0;
  /// A pass begins; the one before is finished. Tiles of it that are there already.
  virtual std::vector<DoneTile> begin(const PassState& state) = 0;
  /// What the other ranks need to reach its array and to note tiles.
  virtual std::string place() = 0;

  // On another rank.

  /// The array in this process's memory; undefined where it is out of reach.
  virtual Tensor join(const std::string& place, const dist::Header& array) = 0;

  // On each, from any thread.

  virtual void note(const DoneTile& tile) = 0;
};

}  // namespace cuop::executor
