// The driver of all folds. The reduction is cut into chunks, chunks of one state are merged as a
// balanced tree: pairwise summation at the large, and the same bits with any number of threads.
#include <algorithm>
#include <array>
#include <memory>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/reduce/fold_plan.h"

namespace cuop {

namespace {

constexpr int64_t kChunk = FoldCuts::kChunk, kPackedChunk = FoldCuts::kPackedChunk;
constexpr int64_t kPart = FoldCuts::kPart, kShortRun = FoldCuts::kShortRun;
constexpr int64_t kRowChunk = FoldCuts::kRowChunk, kMaxRowChunk = FoldCuts::kMaxRowChunk;
constexpr int64_t kRowPart = FoldCuts::kRowPart, kPackedRows = FoldCuts::kPackedRows;
constexpr int64_t kGrain = 1 << 16;    // elements that are worth a thread
constexpr int64_t kTileBytes = 16384;  // states of a tile of columns, at home in L1
constexpr int64_t kPackedColumns = 512;

using Buffer = std::unique_ptr<std::byte[]>;
Buffer allocate(int64_t bytes) {
  return std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
}

/// Merges state k of `parts` arrays of `width` states, the arrays `width` apart, into the first.
void merge_tree(const Fold& fold, std::byte* states, int64_t parts, int64_t width) {
  const int64_t bytes = width * fold.state_bytes;
  for (int64_t step = 1; step < parts; step *= 2) {
    for (int64_t i = 0; i + step < parts; i += 2 * step) {
      fold.merge(states + i * bytes, states + (i + step) * bytes, width);
    }
  }
}

/// One run of the driver: the plan, its data and the sizes that follow from them.
class Run {
 public:
  Run(const FoldPlan& plan, const std::byte* data)
      : plan_(plan),
        fold_(*plan.fold),
        data_(data),
        source_bytes_(itemsize(plan.source)),
        element_bytes_(itemsize(plan.element)),
        length_(plan.length()) {}

  void rows(std::byte* states) const;
  void columns(std::byte* states) const;

 private:
  const std::byte* at(int64_t offset) const { return data_ + offset * source_bytes_; }
  std::byte* state(std::byte* states, int64_t i) const { return states + i * fold_.state_bytes; }
  /// Whether no element changes the state any more.
  bool is_final(const std::byte* state) const {
    return plan_.input.last && *state == std::byte{*plan_.input.last};
  }
  int64_t kept_offset(int64_t index) const { return plan_.kept.offsets(index)[0]; }
  int64_t reduced_offset(int64_t index) const { return plan_.reduced.offsets(index)[0]; }

  void load(const std::byte* source, int64_t stride, std::byte* to, int64_t n) const;
  void gather(int64_t offset, int64_t begin, int64_t end, std::byte* to) const;
  void fold_chunk(std::byte* into, int64_t offset, int64_t begin, int64_t end,
                  std::byte* scratch) const;
  void fold_part(std::byte* into, int64_t offset, int64_t begin, int64_t end) const;
  void fold_short_rows(std::byte* states, int64_t begin, int64_t end) const;
  void fold_row_chunk(std::byte* into, int64_t offset, int64_t width, int64_t begin, int64_t end,
                      std::byte* scratch) const;
  void fold_row_part(std::byte* into, int64_t offset, int64_t width, int64_t begin,
                     int64_t end) const;

