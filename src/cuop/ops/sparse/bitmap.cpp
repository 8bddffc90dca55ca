#include "cuop/ops/sparse/bitmap.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/slot.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop {

namespace {

constexpr int64_t kBits = 8;
constexpr int64_t kBlock = 16 << 10;  ///< elements of a task, whole bytes of bits

/// Of 16-bit floats by their bits, which are at hand, as float32 is not.
template <class T>
bool is_kept(T value) {
  if constexpr (requires { value.bits; }) {
    return static_cast<uint16_t>(value.bits << 1) != 0;
  } else {
    return value != T(0);
  }
}

/// Where each block's values begin, behind the last one how many there are; `count(block)` are its
/// own.
template <class Count>
std::vector<int64_t> block_starts(int64_t blocks, const Count& count) {
  std::vector<int64_t> starts(static_cast<size_t>(blocks) + 1);
  backend::parallel_for_each(
      blocks, 4, [&](int64_t block) { starts[static_cast<size_t>(block) + 1] = count(block); });
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  return starts;
}

/// Eight elements at a time go through memory of their own: writing each and counting on behind
/// those that stay takes no branches, which zeros in no order would make slow. All eight are copied
/// where there is room before `end`.
template <class T>
void compress(const T* from, int64_t count, uint8_t* bits, T* values, const T* end) {
  for (int64_t first = 0; first < count; first += kBits) {
    T found[kBits] = {};
    int kept = 0;
    unsigned mask = 0;
    const auto here = static_cast<int>(std::min(kBits, count - first));
    for (int i = 0; i < here; ++i) {
      const bool stays = is_kept(from[first + i]);
      found[kept] = from[first + i];
      mask |= unsigned{stays} << i;
      kept += stays ? 1 : 0;
    }
    *bits++ = static_cast<uint8_t>(mask);
    if (end - values >= kBits) {
      std::copy_n(found, kBits, values);
    } else {
      std::copy_n(found, kept, values);
    }
    values += kept;
  }
}

template <class T>
void expand(const uint8_t* bits, const T* values, int64_t count, T* to) {
  std::fill_n(to, count, T(0));
  for (int64_t first = 0; first < count; first += kBits) {
    for (unsigned mask = *bits++; mask != 0; mask &= mask - 1) {
      to[first + std::countr_zero(mask)] = *values++;
    }
  }
}

Bitmap bitmap_cpu(const Tensor& line, int64_t nonzeros) {
  const int64_t n = line.size(), blocks = divide_up(n, kBlock);
  Bitmap result{empty({divide_up(n, kBits)}, DType::kUInt8), empty({nonzeros}, line.dtype())};
  visit_dtype(AllTypes{}, line.dtype(), "bitmap", [&]<class T>(TypeTag<T>) {
    const T* const from = line.data<T>();
    const auto length = [&](int64_t block) { return std::min(kBlock, n - block * kBlock); };
    const auto starts = block_starts(blocks, [&](int64_t block) {
      const T* const first = from + block * kBlock;
      return static_cast<int64_t>(
          std::count_if(first, first + length(block), [](T value) { return is_kept(value); }));
    });
    auto* const bits = result.bits.data<uint8_t>();
    T* const values = result.values.data<T>();
    backend::parallel_for_each(blocks, 4, [&](int64_t block) {
      const auto i = static_cast<size_t>(block);
      compress(from + block * kBlock, length(block), bits + block * kBlock / kBits,
               values + starts[i], values + starts[i + 1]);
    });
  });
  return result;
}

[[noreturn]] void refuse(int64_t values, int64_t bits) {
  throw ExecutionError(
      cat("bitmap: ", values, " values for ", bits,
          " bits that are set; there must be as many, and none behind the last element"));
}

void expand_cpu(const Bitmap& from, const Tensor& line) {
  const int64_t n = line.size(), blocks = divide_up(n, kBlock);
  const auto* const bits = from.bits.data<uint8_t>();
  const auto starts = block_starts(blocks, [&](int64_t block) {
    const int64_t end = std::min(divide_up(n, kBits), (block + 1) * kBlock / kBits);
    int64_t set = 0;
    for (int64_t i = block * kBlock / kBits; i < end; ++i) set += std::popcount(bits[i]);
    return set;
  });
  const bool is_beyond = n % kBits != 0 && bits[n / kBits] >> n % kBits != 0;
  if (starts.back() != from.values.size() || is_beyond) refuse(from.values.size(), starts.back());
  visit_dtype(AllTypes{}, line.dtype(), "bitmap", [&]<class T>(TypeTag<T>) {
    const T* const values = from.values.data<T>();
    T* const to = line.data<T>();
    backend::parallel_for_each(blocks, 4, [&](int64_t block) {
      expand(bits + block * kBlock / kBits, values + starts[static_cast<size_t>(block)],
             std::min(kBlock, n - block * kBlock), to + block * kBlock);
    });
  });
}

/// 0, 1, ..., 7.
Tensor bit_numbers(Device device) { return arange(0, kBits, 1, DType::kUInt8, device); }

Bitmap bitmap_cuda(const Tensor& line, int64_t) {
  const Tensor mask = not_equal(line, 0);
  const int64_t bytes = divide_up(mask.size(), kBits);
  const Tensor padded = zeros({bytes * kBits}, DType::kUInt8, mask.device());
  copy_into(slice(padded, 0, 0, mask.size()), cast(mask, DType::kUInt8));
  const Tensor weighted =
      bitwise_left_shift(reshape(padded, {bytes, kBits}), bit_numbers(mask.device()));
  return {cast(sum(weighted, Axes{1}), DType::kUInt8), masked_select(line, mask)};
}

void expand_cuda(const Bitmap& from, const Tensor& line) {
  const Tensor column = reshape(from.bits, {from.bits.size(), 1});
  const Tensor all = bitwise_and(bitwise_right_shift(column, bit_numbers(line.device())), 1);
  const Tensor flat = slice(reshape(cast(all, DType::kBool), {all.size()}), 0, 0, line.size());
  const int64_t set = count_nonzero(flat);
  if (set != from.values.size()) refuse(from.values.size(), set);
  fill(line, 0);
  const std::array<Index, 1> mask{flat};
  set_item(line, mask, from.values);
}

constexpr backend::Slot kMakeBitmap{"bitmap", &bitmap_cpu, &bitmap_cuda};
constexpr backend::Slot kExpandBitmap{"bitmap", &expand_cpu, &expand_cuda};

}  // namespace

Bitmap bitmap_of(const Tensor& line, int64_t nonzeros) {
  return kMakeBitmap(line.device(), contiguous(line), nonzeros);
}

void expand_bitmap(const Bitmap& from, const Tensor& line) {
  kExpandBitmap(line.device(), from, line);
}

}  // namespace cuop
