#include "cuop/ops/copy/staged_copy.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <thread>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/cuda/workspace.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/box.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/create/empty.h"

namespace cuop {
namespace {

constexpr int64_t kLeastBytes = 4 << 20;  // below, the driver's way has less to start
constexpr int64_t kSlots = 4;
constexpr int64_t kSmallestSlot = 1 << 20;
constexpr int64_t kLargestSlot = 8 << 20;

/// A row-major tensor in stretches of memory of at most so many bytes, in order: ranges of one axis
/// at one place of the axes before it.
class Stretches {
 public:
  Stretches(const Shape& shape, int64_t itemsize, int64_t most_bytes) : shape_(shape) {
    int64_t row = element_count(shape) * itemsize / shape[0];
    while (row > most_bytes) row /= shape[++axis_];
    ranges_ = divide_up(shape[axis_], most_bytes / row);
    for (int axis = 0; axis < axis_; ++axis) places_ *= shape[axis];
  }

  int64_t count() const { return places_ * ranges_; }

  /// One of them of a tensor of this shape in any layout.
  Layout of(Layout layout, int64_t i) const {
    const Interval range = split_evenly({0, shape_[axis_]}, ranges_, i % ranges_);
    layout.offset += range.low * layout.strides[axis_];
    layout.shape[axis_] = range.length();
    int64_t place = i / ranges_;
    for (int axis = axis_ - 1; axis >= 0; --axis) {
      layout.offset += place % shape_[axis] * layout.strides[axis];
      layout.shape[axis] = 1;
      place /= shape_[axis];
    }
    return layout;
  }

 private:
  Shape shape_;
  int axis_ = 0;  ///< that is cut
  int64_t ranges_ = 1, places_ = 1;
};

/// Page-locked memory for a few stretches, which the GPU copies from or to as work of a stream.
class Slots : NonCopyable {
 public:
  Slots(int64_t slot_bytes, Stream stream)
      : stream_(stream),
        slot_bytes_(slot_bytes),
        // No stream uses it any more when it goes back: one order serves all.
        memory_(kSlots * slot_bytes, Stream{stream.device},
                backend::cuda::pinned_memory(stream.device)) {
    for (auto& event : is_copied_) event = backend::runtime(stream.device).create_event(false);
  }
  ~Slots() {
    // Whatever has ended the call, an interrupt too: the memory goes back when no copy uses it.
    for (int64_t i = 0; i < used_; ++i) {
      try {
        while (!event(i).is_done()) std::this_thread::yield();
      } catch (...) {  // the device's use has ended, and with it the copy
      }
    }
  }

  /// What copy i goes through, as a row-major tensor of the host that is like another one.
  Tensor tensor(int64_t i, const Tensor& like) const {
    return from_memory(slot(i), contiguous_layout(like.shape()), like.dtype(), kCpu, {});
  }
  /// Starts copy i, between its slot and the GPU's memory.
  void copy_in(int64_t i, const Tensor& from) { copy(i, slot(i), from.data(), from.nbytes()); }
  void copy_out(int64_t i, const Tensor& to) { copy(i, to.data(), slot(i), to.nbytes()); }
  /// Returns when copy i has been made; at once for one that was never started.
  void wait(int64_t i) const {
    if (i >= 0) event(i).synchronize();
  }

 private:
  void* slot(int64_t i) const {
    return static_cast<char*>(memory_.data()) + i % kSlots * slot_bytes_;
  }
  backend::Event& event(int64_t i) const { return *is_copied_[static_cast<size_t>(i % kSlots)]; }
  void copy(int64_t i, void* to, const void* from, int64_t bytes) {
    backend::runtime(stream_.device).copy_locked(to, from, bytes, stream_);
    used_ = std::max(used_, std::min(i + 1, kSlots));
    event(i).record(stream_);
  }

  Stream stream_;
  int64_t slot_bytes_;
  backend::cuda::Workspace memory_;
  std::array<std::unique_ptr<backend::Event>, kSlots> is_copied_;
  int64_t used_ = 0;  ///< slots that some copy has gone through
};

Tensor stretch(const Tensor& whole, const Stretches& stretches, int64_t i) {
  return whole.with_layout(stretches.of(whole.layout(), i));
}

void upload(const Tensor& dst, const Tensor& src, const Stretches& stretches, Slots& slots) {
  const int64_t count = stretches.count();
  for (int64_t i = 0; i < count; ++i) {
    slots.wait(i - kSlots);
    const Tensor to = stretch(dst, stretches, i);
    kernels::strided_copy_cpu(slots.tensor(i, to), stretch(src, stretches, i));
    slots.copy_out(i, to);
  }
  for (int64_t i = count - kSlots; i < count; ++i) slots.wait(i);
}

void download(const Tensor& dst, const Tensor& src, const Stretches& stretches, Slots& slots) {
  const int64_t count = stretches.count();
  const auto start = [&](int64_t i) {
    if (i < count) slots.copy_in(i, stretch(src, stretches, i));
  };
  for (int64_t i = 0; i < kSlots; ++i) start(i);
  for (int64_t i = 0; i < count; ++i) {
    slots.wait(i);
    const Tensor to = stretch(dst, stretches, i);
    kernels::strided_copy_cpu(to, slots.tensor(i, to));
    start(i + kSlots);
  }
}

}  // namespace

bool is_staged(const Tensor& on_host, Device gpu) {
  return on_host.nbytes() >= kLeastBytes && !backend::runtime(gpu).is_locked(on_host.data()) &&
         !backend::cuda::is_capturing(current_stream(gpu));  // where no copy of the host is taken
}

bool staged_copy(const Tensor& dst, const Tensor& src) {
  const bool is_upload = src.device().is_cpu();
  const Stream stream = current_stream(is_upload ? dst.device() : src.device());
  const int64_t slot_bytes = std::clamp(dst.nbytes() / 8, kSmallestSlot, kLargestSlot);
  // What the stream holds comes first, in a wait that hears an interrupt.
  backend::runtime(stream.device).synchronize(stream);
  std::optional<Slots> slots;
  try {
    slots.emplace(slot_bytes, stream);
  } catch (const MemoryError&) {
    return false;
  }
  const Stretches stretches(dst.shape(), itemsize(dst.dtype()), slot_bytes);
  if (is_upload) {
    upload(dst, src, stretches, *slots);
  } else {
    download(dst, src, stretches, *slots);
  }
  return true;
}

}  // namespace cuop
