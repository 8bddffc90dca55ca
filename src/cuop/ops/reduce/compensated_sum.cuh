// Compensated sums in the CPU's own order of additions, and so with its bits. There a vector has
// eight lanes and four vectors take turns: 32 running sums, one for each thread of a warp here.
//   rows      a run of elements (all of a short row, else the pieces that the CPU folds in one go)
//             goes to 32 sums, which are merged as its vectors and lanes are; what does not fill a
//             round of all of them follows one by one. Runs are added up in order within a part of
//             the row, parts as a balanced tree.
//   columns   chunks of rows are added up in order, chunks in order within a part, parts as a tree.
// Of float32 (and what becomes float32) a sum takes eight elements at a time, added in double.
#pragma once

#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/compensated.h"
#include "cuop/ops/reduce/wide_sum.cuh"

namespace cuop::jit {

using CompensatedSum = Compensated<double>;

/// Elements and rows that a part of a state has, as on the CPU (fold_cpu.cpp).
inline constexpr int64_t kRowPart = 65536, kColumnPart = 2048;
/// Shorter stretches along the innermost of several axes are not runs of their own there.
inline constexpr int64_t kShortRun = 256;

template <class Result>
CUOP_FN void finish_compensated(const WideSum& a, int64_t state, CompensatedSum total) {
  if constexpr (gives_states<Result>) {
    static_cast<CompensatedSum*>(a.result)[place_of_result(a, state)] = total;
  } else {
    const double sum = value(total);
    store_sum<Result>(a, state, a.divisor == 0 ? sum : sum / static_cast<double>(a.divisor));
  }
}

/// The sums of a warp's threads merged as the CPU merges four vectors and then their lanes; for
/// the first thread.
CUOP_FN CompensatedSum merge_lanes(CompensatedSum mine) {
  constexpr unsigned kAll = 0xffffffffu;
  CompensatedSum others[3];
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    others[k].sum = __shfl_xor_sync(kAll, mine.sum, 8 * (k + 1));
    others[k].error = __shfl_xor_sync(kAll, mine.error, 8 * (k + 1));
  }
#pragma unroll
  for (int k = 0; k < 3; ++k) mine.merge(others[k]);
#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
    CompensatedSum other;
    other.sum = __shfl_xor_sync(kAll, mine.sum, half);
    other.error = __shfl_xor_sync(kAll, mine.error, half);
    mine.merge(other);
  }
  return mine;
}

/// The whole rounds of the n elements from `begin` on, by a warp; for its first thread. `Ahead`
/// rounds are read before the first of them is added, where few warps have to keep memory busy.
template <int Taken, int Ahead, class From>
CUOP_FN CompensatedSum fold_rounds(const From& from, int64_t begin, int64_t n) {
  constexpr int kRound = 32 * Taken, kAhead = From::unrolled(Ahead);
  CompensatedSum mine{0.0, 0.0};
  const int64_t end = begin + n / kRound * kRound;
  int64_t i = begin + threadIdx.x % 32;
  if constexpr (kAhead > 1) {
#pragma unroll 1
    for (; i + (kAhead - 1) * kRound < end; i += kAhead * kRound) {
      decltype(from[0]) ahead[kAhead][Taken];
#pragma unroll
      for (int k = 0; k < kAhead * Taken; ++k) ahead[k / Taken][k % Taken] = from[i + 32 * k];
#pragma unroll
      for (int round = 0; round < kAhead; ++round) {
        double total = as_double(ahead[round][0]);
#pragma unroll
        for (int j = 1; j < Taken; ++j) total = total + as_double(ahead[round][j]);
        mine.add(total);
      }
    }
  }
#pragma unroll 1
  for (; i < end; i += kRound) {
    double total = as_double(from[i]);
#pragma unroll(From::unrolled(Taken))
    for (int j = 1; j < Taken; ++j) total = total + as_double(from[i + 32 * j]);
    mine.add(total);
  }
  return merge_lanes(mine);
}

