// Operations on the rows of a contiguous matrix, each row shared by a team of threads: who has
// which elements, and numbers on which a team agrees. A team of more than a warp is a whole block.
#pragma once

#include "cuop/jit/kernels/elementwise.cuh"

namespace cuop::jit {

CUOP_FN constexpr int row_threads(int team) { return team <= 32 ? threads_or(128) : team; }

/// A computed value as it lies in memory.
template <class Stored>
CUOP_FN Stored stored(Computed<Stored> value) {
  if constexpr (sizeof(Stored) == sizeof(Computed<Stored>)) {
    return value;
  } else {
    return narrowed<Stored>(value);
  }
}

struct Larger {
  template <class T>
  CUOP_FN T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct Total {
  template <class T>
  CUOP_FN T operator()(T a, T b) const {
    return a + b;
  }
};

/// The values of a team's threads together, for each of them the same bits. Every thread of the
/// block must come to every call. Calls take turns with two places in shared memory: nobody writes
/// to one before all have read from it and met in the call between.
template <int Team, class T>
class Agreement {
 public:
  template <class Op>
  CUOP_FN T operator()(T value, Op together) {
    constexpr int kInWarp = Team < 32 ? Team : 32, kWarps = Team / kInWarp;
    value = among<kInWarp>(value, together);
    if constexpr (kWarps > 1) {
      T* const parts = place();
      const int lane = static_cast<int>(threadIdx.x) % 32;
      if (lane == 0) parts[threadIdx.x / 32] = value;
      __syncthreads();
      value = among<kWarps>(parts[lane % kWarps], together);
    }
    return value;
  }

 private:
  template <int Lanes, class Op>
  CUOP_FN static T among(T value, Op together) {
#pragma unroll
    for (int apart = Lanes / 2; apart > 0; apart /= 2) {
      value = together(value, __shfl_xor_sync(0xffffffffu, value, apart));
    }
    return value;
  }
  CUOP_FN T* place() {
    __shared__ T parts[2][Team / 32];
    turn_ = 1 - turn_;
    return parts[turn_];
  }

  int turn_ = 0;
};

template <class Stored, int Width>
CUOP_FN void load_computed(Computed<Stored> (&to)[Width], const Stored* from) {
  Stored raw[Width];
  load_pack(raw, from);
#pragma unroll
  for (int j = 0; j < Width; ++j) to[j] = static_cast<Computed<Stored>>(raw[j]);
}
template <class Stored, int Width>
CUOP_FN void store_computed(Stored* to, const Computed<Stored> (&from)[Width]) {
  Stored raw[Width];
#pragma unroll
  for (int j = 0; j < Width; ++j) raw[j] = stored<Stored>(from[j]);
  store_pack(to, raw);
}

/// A thread's elements of its team's row: packs of Width neighbours, Team packs apart. The row's
/// length is a multiple of Width and its packs are aligned.
///
/// With Keep > 0 the thread holds all of its at most Keep packs in registers, so that the row is
/// read once; with Keep = 0 the row is of any length and read again by each pass.
template <class Stored, int Width, int Team, int Keep>
class TeamRow {
  using T = Computed<Stored>;

 public:
  CUOP_FN TeamRow(const Stored* row, int64_t length, bool is_row)
      : row_(row), length_(is_row ? length : 0), left_(static_cast<int>(length_) - first()) {
#pragma unroll
    for (int k = 0; k < Keep; ++k) {
      if (has(k)) load_computed<Stored>(kept_[k], row_ + first() + k * kApart);
    }
  }

  /// visit(values, position) for each pack; it may change the values for later passes only where
  /// they are kept.
  template <class Visit>
  CUOP_FN void each_pack(Visit&& visit) {
    if constexpr (Keep > 0) {
#pragma unroll
      for (int k = 0; k < Keep; ++k) {
        if (has(k)) visit(kept_[k], int64_t{first()} + k * kApart);
      }
    } else {
#pragma unroll 2
      for (int64_t at = first(); at < length_; at += kApart) {
        T values[Width];
        load_computed<Stored>(values, row_ + at);
        visit(values, at);
      }
    }
  }

 private:
  static constexpr int kApart = Team * Width;
  CUOP_FN static int first() { return static_cast<int>(threadIdx.x) % Team * Width; }
  /// Whether the thread's k-th pack is one of the row: of rows that are kept, which are short.
  CUOP_FN bool has(int k) const { return k * kApart < left_; }

  const Stored* row_;
  int64_t length_;
  int left_;  ///< elements of the row from the thread's first one on
  T kept_[Keep > 0 ? Keep : 1][Width];
};

/// Calls body(row, is_row) for the rows of this thread's team. All threads of the block come to the
/// body equally often; where is_row does not hold there is nothing to read or write.
template <int Team, class Body>
CUOP_FN void for_team_rows(int64_t rows, Body&& body) {
  constexpr int kRows = row_threads(Team) / Team;
#pragma unroll 1
  for (int64_t first = int64_t(blockIdx.x) * kRows; first < rows;
       first += int64_t(gridDim.x) * kRows) {
    const int64_t row = first + threadIdx.x / Team;
    body(row < rows ? row : rows - 1, row < rows);
  }
}

}  // namespace cuop::jit
