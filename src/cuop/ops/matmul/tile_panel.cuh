// A tile's lines (rows of a, columns of b) on their way to shared memory, a step of the depth at a
// time.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/block_copy.cuh"
#include "cuop/jit/kernels/product_sum.cuh"
#include "cuop/ops/matmul/matmul_arguments.cuh"

namespace cuop::jit {

/// How an operand lies in memory: neighbours along its depth or along its lines, and as many of
/// them as one access takes; 1 where no neighbours are next to each other.
template <bool IsAlongDepth, int Width>
struct Reading {
  static constexpr bool kIsAlongDepth = IsAlongDepth;
  static constexpr int kWidth = Width;
};

template <class T, int Tile, int Threads, class Reading>
class TilePanel {
  static constexpr int kItem = static_cast<int>(sizeof(T));
  static constexpr int kWidth = Reading::kWidth;

 public:
  static constexpr bool kIsAlongDepth = Reading::kIsAlongDepth;
  static constexpr int kDepth = kPanelDepthBytes / kItem;
  static constexpr int kBytes = panel_bytes(kItem, Tile, kIsAlongDepth);

 private:
  /// Elements from one row of the room to the next, the rows, and the elements of each.
  static constexpr int kRowStep = panel_row_bytes(kItem, Tile, kIsAlongDepth) / kItem;
  static constexpr int kRows = kIsAlongDepth ? Tile : kDepth;
  static constexpr int kLength = kIsAlongDepth ? kDepth : Tile;
  static constexpr int kPacksOfRow = kLength / kWidth, kPacks = kRows * kPacksOfRow;
  /// From one turn of a thread to its next: so many turns serve one row, or one so many rows.
  static constexpr int kTurnsOfRow = kPacksOfRow > Threads ? kPacksOfRow / Threads : 1;
  static constexpr int kRowsOfTurn = kPacksOfRow > Threads ? 1 : Threads / kPacksOfRow;

 public:
  /// Accesses of one thread in one step.
  static constexpr int kTurns = divide_up(kPacks, Threads);

  CUOP_FN TilePanel(const T* data, int64_t line_step, int64_t depth_step, int64_t first,
                    int64_t lines, int64_t depth)
      : data_(data + first * line_step), depth_left_(depth) {
    row_step_ = kIsAlongDepth ? line_step : depth_step;
    item_step_ = kIsAlongDepth ? depth_step : line_step;
    lines_ = lines - first < Tile ? static_cast<int>(lines - first) : Tile;
  }

  /// Element k of a line in the room of a step.
  CUOP_FN static T* element(unsigned char* room, int line, int k) {
    return reinterpret_cast<T*>(room) + (kIsAlongDepth ? line * kRowStep + k : k * kRowStep + line);
  }

  /// Starts to bring the next step; zeros where the panel ends.
  template <class Copies>
  CUOP_FN void fetch(unsigned char* room, Copies& copies) {
    const int thread = static_cast<int>(threadIdx.x);
    const int steps = steps_left();
    const int rows = kIsAlongDepth ? lines_ : steps, length = kIsAlongDepth ? steps : lines_;
    const int first_row = thread / kPacksOfRow, first_item = thread % kPacksOfRow * kWidth;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int row = first_row + turn / kTurnsOfRow * kRowsOfTurn;
      const int item = first_item + turn % kTurnsOfRow * Threads * kWidth;
      if (kPacks % Threads != 0 && row >= kRows) break;
      int valid = row < rows ? length - item : 0;
      valid = valid < 0 ? 0 : valid > kWidth ? kWidth : valid;
      const T* from = valid > 0 ? data_ + row * row_step_ + item * item_step_ : data_;
      copy(reinterpret_cast<T*>(room) + row * kRowStep + item, from, valid, copies);
    }
  }
  CUOP_FN void advance() {
    data_ += kDepth * (kIsAlongDepth ? item_step_ : row_step_);
    depth_left_ -= kDepth;
  }

  /// Whether the next step has nothing to leave out.
  CUOP_FN bool is_whole() const { return lines_ == Tile && depth_left_ >= kDepth; }
  static constexpr int kWholeBytes = kRows * kLength * kItem;
  /// The same as fetch for a whole step, by one warp.
  CUOP_FN void fetch_rows(unsigned char* room, RowArrival& arrival) {
#pragma unroll 1
    for (int row = static_cast<int>(threadIdx.x); row < kRows; row += 32) {
      arrival.start(reinterpret_cast<T*>(room) + row * kRowStep, data_ + row * row_step_,
                    kLength * kItem);
    }
  }

 private:
  CUOP_FN int steps_left() const {
    return depth_left_ < kDepth ? static_cast<int>(depth_left_) : kDepth;
  }

  template <class Copies>
  CUOP_FN static void copy(T* to, const T* from, int valid, Copies& copies) {
    constexpr int kBytesOfPack = kWidth * kItem;
    if constexpr (Copies::kAreStarted && kBytesOfPack >= 4) {
      copies.template start<kBytesOfPack>(to, from, valid * kItem);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) to[k] = k < valid ? from[k] : T{};
    }
  }

  const T* data_;  ///< the first line's first element of the next step
  int64_t row_step_, item_step_, depth_left_;
  int lines_;
};

}  // namespace cuop::jit