/// The elements after the whole rounds.
template <int Taken, class From>
CUOP_FN void add_rest(CompensatedSum& total, const From& from, int64_t begin, int64_t n) {
  constexpr int kRound = 32 * Taken;
#pragma unroll(From::unrolled(8))
  for (int64_t i = n / kRound * kRound; i < n; ++i) total.add(as_double(from[begin + i]));
}

/// Rows of one run: a warp takes one or, where the row does not fill a round, a thread.
template <class Source, int Taken, bool IsLinear, int Team, class Result>
CUOP_FN void compensated_short_rows(const WideSum& a) {
  static_assert(Team == 1 || Team == 32);
  constexpr int kTeams = kSumThreads / Team;
#pragma unroll 1
  for (int64_t first = int64_t(blockIdx.x) * kTeams; first < a.states;
       first += int64_t(gridDim.x) * kTeams) {
    const int64_t state = first + threadIdx.x / Team;
    if (state >= a.states) continue;
    const Elements<Source, IsLinear> from{
        static_cast<const Source*>(a.x) + offsets_at(a.kept, state).of[0], &a.reduced};
    CompensatedSum total{0.0, 0.0};
    if constexpr (Team == 32) {
      total.merge(fold_rounds<Taken, 16 / Taken>(from, 0, a.length));
      if (threadIdx.x % 32 != 0) continue;
    }
    add_rest<Taken>(total, from, 0, a.length);
    finish_compensated<Result>(a, state, total);
  }
}

/// Calls visit(begin, end) for the runs between two ends of parts, in order: they end at multiples
/// of a chunk and, where `is_split`, with the innermost axis.
template <class Visit>
CUOP_FN void for_runs(const WideSum& a, bool is_split, int64_t begin, int64_t end, Visit&& visit) {
  const int64_t inner = a.reduced.innermost_size();
  int64_t chunk_end = begin + a.chunk;  // parts are whole chunks
  int64_t row_end = is_split ? (begin / inner + 1) * inner : end;
#pragma unroll 1
  while (begin < end) {
    int64_t stop = chunk_end < row_end ? chunk_end : row_end;
    if (stop == chunk_end) chunk_end += a.chunk;
    if (stop == row_end) row_end += inner;
    if (stop > end) stop = end;
    visit(begin, stop);
    begin = stop;
  }
}

/// States of one block's columns (one column: a row's), of which `Lanes` threads share each.
template <int Columns, int Lanes>
struct SharedStates {
  CompensatedSum* shared;  ///< [parts][Columns]
  int column, lane;
  bool is_there;  ///< whether there is such a column

  CUOP_FN CompensatedSum& at(int i) const { return shared[i * Columns + column]; }

  /// at(0) <- `count` states that other blocks have written, `apart` from each other, as a balanced
  /// tree. All threads of the block must come.
  CUOP_FN void merge(const CompensatedSum* states, int count, int64_t apart) const {
#pragma unroll 4
    for (int i = lane; i < count; i += Lanes) {
      if (is_there) at(i) = load_fresh(states + i * apart);
    }
    __syncthreads();
#pragma unroll 1
    for (int step = 1; step < count; step *= 2) {
      for (int i = 2 * step * lane; is_there && i + step < count; i += 2 * step * Lanes) {
        at(i).merge(at(i + step));
      }
      __syncthreads();
    }
  }
};

/// The states of all parts, `apart` from each other, merged as a balanced tree: by the last block
/// of each group of `Together` parts, then of groups. Whether this block, which has written `part`,
/// has the total, in on.at(0). All threads of the block must come.
template <int Together, class States>
CUOP_FN bool merge_parts(const States& on, CompensatedSum* states, int64_t apart, int64_t part,
                         int64_t parts, unsigned* arrivals) {
#pragma unroll 1
  while (true) {
    const int64_t group = part / Together, first = group * Together;
    const int64_t left = parts - first;
    const int count = left < Together ? static_cast<int>(left) : Together;
    if (!is_last_of(count, arrivals + group)) return false;
    CompensatedSum* const own = states + first * apart;
    on.merge(own, count, apart);
    if (parts <= Together) return true;
    if (on.is_there && on.lane == 0) *own = on.at(0);
    part = group;
    parts = divide_up(parts, int64_t(Together));
    arrivals += parts;
    apart *= Together;
  }
}

