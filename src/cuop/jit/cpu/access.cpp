#include "cuop/jit/cpu/access.h"

#include <algorithm>
#include <cstddef>
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

/// One element `count` times, in blocks that hold some of them.
template <int64_t Size>
void fill_elements(void* out, const void* value, int64_t count) {
  constexpr int64_t kBlock = 64;
  auto* const packed = static_cast<std::byte*>(out);
  std::byte block[kBlock];
  for (int64_t i = 0; i < kBlock; i += Size) std::memcpy(block + i, value, Size);
  int64_t done = 0;
  for (; done + kBlock <= count * Size; done += kBlock) std::memcpy(packed + done, block, kBlock);
  std::memcpy(packed + done, block, static_cast<size_t>(count * Size - done));
}

template <int64_t Size, bool IsGather>
void copy_run(std::byte* strided, int64_t stride, std::byte* packed, int64_t count) {
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

}  // namespace

Access::Access(const Tensor& tensor, const Shape& shape)
    : data_(static_cast<std::byte*>(tensor.data())), itemsize_(cuop::itemsize(tensor.dtype())) {
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
  const int64_t length = walk.shape[last], stride = walk.strides[last];
  while (count > 0) {
    const int64_t run = std::min(count, length - index[last]);
    copy_run<Size, IsGather>(data_ + offset * Size, stride, packed, run);
    packed += run * Size;
    count -= run;
    offset -= index[last] * stride;
    index[last] = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += walk.strides[axis];
      if (++index[axis] < walk.shape[axis]) break;
      offset -= walk.shape[axis] * walk.strides[axis];
      index[axis] = 0;
    }
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
