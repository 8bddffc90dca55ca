// The frame of every reduction of rows, in one launch: threads fold elements into states, teams of
// threads merge theirs, and where several blocks share a row the last of them to finish merges what
// all left in memory. Who folds what, and every order of merging, is fixed, so that a result
// depends on nothing but its elements.
//
// A Program says what is folded:
//   struct State {...};                          plain data
//   static State start();                        of no element
//   static void merge(State& into, const State& other);
//   Program(const Arguments&, Count row);
//   void take(State&, Count r);                  folds the r-th elements of the row, in their order
//   void finish(const State&);                   writes the row's result
// and, where there is something to do now and then,
//   static void prepare(State&);                 before some elements are folded
//
// Of rows that begin at any address a Program has a width, and `take` folds the r-th pack behind
//   Count head;                                  the elements before the first aligned one
//   static constexpr int kWidth;
//   void take_one(State&, Count i);              folds the i-th element, behind all packs
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/sharing.cuh"

namespace cuop::jit {

template <class T>
CUOP_FN T lowest() {
  if constexpr (is_float_type<T>) {
    return T(-math::infinity);
  } else if constexpr (is_bool_type<T>) {
    return false;
  } else if constexpr (is_signed_type<T>) {
    return static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1));
  } else {
    return T(0);
  }
}
template <class T>
CUOP_FN T highest() {
  if constexpr (is_float_type<T>) {
    return T(math::infinity);
  } else if constexpr (is_bool_type<T>) {
    return true;
  } else if constexpr (is_signed_type<T>) {
    return static_cast<T>((uint64_t{1} << (8 * sizeof(T) - 1)) - 1);
  } else {
    return static_cast<T>(~T(0));
  }
}

/// The position of no element: behind all others.
inline constexpr int64_t kNowhere = 0x7fffffffffffffff;

/// Takes the other value and position where it is the better one: larger (smaller), or as good and
/// earlier. A NaN is better than any number.
template <bool IsMax, class T>
CUOP_FN void take_better(T& best, int64_t& position, T other, int64_t other_position) {
  if (other_position == kNowhere) return;
  const bool is_better = IsMax ? other > best : other < best;
  const bool is_equal = other == best || (other != other && best != best);
  const bool is_nan_first = other != other && best == best;
  if (position == kNowhere || is_nan_first || (is_better && best == best) ||
      (is_equal && other_position < position)) {
    best = other;
    position = other_position;
  }
}

/// The same of a value behind all that were taken.
template <bool IsMax, class T>
CUOP_FN void take_next(T& best, int64_t& position, T other, int64_t other_position) {
  const bool is_better = IsMax ? !(other <= best) : !(other >= best);  // a NaN is
  if (position == kNowhere || (is_better && best == best)) {
    best = other;
    position = other_position;
  }
}

template <class T, class R>
CUOP_FN T mean_of(T sum, R count) {
  if constexpr (is_complex_type<T>) {
    return {sum.real() / count, sum.imag() / count};
  } else {
    return sum / count;
  }
}

/// Where the rows are and how they are shared.
template <class Count>
struct RowShare {
  Count rows, length;  ///< length in steps of `take`, or with a head in elements
  Count piece;         ///< by columns, steps of one block
  void* partials;  ///< states [rows][pieces], by columns [pieces][rows], where blocks share rows
  unsigned* arrivals;  ///< zeros, one a group of rows; zeros again afterwards
};

/// Merges the states of each team; the first lane of a team holds the result. Only lanes that are
/// still merged write, so that nothing is written that others read, and one barrier a halving is
/// enough: of the block while halves lie in different warps.
template <class Program, int Team, bool IsColumn, class State>
CUOP_FN void merge_team(State (&states)[kReduceThreads], State& mine, int lane) {
  constexpr int kApart = IsColumn ? kReduceThreads / Team : 1;
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll 1
  for (int half = Team / 2; half > 0; half /= 2) {
    if (lane < 2 * half) states[thread] = mine;
    if (half * kApart >= 32) {
      __syncthreads();
    } else {
      __syncwarp();
    }
    if (lane < half) Program::merge(mine, states[thread + half * kApart]);
  }
  // The states have been read when the next are written.
  if constexpr (Team * kApart > 32) {
    __syncthreads();
  } else if constexpr (Team > 1) {
    __syncwarp();
  }
}

/// The access by which states are read back: the widest that they are aligned for.
template <bool IsWide>
struct MergedWord {
  using Type = unsigned;
};
template <>
struct MergedWord<true> {
  using Type = uint4;
};

template <class Program>
CUOP_FN void prepare(typename Program::State& state) {
  if constexpr (requires { Program::prepare(state); }) Program::prepare(state);
}

