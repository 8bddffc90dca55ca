#include "cuop/jit/cpu/access.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "cuop/core/copy_bytes.h"
#include "cuop/core/word.h"

namespace cuop::jit {

namespace {

/// The tensor's layout stretched to `shape`, without axes of size 1 and with neighbouring axes
/// merged where one stride walks both.
Layout merged_walk(const Layout& layout, const Shape& shape) {
  Layout walk;
  const int missing = shape.ndim() - layout.ndim();
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const int64_t size = shape[axis];
    if (size == 1) continue;
    const bool is_stretched = axis < missing || layout.shape[axis - missing] == 1;
    const int64_t stride = is_stretched ? 0 : layout.strides[axis - missing];
    if (walk.ndim() > 0 && walk.strides.back() == stride * size) {
      walk.shape.back() *= size;
      walk.strides.back() = stride;
    } else {
      walk.shape.push_back(size);
      walk.strides.push_back(stride);
    }
  }
  return walk;
}

/// A register that every processor has.
typedef uint64_t Words __attribute__((vector_size(16)));

/// The element again and again.
template <int64_t Size>
Words repeated(const std::byte* element) {
  uint64_t low = 0, high = 0;
  std::memcpy(&low, element, std::min<int64_t>(Size, 8));
  for (int64_t bits = 8 * Size; bits < 64; bits *= 2) low |= low << bits;
  if constexpr (Size <= 8) return Words{low, low};
  std::memcpy(&high, element + Size - 8, 8);
  return Words{low, high};
}

/// One element `count` times.
template <int64_t Size>
void fill_elements(void* out, const void* value, int64_t count) {
  auto* const packed = static_cast<std::byte*>(out);
  std::byte element[Size];
  std::memcpy(element, value, Size);
  const Words words = repeated<Size>(element);
  const Words line[] = {words, words, words, words};
  constexpr int64_t kAtOnce = sizeof line / Size;
  int64_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) std::memcpy(packed + i * Size, line, sizeof line);
  for (; i < count; ++i) std::memcpy(packed + i * Size, element, Size);
}

template <int64_t Size, bool IsGather>
[[gnu::always_inline]] inline void copy_run(std::byte* strided, int64_t stride, std::byte* packed,
                                            int64_t count) {
  if (stride == 1) {
    copy_bytes(IsGather ? packed : strided, IsGather ? strided : packed, count * Size);
    return;
  }
  if (IsGather && stride == 0) return fill_elements<Size>(packed, strided, count);
  for (int64_t i = 0; i < count; ++i) {
    std::byte* there = strided + i * stride * Size;
    std::byte* here = packed + i * Size;
    std::memcpy(IsGather ? here : there, IsGather ? there : here, Size);
  }
}

/// `rows` of `columns` elements; in planes as many rows as a cache line has elements column by
/// column, where these lie closer together along the rows.
template <int64_t Size, bool IsGather>
void copy_rows(std::byte* strided, int64_t row_stride, int64_t column_stride, std::byte* packed,
               int64_t rows, int64_t columns, bool is_in_planes) {
  constexpr int64_t kLine = 64 / Size, kAhead = 8;  // rows
  const int64_t row_step = row_stride * Size, packed_step = columns * Size;
  const bool is_across =
      is_in_planes && row_stride != 0 && std::abs(row_stride) < std::abs(column_stride);
  for (; is_across && rows >= kLine; rows -= kLine) {
    for (int64_t column = 0; column < columns; ++column) {
      std::byte* const there = strided + column * column_stride * Size;
      std::byte* const here = packed + column * Size;
      __builtin_prefetch(there + kLine * row_step, IsGather ? 0 : 1);
      for (int64_t row = 0; row < kLine; ++row) {
        std::byte* const a = there + row * row_step;
        std::byte* const b = here + row * packed_step;
        std::memcpy(IsGather ? b : a, IsGather ? a : b, Size);
      }
    }
    strided += kLine * row_step;
    packed += kLine * packed_step;
  }
  for (; rows > 0; --rows, strided += row_step, packed += packed_step) {
    __builtin_prefetch(strided + kAhead * row_step, IsGather ? 0 : 1);
    copy_run<Size, IsGather>(strided, column_stride, packed, columns);
  }
}

}  // namespace

