#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <numeric>
#include <vector>

#include "cuop/backend/cpu/long_line.h"
#include "cuop/core/copy_bytes.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/word.h"
#include "cuop/ops/index/index_kernels.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

constexpr int64_t kGrain = 1 << 14;                 // elements a thread should have at least
constexpr int64_t kMaskBlock = 1 << 13;             // mask elements counted together
constexpr int64_t kShortList = 8, kListBlock = 64;  // a list whose offsets are taken one by one for
                                                    // so many positions, which stay in the cache

/// The rest axes split around the listed one: those outside of it and those inside of it on the
/// dense side.
struct SplitNest {
  LoopNest<2> outer;  // dense, sparse
  LoopNest<2> inner;
  int64_t outer_count = 1;
};

SplitNest split_rest(const OffsetCopy& copy) {
  Shape shapes[2];
  Strides dense[2], sparse[2];
  for (int i = 0; i < copy.rest.ndim(); ++i) {
    // One value for all listed offsets says nothing about order: rows of the sparse side it is.
    const bool is_inner =
        copy.dense_stride == 0 || std::abs(copy.dense_rest[i]) < std::abs(copy.dense_stride);
    shapes[is_inner].push_back(copy.rest[i]);
    dense[is_inner].push_back(copy.dense_rest[i]);
    sparse[is_inner].push_back(copy.sparse_rest[i]);
  }
  SplitNest split;
  split.outer = make_loop_nest<2>(shapes[0], {&dense[0], &sparse[0]});
  split.inner = make_loop_nest<2>(shapes[1], {&dense[1], &sparse[1]});
  split.outer_count = split.outer.size();
  return split;
}

template <class Word, bool kGather>
void copy_row(Word* dense, Word* sparse, const LoopNest<2>::Axis& axis) {
  if (axis.strides[0] == 1 && axis.strides[1] == 1) {
    const int64_t bytes = axis.size * static_cast<int64_t>(sizeof(Word));
    copy_bytes(kGather ? dense : sparse, kGather ? sparse : dense, bytes);
    return;
  }
  // Copies: what is written could be the strides, for all the compiler knows.
  const int64_t size = axis.size, dense_step = axis.strides[0], sparse_step = axis.strides[1];
  for (int64_t i = 0; i < size; ++i) {
    Word& d = dense[i * dense_step];
    Word& s = sparse[i * sparse_step];
    if constexpr (kGather) {
      d = s;
    } else {
      s = d;
    }
  }
}

/// What belongs to one listed offset, which is long.
template <class Word, bool kGather>
void copy_long(const LoopNest<2>& inner, Word* dense, Word* sparse) {
  const LoopNest<2>::Axis& axis = inner.inner();
  Lookout lookout;
  for (int64_t row = 0; row < inner.outer_size(); ++row) {
    const auto at = inner.row_offsets(row);
    backend::over_line(axis.size, [&](int64_t begin, int64_t end) {
      copy_row<Word, kGather>(dense + at[0] + begin * axis.strides[0],
                              sparse + at[1] + begin * axis.strides[1],
                              {end - begin, axis.strides});
    });
    lookout.after(axis.size);
  }
}

/// d[i step] and s[offsets[i]] for i in [0, count), in order: later ones win.
template <class Word, bool kGather>
void copy_list(Word* d, int64_t step, Word* s, const int64_t* offsets, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kGather) {
      d[i * step] = s[offsets[i]];
    } else {
      s[offsets[i]] = d[i * step];
    }
  }
}

/// Single elements: pairs [begin, end) of (outer position, listed offset), the offset running
/// faster.
template <class Word, bool kGather>
void copy_elements(const OffsetCopy& copy, const LoopNest<2>& outer, Word* dense, Word* sparse,
                   int64_t begin, int64_t end) {
  const LoopNest<2>::Axis line = outer.inner();
  const int64_t count = copy.count, step = copy.dense_stride;
  while (begin < end) {
    const auto [position, first] = divided(begin, count);
    const int64_t last = std::min(count, first + (end - begin));
    // Whole lists as far as the outer axes' line goes on: short ones would be all divisions.
    const bool is_whole = first == 0 && last == count;
    const int64_t left = line.size - divided(position, line.size).rest;
    const int64_t lists = is_whole ? std::min(left, divided(end - begin, count).quotient) : 1;
    const auto at = outer.offsets(position);
    for (int64_t block = 0; block < lists; block += kListBlock) {
      const int64_t size = std::min(kListBlock, lists - block);
      Word* const d = dense + at[0] + block * line.strides[0];
      Word* const s = sparse + at[1] + block * line.strides[1];
      if (count <= kShortList) {
        for (int64_t p = first; p < last; ++p) {
          copy_row<Word, kGather>(d + p * step, s + copy.offsets[p], {size, line.strides});
        }
        continue;
      }
      for (int64_t list = 0; list < size; ++list) {
        copy_list<Word, kGather>(d + list * line.strides[0] + first * step, step,
                                 s + list * line.strides[1], copy.offsets + first, last - first);
      }
    }
    begin += lists * (last - first);
  }
}