  const FoldPlan& plan_;
  const Fold& fold_;
  const std::byte* data_;
  int64_t source_bytes_, element_bytes_, length_;
};

void Run::load(const std::byte* source, int64_t stride, std::byte* to, int64_t n) const {
  plan_.load(source, stride, to, n);
  if (plan_.input.transform != nullptr) {
    plan_.input.transform(reinterpret_cast<double*>(to), n, plan_.input.parameter);
  }
}

/// Elements [begin, end) of the reduction that starts at `offset`, one after the other.
void Run::gather(int64_t offset, int64_t begin, int64_t end, std::byte* to) const {
  const auto& inner = plan_.reduced.inner();
  while (begin < end) {
    const int64_t run = std::min(end - begin, inner.size - begin % inner.size);
    load(at(offset + reduced_offset(begin)), inner.strides[0], to, run);
    to += run * element_bytes_;
    begin += run;
  }
}

void Run::fold_chunk(std::byte* into, int64_t offset, int64_t begin, int64_t end,
                     std::byte* scratch) const {
  const int64_t inner = plan_.reduced.inner().size;
  if (plan_.is_direct && (inner >= kShortRun || inner >= length_)) {
    while (begin < end) {
      const int64_t run = std::min(end - begin, inner - begin % inner);
      fold_.rows(into, at(offset + reduced_offset(begin)), 1, 0, run);
      begin += run;
    }
  } else {
    for (; begin < end; begin += kPackedChunk) {
      const int64_t n = std::min(kPackedChunk, end - begin);
      gather(offset, begin, begin + n, scratch);
      fold_.rows(into, scratch, 1, 0, n);
    }
  }
}

void Run::fold_part(std::byte* into, int64_t offset, int64_t begin, int64_t end) const {
  const int64_t chunk = plan_.is_direct ? kChunk : kPackedChunk;
  const int64_t chunks = divide_up(end - begin, chunk);
  const Buffer scratch = allocate(kPackedChunk * element_bytes_ + chunks * fold_.state_bytes);
  std::byte* states = scratch.get() + kPackedChunk * element_bytes_;
  fold_.init(into, 1);
  if (fold_.wants_tree) fold_.init(states, chunks);
  for (int64_t i = 0; i < chunks; ++i) {
    const int64_t first = begin + i * chunk, last = std::min(first + chunk, end);
    fold_chunk(fold_.wants_tree ? state(states, i) : into, offset, first, last, scratch.get());
    if (is_final(into)) return;
  }
  if (!fold_.wants_tree) return;
  merge_tree(fold_, states, chunks, 1);
  fold_.merge(into, states, 1);
}

/// States [begin, end), each over at most kChunk elements.
void Run::fold_short_rows(std::byte* states, int64_t begin, int64_t end) const {
  fold_.init(state(states, begin), end - begin);
  const auto& kept = plan_.kept.inner();
  if (plan_.is_direct && plan_.reduced.count == 1) {
    while (begin < end) {
      const int64_t run = std::min(end - begin, kept.size - begin % kept.size);
      fold_.rows(state(states, begin), at(kept_offset(begin)), run, kept.strides[0], length_);
      begin += run;
    }
    return;
  }
  const int64_t batch = std::max<int64_t>(1, std::min(end - begin, kPackedChunk / length_));
  const Buffer scratch = allocate(batch * length_ * element_bytes_);
  for (; begin < end; begin += batch) {
    const int64_t count = std::min(batch, end - begin);
    for (int64_t i = 0; i < count; ++i) {
      gather(kept_offset(begin + i), 0, length_, scratch.get() + i * length_ * element_bytes_);
    }
    fold_.rows(state(states, begin), scratch.get(), count, length_, length_);
  }
}

void Run::rows(std::byte* states) const {
  const int64_t count = plan_.states();
  if (length_ <= kChunk) {
    backend::parallel_for(count, kGrain / length_,
                          [&](int64_t begin, int64_t end) { fold_short_rows(states, begin, end); });
    return;
  }
  const int64_t parts = divide_up(length_, kPart);
  const Buffer buffer = parts == 1 ? nullptr : allocate(count * parts * fold_.state_bytes);
  std::byte* partial = parts == 1 ? states : buffer.get();
  const auto fold_one = [&](int64_t row, int64_t part) {
    const int64_t first = part * kPart;
    fold_part(state(partial, row * parts + part), kept_offset(row), first,
              std::min(first + kPart, length_));
  };
  const int64_t grain = kGrain / std::min(kPart, length_);
  // Where a first part may say it all, nobody begins another before.
  const int64_t before = plan_.input.last ? 1 : 0, others = parts - before;
  if (before > 0) {
    backend::parallel_for_each(count, grain, [&](int64_t row) { fold_one(row, 0); });
  }
  if (others > 0) {
    backend::parallel_for_each(count * others, grain, [&](int64_t task) {
      const int64_t row = task / others, part = before + task % others;
      if (before > 0 && is_final(state(partial, row * parts))) {
        fold_.init(state(partial, row * parts + part), 1);
      } else {
        fold_one(row, part);
      }
    });
  }
  if (parts == 1) return;
  fold_.init(states, count);
  for (int64_t i = 0; i < count; ++i) {
    merge_tree(fold_, state(partial, i * parts), parts, 1);
    fold_.merge(state(states, i), state(partial, i * parts), 1);
  }
}

/// Rows [begin, end) of the reduction, at most kMaxRowChunk, into the states of `width` columns.
void Run::fold_row_chunk(std::byte* into, int64_t offset, int64_t width, int64_t begin, int64_t end,
                         std::byte* scratch) const {
  std::array<const void*, kMaxRowChunk> rows;
  const auto& inner = plan_.reduced.inner();
  int64_t next = 0, remaining = 0;
  for (int64_t r = begin; r < end; ++r) {
    if (remaining == 0) {
      next = offset + reduced_offset(r);
      remaining = inner.size - r % inner.size;
    }
    const auto i = static_cast<size_t>(r - begin);
    if (plan_.is_direct) {
      rows[i] = at(next);
    } else {
      std::byte* row = scratch + (r - begin) * width * element_bytes_;
      load(at(next), plan_.kept.inner().strides[0], row, width);
      rows[i] = row;
    }
    next += inner.strides[0];
    --remaining;
  }
  fold_.columns(into, rows.data(), end - begin, width);
}

void Run::fold_row_part(std::byte* into, int64_t offset, int64_t width, int64_t begin,
                        int64_t end) const {
  const int64_t direct = fold_.wants_tree ? kRowChunk : kMaxRowChunk;
  const int64_t chunk = plan_.is_direct ? direct : kPackedRows;
  const bool is_single = end - begin <= chunk || !fold_.wants_tree;
  const int64_t packed_bytes =
      plan_.is_direct ? 0 : std::min(chunk, end - begin) * width * element_bytes_;
  const Buffer scratch = allocate(packed_bytes + (is_single ? 0 : width * fold_.state_bytes));
  std::byte* fresh = scratch.get() + packed_bytes;
  fold_.init(into, width);
  for (; begin < end; begin += chunk) {
    if (!is_single) fold_.init(fresh, width);
    fold_row_chunk(is_single ? into : fresh, offset, width, begin, std::min(begin + chunk, end),
                   scratch.get());
    if (!is_single) fold_.merge(into, fresh, width);
  }
}

void Run::columns(std::byte* states) const {
  const auto& inner = plan_.kept.inner();
  const int64_t count = plan_.states();
  const int64_t widest = plan_.is_direct ? inner.size : std::min(inner.size, kPackedColumns);
  const int64_t tile = std::min(widest, std::max<int64_t>(64, kTileBytes / fold_.state_bytes));
  const int64_t tiles = divide_up(inner.size, tile);
  const int64_t parts = divide_up(length_, kRowPart);
  const Buffer buffer = parts == 1 ? nullptr : allocate(parts * count * fold_.state_bytes);
  std::byte* partial = parts == 1 ? states : buffer.get();
  const int64_t tasks_per_row = tiles * parts;
  backend::parallel_for_each(
      count / inner.size * tasks_per_row, kGrain / (tile * std::min(kRowPart, length_)),
      [&](int64_t task) {
        const int64_t outer = task / tasks_per_row;
        const int64_t part = task % tasks_per_row / tiles, first = task % tiles * tile;
        const int64_t index = outer * inner.size + first;
        fold_row_part(state(partial, part * count + index), kept_offset(index),
                      std::min(tile, inner.size - first), part * kRowPart,
                      std::min((part + 1) * kRowPart, length_));
      });
  if (parts == 1) return;
  merge_tree(fold_, partial, parts, count);
  fold_.init(states, count);
  fold_.merge(states, partial, count);
}

/// As `run_fold` by columns, several rows at a time.
void run_joined(const FoldPlan& plan, const JoinedFold& joined, const std::byte* data,
                std::byte* states) {
  const Fold& fold = *plan.fold;
  const Buffer folded = allocate(joined.wide.states() * fold.state_bytes);
  run_fold(joined.wide, data, folded.get());
  if (joined.rest_rows == 0) {
    fold.init(states, plan.states());
  } else {
    run_fold(joined.rest, data + joined.rest_offset * itemsize(plan.source), states);
  }
  const int64_t width = plan.kept.inner().size;
  for (int64_t i = 0; i < plan.kept.outer_size(); ++i) {
    std::byte* group = folded.get() + i * width * joined.join * fold.state_bytes;
    merge_tree(fold, group, joined.join, width);
    fold.merge(states + i * width * fold.state_bytes, group, width);
  }
}

}  // namespace

void run_fold(const FoldPlan& plan, const std::byte* data, std::byte* states) {
  if (plan.states() == 0) return;
  if (plan.length() == 0) return plan.fold->init(states, plan.states());
  if (!plan.by_columns) return Run(plan, data).rows(states);
  const JoinedFold joined = join_rows(plan);
  if (joined.join > 1) return run_joined(plan, joined, data, states);
  Run(plan, data).columns(states);
}

}  // namespace cuop