/// Rows of several runs: a block takes one part. Where IsLinear holds and there are several axes,
/// runs end with the innermost one.
template <class Source, int Taken, bool IsLinear, class Result>
CUOP_FN void compensated_rows(const WideSum& a) {
  // Between the ends of rows of at least kShortRun elements, and of chunks.
  constexpr int kMaxRuns = kRowPart / kShortRun + 16;
  constexpr int kWarps = kSumRowThreads / 32, kAhead = Taken == 1 ? 16 : 8;
  static_assert(kMaxRuns >= kRowPartsTogether);
  __shared__ CompensatedSum rounds[kMaxRuns];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const bool is_split = IsLinear && a.reduced.axes > 1;
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < a.units; unit += gridDim.x) {
    const int64_t state = unit / a.parts, part = unit % a.parts;
    const auto* const first = static_cast<const Source*>(a.x) + offsets_at(a.kept, state).of[0];
    const int64_t begin = part * kRowPart;
    const int64_t end = part + 1 == a.parts ? a.length : begin + kRowPart;
    const auto elements = [&](int64_t from) {
      return Elements<Source, IsLinear>{
          IsLinear ? first + offsets_at(a.reduced, from).of[0] : first, &a.reduced};
    };
    int run = 0;
    for_runs(a, is_split, begin, end, [&](int64_t from, int64_t to) {
      if (run % kWarps == warp) {
        const CompensatedSum folded =
            fold_rounds<Taken, kAhead>(elements(from), IsLinear ? 0 : from, to - from);
        if (threadIdx.x % 32 == 0) rounds[run] = folded;
      }
      ++run;
    });
    __syncthreads();
    CompensatedSum total{0.0, 0.0};
    if (threadIdx.x == 0) {
      run = 0;
      for_runs(a, is_split, begin, end, [&](int64_t from, int64_t to) {
        if (to - from >= 32 * Taken) total.merge(rounds[run]);
        add_rest<Taken>(total, elements(from), IsLinear ? 0 : from, to - from);
        ++run;
      });
    }
    if (a.parts > 1) {
      CompensatedSum* const partials = static_cast<CompensatedSum*>(a.partials) + state * a.parts;
      if (threadIdx.x == 0) partials[part] = total;
      const SharedStates<1, kSumRowThreads> on{rounds, 0, static_cast<int>(threadIdx.x), true};
      unsigned* const arrivals = a.arrivals + state * groups_of_parts(a.parts, kRowPartsTogether);
      if (!merge_parts<kRowPartsTogether>(on, partials, 1, part, a.parts, arrivals)) continue;
      total = CompensatedSum{0.0, 0.0};
      total.merge(on.at(0));
    }
    if (threadIdx.x == 0) finish_compensated<Result>(a, state, total);
    __syncthreads();  // the rounds have been read
  }
}

/// Rows [begin, end) of one column. The columns that do not fill a vector at the end of a row take
/// single elements on the CPU.
template <int Taken, class From>
CUOP_FN CompensatedSum fold_chunk(const From& from, int64_t begin, int64_t end, bool takes_many) {
  constexpr int kRows = 8;
  CompensatedSum total{0.0, 0.0};
#pragma unroll 1
  for (; end - begin >= kRows; begin += kRows) {
    double row[kRows];
#pragma unroll(From::unrolled(kRows))
    for (int r = 0; r < kRows; ++r) row[r] = as_double(from[begin + r]);
    if (Taken > 1 && takes_many) {
#pragma unroll
      for (int r = 1; r < kRows; ++r) row[0] = row[0] + row[r];
      total.add(row[0]);
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r) total.add(row[r]);
    }
  }
#pragma unroll 1
  for (; begin < end; ++begin) total.add(as_double(from[begin]));
  return total;
}

