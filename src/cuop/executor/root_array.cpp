#include "cuop/executor/root_array.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/staged_copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {
namespace {

/// Elements in a row of memory that reading goes by: an array's box falls into such runs.
struct Runs {
  int64_t length = 1;  ///< elements of each
  int axes = 0;        ///< leading axes that count them
};

Runs runs_of(const Box& box, const Layout& layout) {
  Runs runs{1, layout.ndim()};
  for (int axis = layout.ndim() - 1; axis >= 0; --axis) {
    const int64_t length = box.interval(axis).length();
    if (length != 1 && layout.strides[axis] != runs.length) break;
    runs.length *= length;
    runs.axes = axis;
  }
  return runs;
}

/// A box of a box's elements, as one of the array's.
Box within(const Box& box, const Box& piece) {
  Box result = piece;
  for (int axis = 0; axis < box.ndim(); ++axis) {
    const Interval range = piece.interval(axis);
    result.set_interval(axis, {box.low[axis] + range.low, box.low[axis] + range.high});
  }
  return result;
}

}  // namespace

Tensor RootArray::read(const Box& box, Device device) const {
  if (!far_) return to_device(view_of(near_, box), device);
  const Tensor part = empty(box.shape(), far_->dtype, device);
  read_into(box, part);
  return part;
}

void RootArray::read_into(const Box& box, const Tensor& place) const {
  if (!far_) return copy_across(place, view_of(near_, box));
  const Box there = permute(box, far_->order);
  const Tensor here = permute(place, far_->order);
  if (here.device().is_cpu() && here.is_contiguous()) return read_far(there, here.data());
  const auto fill = [&](const Box& piece, const Tensor& to) {
    read_far(within(there, piece), to.data());
  };
  if (!here.device().is_cpu() && staged_fill(here, fill)) return;
  const Tensor part = empty(there.shape(), far_->dtype);
  read_far(there, part.data());
  copy_across(here, part);
}

int64_t RootArray::rows() const {
  return far_ ? far_->layout.shape[0] : near_.box.interval(0).high;
}

Tensor RootArray::read_beyond(const Box& box, Device device, bool is_wrapped) const {
  const int64_t rows = this->rows();
  const Interval wanted = box.interval(0);
  if (wanted.low >= 0 && wanted.high <= rows) return read(box, device);
  const DType dtype = far_ ? far_->dtype : near_.local.dtype();
  const Tensor all = zeros(box.shape(), dtype, device);
  // Stretches of rows that lie together in the array.
  for (int64_t row = is_wrapped ? wanted.low : std::max<int64_t>(0, wanted.low);
       row < wanted.high;) {
    if (rows == 0 || (!is_wrapped && row >= rows)) break;
    const int64_t first = (row % rows + rows) % rows;
    const int64_t count = std::min(rows - first, wanted.high - row);
    Box piece = box;
    piece.set_interval(0, {first, first + count});
    copy_into(slice(all, 0, row - wanted.low, row - wanted.low + count), read(piece, device));
    row += count;
  }
  return all;
}

template <class Move>
void RootArray::move_far(const Box& box, const char* done_to, const Move& move) const {
  constexpr int64_t kMostBytes = int64_t{32} << 20;  // between two looks for an interrupt
  const Layout layout = permute(far_->layout, far_->order);
  const int64_t item = itemsize(far_->dtype);
  const Runs runs = runs_of(box, layout);
  const int64_t bytes = runs.length * item;
  std::vector<dist::MemoryRun> together;
  int64_t moved = 0, waiting = 0;
  const auto move_waiting = [&] {
    if (!move(std::span<const dist::MemoryRun>(together), moved)) {
      throw CommunicationError(
          cat("arrays of the root: its memory cannot be ", done_to, " any more"), far_->owner);
    }
    moved += std::exchange(waiting, 0);
    together.clear();
    check_interrupt();
  };
  Dims at = box.low;
  for (int64_t left = bytes > 0 ? box.size() / runs.length : 0; left > 0; --left) {
    int64_t offset = 0;
    for (int axis = 0; axis < layout.ndim(); ++axis) offset += at[axis] * layout.strides[axis];
    for (int64_t done = 0; done < bytes; done += kMostBytes) {
      const int64_t now = std::min(kMostBytes, bytes - done);
      if (together.size() == dist::kMostRuns || waiting + now > kMostBytes) move_waiting();
      together.push_back({offset * item + done, now});
      waiting += now;
    }
    for (int axis = runs.axes - 1; axis >= 0; --axis) {
      if (++at[axis] < box.high[axis]) break;
      at[axis] = box.low[axis];
    }
  }
  if (waiting > 0) move_waiting();
}

void RootArray::read_far(const Box& box, void* to) const {
  move_far(box, "read", [&](std::span<const dist::MemoryRun> runs, int64_t before) {
    return dist::read_memory(far_->address, runs, static_cast<char*>(to) + before);
  });
}

void RootArray::write_far(const Box& box, const void* from) const {
  move_far(box, "written", [&](std::span<const dist::MemoryRun> runs, int64_t before) {
    return dist::write_memory(far_->address, runs, static_cast<const char*>(from) + before);
  });
}

void RootArray::write(const Box& box, const Tensor& tile) const {
  if (far_) {
    const Box there = permute(box, far_->order);
    const Tensor here = permute(tile, far_->order);
    const auto take = [&](const Box& piece, const Tensor& from) {
      write_far(within(there, piece), from.data());
    };
    if (!here.device().is_cpu() && staged_empty(here, take)) return;
    return write_far(there, contiguous(to_device(here, kCpu)).data());
  }
  const Tensor place = view_of(near_, box);
  if (is_same_view(place, tile)) return;
  copy_across(place, tile);
}

}  // namespace cuop::executor