template <class Program>
concept HasHead = requires(Program program) {
  program.head;
};

/// A row's steps of `take`.
template <class Program, class Count>
CUOP_FN Count steps_of(const Program& program, Count length) {
  if constexpr (HasHead<Program>) {
    return (length - program.head) / Program::kWidth;
  } else {
    return length;
  }
}
/// Folds the elements beside them.
template <int Team, class Program, class Count>
CUOP_FN void take_ends(Program& program, typename Program::State& state, Count length, Count lane) {
  const Count inner = steps_of(program, length) * Program::kWidth, ends = length - inner;
  constexpr int kMost = 2 * Program::kWidth - 2, kEach = divide_up(kMost, Team);
  constexpr int kTogether = kEach < 4 ? kEach : 4;
#pragma unroll 1
  for (Count i = lane; i < ends; i += kTogether * Team) {
    prepare<Program>(state);
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const Count at = i + k * Team;
      if (at < ends) program.take_one(state, at < program.head ? at : at + inner);
    }
  }
}

/// `Team` threads share a row: neighbours, or (IsColumn) threads of different warps, so that
/// neighbours read neighbouring rows. `AtATime` steps have their loads on the way together, and so
/// have the fewer that are left. Blocks that share a row take in turn what a team loads together:
/// memory serves neighbours 7 % faster than places far apart. By columns they have pieces of their
/// own, as turns would be rows of one bank. Code stands here once that could stand twice: what is
/// compiled is waited for.
template <class Program, int Team, bool IsColumn, int AtATime, class Arguments, class Count>
CUOP_FN void reduce_rows(const Arguments& arguments, const RowShare<Count>& share) {
  using State = typename Program::State;
  using Word = typename MergedWord<(alignof(State) >= 16)>::Type;
  constexpr int kRows = kReduceThreads / Team;
  __shared__ State states[kReduceThreads];
  __shared__ bool is_last;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = IsColumn ? thread / kRows : thread % Team;
  const int slot = IsColumn ? thread % kRows : thread / Team;
  const Count groups = divide_up(share.rows, kRows);
  const unsigned pieces = gridDim.y;
#pragma unroll 1
  for (Count group = blockIdx.x; group < groups; group += gridDim.x) {
    const Count row = group * kRows + slot;
    const bool is_row = row < share.rows;
    Program program(arguments, is_row ? row : share.rows - 1);
    State mine = Program::start();
    if (is_row) {
      constexpr int kTogether = AtATime * Team, kLeft = AtATime > 1 ? AtATime - 1 : 1;
      const Count begin = (IsColumn ? share.piece : kTogether) * blockIdx.y;
      const Count turn = IsColumn ? kTogether : kTogether * pieces;
      const Count steps = steps_of(program, share.length);
      const bool is_last_piece = !IsColumn || steps - begin < share.piece;
      const Count end = is_last_piece ? steps : begin + share.piece;
      Count r = begin + lane;
      if constexpr (AtATime > 1) {
#pragma unroll 1
        for (; r < end && end - r > (AtATime - 1) * Team; r += turn) {
          prepare<Program>(mine);
#pragma unroll
          for (int k = 0; k < AtATime; ++k) program.take(mine, r + k * Team);
        }
      }
#pragma unroll 1
      for (; r < end; r += turn) {
        prepare<Program>(mine);
#pragma unroll
        for (int k = 0; k < kLeft; ++k) {
          if (k == 0 || end - r > k * Team) program.take(mine, r + k * Team);
        }
      }
      if constexpr (HasHead<Program>) {
        if (blockIdx.y == 0) take_ends<Team>(program, mine, share.length, Count(lane));
      }
    }
    merge_team<Program, Team, IsColumn>(states, mine, lane);
    if (pieces > 1) {
      // Neighbouring threads find theirs beside each other.
      const auto partial = [&](unsigned piece) {
        const Count at = IsColumn ? piece * share.rows + row : row * pieces + piece;
        return static_cast<State*>(share.partials) + at;
      };
      if (is_row && lane == 0) {
        *partial(blockIdx.y) = mine;
        __threadfence();
      }
      __syncthreads();
      if (thread == 0) is_last = atomicAdd(share.arrivals + group, 1u) == pieces - 1;
      __syncthreads();
      if (!is_last) continue;
      __threadfence();
      if (thread == 0) share.arrivals[group] = 0;
      mine = Program::start();
      if (is_row) {
#pragma unroll 1
        for (unsigned piece = lane; piece < pieces; piece += Team) {
          Program::merge(mine, load_fresh<Word>(partial(piece)));
        }
      }
      merge_team<Program, Team, IsColumn>(states, mine, lane);
    }
    if (is_row && lane == 0) program.finish(mine);
  }
}

}  // namespace cuop::jit