/// The innermost axis of `kept` is that of memory: neighbouring threads take neighbouring columns,
/// eight of them different chunks of one column.
template <class Source, int Taken, bool IsLinear, class Result>
CUOP_FN void compensated_columns(const WideSum& a) {
  constexpr int kColumns = kSumColumns, kLanes = kSumThreads / kColumns;
  constexpr int kMaxChunks = 64, kVector = 8;
  static_assert(kMaxChunks >= kColumnPartsTogether);
  __shared__ CompensatedSum chunks[kMaxChunks][kColumns];
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const int lane = static_cast<int>(threadIdx.x) / kColumns;
  const int64_t width = a.kept.innermost_size();
  const int64_t tiles = divide_up(width, kColumns);
#pragma unroll 1
  for (int64_t unit = blockIdx.x; unit < a.units; unit += gridDim.x) {
    const int64_t group = unit / a.parts, part = unit % a.parts;
    const int64_t place = group % tiles * kColumns + column;
    const bool is_there = place < width;
    const int64_t state = group / tiles * width + (is_there ? place : 0);
    const Elements<Source, IsLinear> from{
        static_cast<const Source*>(a.x) + offsets_at(a.kept, state).of[0], &a.reduced};
    const int64_t begin = part * kColumnPart;
    const int64_t end = part + 1 == a.parts ? a.length : begin + kColumnPart;
    const int count = static_cast<int>(divide_up(end - begin, a.chunk));
    for (int k = lane; is_there && k < count; k += kLanes) {
      const int64_t first = begin + k * a.chunk;
      chunks[k][column] =
          fold_chunk<Taken>(from, first, end - first < a.chunk ? end : first + a.chunk,
                            place < width / kVector * kVector);
    }
    __syncthreads();
    CompensatedSum total{0.0, 0.0};
    if (is_there && lane == 0) {
      for (int k = 0; k < count; ++k) total.merge(chunks[k][column]);
    }
    if (a.parts > 1) {
      CompensatedSum* const partials = static_cast<CompensatedSum*>(a.partials) + state;
      if (is_there && lane == 0) partials[part * a.states] = total;
      const SharedStates<kColumns, kLanes> on{chunks[0], column, lane, is_there};
      unsigned* const arrivals =
          a.arrivals + group * groups_of_parts(a.parts, kColumnPartsTogether);
      if (!merge_parts<kColumnPartsTogether>(on, partials, a.states, part, a.parts, arrivals)) {
        continue;
      }
      total = CompensatedSum{0.0, 0.0};
      if (is_there) total.merge(on.at(0));
    }
    if (is_there && lane == 0) finish_compensated<Result>(a, state, total);
    __syncthreads();  // the chunks have been read
  }
}

/// Merges the states of rows that were folded side by side, as a balanced tree, into those of the
/// rows left over. A thread a state.
template <class Result>
CUOP_FN void compensated_joined(const JoinedSum& a) {
  constexpr int kMaxDepth = 8;
  const auto* const wide = static_cast<const CompensatedSum*>(a.wide);
  const auto* const rest = static_cast<const CompensatedSum*>(a.rest);
#pragma unroll 1
  for (int64_t state = int64_t(blockIdx.x) * kSumThreads + threadIdx.x; state < a.sum.states;
       state += int64_t(gridDim.x) * kSumThreads) {
    const CompensatedSum* const from = wide + state / a.width * a.width * a.join + state % a.width;
    // A waiting subtree for each bit of the number of states so far, the largest first.
    CompensatedSum waiting[kMaxDepth];
    int depth = 0;
#pragma unroll 1
    for (int64_t k = 0; k < a.join; ++k) {
      waiting[depth++] = from[k * a.width];
      for (int64_t full = k + 1; full % 2 == 0; full /= 2) {
        --depth;
        waiting[depth - 1].merge(waiting[depth]);
      }
    }
    for (; depth > 1; --depth) waiting[depth - 2].merge(waiting[depth - 1]);
    CompensatedSum total{0.0, 0.0};
    if (rest != nullptr) total = rest[state];
    total.merge(waiting[0]);
    finish_compensated<Result>(a.sum, state, total);
  }
}

}  // namespace cuop::jit