Access::Access(const Tensor& tensor, const Shape& shape, bool is_in_planes)
    : data_(static_cast<std::byte*>(tensor.data())),
      itemsize_(cuop::itemsize(tensor.dtype())),
      is_in_planes_(is_in_planes) {
  if (tensor.shape() == shape && tensor.is_contiguous()) {
    mode_ = Mode::kInPlace;
    return;
  }
  walk_ = merged_walk(tensor.layout(), shape);
  const int axes = walk_->ndim();
  if (axes == 0 || (axes == 1 && walk_->strides[0] == 0)) {
    mode_ = Mode::kUniform;
  } else {
    mode_ = axes == 1 && walk_->strides[0] == 1 ? Mode::kInPlace : Mode::kStrided;
  }
}

std::byte* Access::run_at(int64_t start, int64_t count) const {
  const Layout& walk = *walk_;
  const int last = walk.ndim() - 1;
  const int64_t along = start % walk.shape[last];
  if (along + count > walk.shape[last]) return nullptr;
  int64_t rest = start / walk.shape[last], offset = along * walk.strides[last];
  for (int axis = last - 1; axis >= 0; --axis) {
    offset += rest % walk.shape[axis] * walk.strides[axis];
    rest /= walk.shape[axis];
  }
  return data_ + offset * itemsize_;
}

template <int64_t Size, bool IsGather>
void Access::copy(int64_t start, int64_t count, std::byte* packed) const {
  const Layout& walk = *walk_;
  const int last = walk.ndim() - 1;
  Dims index = Dims::filled(last + 1, 0);
  int64_t rest = start, offset = 0;
  for (int axis = last; axis >= 0; --axis) {
    index[axis] = rest % walk.shape[axis];
    rest /= walk.shape[axis];
    offset += index[axis] * walk.strides[axis];
  }
  // Goes on by `steps` along an axis, from whose end to the axes around it.
  const auto go_on = [&](int axis, int64_t steps) {
    offset += steps * walk.strides[axis];
    index[axis] += steps;
    for (; axis > 0 && index[axis] == walk.shape[axis]; --axis) {
      offset += walk.strides[axis - 1] - index[axis] * walk.strides[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  };
  const int64_t length = walk.shape[last], stride = walk.strides[last];
  while (count > 0) {
    int64_t run = std::min(count, length - index[last]);
    if (run < length || last == 0) {
      copy_run<Size, IsGather>(data_ + offset * Size, stride, packed, run);
      go_on(last, run);
    } else {
      const int64_t rows = std::min(count / length, walk.shape[last - 1] - index[last - 1]);
      run = rows * length;
      copy_rows<Size, IsGather>(data_ + offset * Size, walk.strides[last - 1], stride, packed, rows,
                                length, is_in_planes_);
      go_on(last - 1, rows);
    }
    packed += run * Size;
    count -= run;
  }
}

template <bool IsGather>
void Access::copy_any(int64_t start, int64_t count, std::byte* packed) const {
  with_word(itemsize_,
            [&](auto word) { copy<int64_t{sizeof(word)}, IsGather>(start, count, packed); });
}

void Access::gather(int64_t start, int64_t count, void* packed) const {
  if (mode_ == Mode::kStrided) {
    copy_any<true>(start, count, static_cast<std::byte*>(packed));
  } else if (mode_ == Mode::kUniform) {
    fill(packed, data_, itemsize_, count);
  } else {
    copy_bytes(packed, at(start), count * itemsize_);
  }
}

void Access::scatter(int64_t start, int64_t count, const void* packed) const {
  // The walk's packed side is only read when it scatters.
  auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(packed));
  if (mode_ == Mode::kStrided) {
    copy_any<false>(start, count, from);
  } else {
    copy_bytes(at(start), from, count * itemsize_);
  }
}

void fill(void* out, const void* value, int64_t itemsize, int64_t count) {
  with_word(itemsize, [&](auto word) { fill_elements<int64_t{sizeof(word)}>(out, value, count); });
}

}  // namespace cuop::jit