/// Offsets [begin, end) at one position of the outer axes.
template <class Word, bool kGather>
void copy_listed(const OffsetCopy& copy, const LoopNest<2>& inner, Word* dense, Word* sparse,
                 int64_t begin, int64_t end) {
  const int64_t rows = inner.outer_size();
  const int64_t each = rows * inner.inner().size;
  if (each > kLoopPiece) {
    for (int64_t p = begin; p < end; ++p) {
      copy_long<Word, kGather>(inner, dense + p * copy.dense_stride, sparse + copy.offsets[p]);
    }
    return;
  }
  const auto copy_some = [&](int64_t first, int64_t last) {
    for (int64_t p = begin + first; p < begin + last; ++p) {
      for (int64_t row = 0; row < rows; ++row) {
        const auto at = inner.row_offsets(row);
        copy_row<Word, kGather>(dense + p * copy.dense_stride + at[0],
                                sparse + copy.offsets[p] + at[1], inner.inner());
      }
    }
  };
  in_pieces(end - begin, copy_some, kLoopPiece / each);
}

template <bool kGather>
void copy_offsets(const OffsetCopy& copy, bool is_list_parallel) {
  const SplitNest split = split_rest(copy);
  const int64_t inner_size = split.inner.size();
  with_word(copy.itemsize, [&](auto word) {
    using Word = decltype(word);
    // A piece is a range of (outer position, listed offset) pairs, the offset running faster.
    const auto run = [&](int64_t begin, int64_t end) {
      if (inner_size == 1) {
        in_pieces(end - begin, [&](int64_t first, int64_t last) {
          copy_elements<Word, kGather>(copy, split.outer, static_cast<Word*>(copy.dense),
                                       static_cast<Word*>(copy.sparse), begin + first,
                                       begin + last);
        });
        return;
      }
      while (begin < end) {
        const auto [outer, first] = divided(begin, copy.count);
        const int64_t last = std::min(copy.count, first + (end - begin));
        const auto at = split.outer.offsets(outer);
        copy_listed<Word, kGather>(copy, split.inner, static_cast<Word*>(copy.dense) + at[0],
                                   static_cast<Word*>(copy.sparse) + at[1], first, last);
        begin += last - first;
      }
    };
    if (is_list_parallel) {
      backend::parallel_for(split.outer_count * copy.count, kGrain / inner_size, run);
    } else {
      backend::parallel_for(
          split.outer_count, kGrain / (inner_size * copy.count),
          [&](int64_t begin, int64_t end) { run(begin * copy.count, end * copy.count); });
    }
  });
}

/// Counts side by side in bytes, for as many rounds as a byte can count.
int64_t count_true(const uint8_t* mask, int64_t count) {
  constexpr int64_t kLanes = 64, kRounds = std::numeric_limits<uint8_t>::max();
  int64_t total = 0, i = 0;
  while (i + kLanes <= count) {
    std::array<uint8_t, kLanes> counted{};
    const int64_t end = i + std::min(kRounds, (count - i) / kLanes) * kLanes;
    for (; i < end; i += kLanes) {
      const uint8_t* const bits = mask + i;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        counted[lane] = static_cast<uint8_t>(counted[lane] + bits[lane]);
      }
    }
    total = std::accumulate(counted.begin(), counted.end(), total);
  }
  return std::accumulate(mask + i, mask + count, total);
}

/// The offsets of the true elements of one block of the flattened mask; returns how many.
int64_t list_block(const uint8_t* mask, const Shape& shape, const Strides& strides, int64_t begin,
                   int64_t end, int64_t* offsets) {
  const int last = shape.ndim() - 1;
  const int64_t row_length = last < 0 ? 1 : shape[last];
  const int64_t step = last < 0 ? 0 : strides[last];
  int64_t found = 0;
  for (int64_t i = begin; i < end;) {
    int64_t row = i / row_length, base = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      base += row % shape[axis] * strides[axis];
      row /= shape[axis];
    }
    const int64_t start = i - i % row_length;
    const int64_t stop = std::min(end, start + row_length);
    // Written always and kept when true: a branch here would be guessed wrongly half of the time.
    for (; i < stop; ++i) {
      offsets[found] = base + (i - start) * step;
      found += mask[i];
    }
  }
  return found;
}

/// How many elements are true before each block of the flattened mask, and in all of them.
std::vector<int64_t> block_starts(const Tensor& mask) {
  const int64_t count = mask.size();
  const auto* bits = static_cast<const uint8_t*>(mask.data());
  const int64_t blocks = divide_up(count, kMaskBlock);
  std::vector<int64_t> starts(static_cast<size_t>(blocks) + 1, 0);
  backend::parallel_for_each(blocks, 1, [&](int64_t b) {
    const int64_t first = b * kMaskBlock;
    starts[static_cast<size_t>(b) + 1] =
        count_true(bits + first, std::min(kMaskBlock, count - first));
  });
  for (size_t b = 0; b < static_cast<size_t>(blocks); ++b) starts[b + 1] += starts[b];
  return starts;
}

}  // namespace

int64_t count_true_cpu(const Tensor& mask) { return block_starts(mask).back(); }

void mask_offsets_cpu(const Tensor& mask, const Strides& strides, int64_t* offsets) {
  const int64_t count = mask.size();
  const auto* bits = static_cast<const uint8_t*>(mask.data());
  const std::vector<int64_t> starts = block_starts(mask);
  backend::parallel_for(
      static_cast<int64_t>(starts.size()) - 1, 1, [&](int64_t begin, int64_t end) {
        std::vector<int64_t> listed(static_cast<size_t>(kMaskBlock) + 1);
        for (int64_t b = begin; b < end; ++b) {
          const int64_t first = b * kMaskBlock, last = std::min(first + kMaskBlock, count);
          const int64_t found = list_block(bits, mask.shape(), strides, first, last, listed.data());
          std::copy_n(listed.data(), found, offsets + starts[static_cast<size_t>(b)]);
        }
      });
}

int64_t index_offsets_cpu(const Tensor& indices, int64_t size, int64_t stride, int64_t* offsets) {
  const int64_t count = indices.size();
  const auto* given = indices.data<int64_t>();
  std::atomic<int64_t> bad = count;
  backend::parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    bool is_good = true;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t index = given[i] < 0 ? given[i] + size : given[i];
      is_good &= static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
      // Unsigned: an index far outside would overflow before anybody refuses it.
      offsets[i] =
          static_cast<int64_t>(static_cast<uint64_t>(index) * static_cast<uint64_t>(stride));
    }
    if (is_good) return;
    for (int64_t i = begin; i < end; ++i) {
      if (given[i] >= -size && given[i] < size) continue;
      int64_t known = bad;
      while (i < known && !bad.compare_exchange_weak(known, i)) {
      }
      return;
    }
  });
  return bad == count ? -1 : bad.load();
}

void add_offsets_cpu(Tensor& table, const Tensor& part) {
  if (table.size() == 0) return;
  const LoopNest<2> nest = make_loop_nest<2>(table.shape(), {&table.strides(), &part.strides()});
  auto* sums = table.data<int64_t>();
  const auto* terms = part.data<int64_t>();
  const auto& inner = nest.inner();
  backend::parallel_for_each(nest.outer_size(), kGrain / inner.size, [&](int64_t row) {
    const auto at = nest.row_offsets(row);
    for (int64_t i = 0; i < inner.size; ++i) {
      sums[at[0] + i * inner.strides[0]] += terms[at[1] + i * inner.strides[1]];
    }
  });
}

void gather_offsets_cpu(const OffsetCopy& copy) { copy_offsets<true>(copy, true); }

void scatter_offsets_cpu(const OffsetCopy& copy, bool is_unique) {
  copy_offsets<false>(copy, is_unique);
}

}  // namespace cuop::kernels
