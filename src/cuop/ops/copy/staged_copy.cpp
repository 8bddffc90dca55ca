#include "cuop/ops/copy/staged_copy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/box.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/workspace.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/create/empty.h"

namespace cuop {
namespace {

constexpr int64_t kLeastBytes = 4 << 20;  // below, the driver's way has less to start
constexpr int64_t kMostLanes = 16;        // threads; more share what the host's memory gives
constexpr int64_t kSlots = 2;             // of each
constexpr int64_t kSmallestSlot = 256 << 10;
constexpr int64_t kLargestSlot = 2 << 20;

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

/// One copy: stretches that threads take in turn, each with two page-locked slots of its own, of
/// which it fills or empties one while the GPU copies the other.
class StagedCopy : NonCopyable {
 public:
  StagedCopy(const Tensor& dst, const Tensor& src, Stream stream)
      : dst_(dst),
        src_(src),
        stream_(stream),
        lanes_(std::clamp<int64_t>(backend::thread_count(), 1, kMostLanes)),
        slot_bytes_(std::clamp(dst.nbytes() / (lanes_ * kSlots), kSmallestSlot, kLargestSlot)),
        stretches_(dst.shape(), itemsize(dst.dtype()), slot_bytes_),
        // No stream uses it any more when it goes back: one order serves all.
        memory_(lanes_ * kSlots * slot_bytes_, Stream{stream.device},
                backend::locked_memory(stream.device)),
        slots_(static_cast<size_t>(lanes_ * kSlots)) {
    for (Slot& slot : slots_) slot.is_copied = backend::runtime(stream.device).create_event(false);
  }
  ~StagedCopy() {
    // Whatever has ended the call, an interrupt too: the memory goes back when no copy uses it.
    for (const Slot& slot : slots_) {
      try {
        while (slot.is_used && !slot.is_copied->is_done()) std::this_thread::yield();
      } catch (...) {  // the device's use has ended, and with it the copy
      }
    }
  }

  void run() {
    const bool is_upload = src_.device().is_cpu();
    backend::parallel_for_each(lanes_, 1, [&](int64_t lane) {
      try {
        is_upload ? upload(lane * kSlots) : download(lane * kSlots);
      } catch (...) {
        next_ = stretches_.count();  // of no use to the others
        throw;
      }
    });
  }

 private:
  struct Slot {
    std::unique_ptr<backend::Event> is_copied;
    bool is_used = false;
  };

  /// The next stretch that no thread has taken; none behind the last.
  std::optional<int64_t> take() {
    check_interrupt();
    const int64_t i = next_.fetch_add(1);
    return i < stretches_.count() ? std::optional(i) : std::nullopt;
  }
  Tensor stretch(const Tensor& whole, int64_t i) const {
    return whole.with_layout(stretches_.of(whole.layout(), i));
  }
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number)]; }
  /// What a stretch goes through, as a row-major tensor of the host that is like it.
  Tensor staged(int64_t number, const Tensor& like) const {
    void* const data = static_cast<char*>(memory_.data()) + number * slot_bytes_;
    return from_memory(data, contiguous_layout(like.shape()), like.dtype(), kCpu, {});
  }
  void start(int64_t number, const Tensor& to, const Tensor& from) {
    backend::runtime(stream_.device).copy_locked(to.data(), from.data(), to.nbytes(), stream_);
    slot(number).is_used = true;
    slot(number).is_copied->record(stream_);
  }
  void wait(int64_t number) {
    if (slot(number).is_used) slot(number).is_copied->synchronize();
  }

  void upload(int64_t first) {
    int64_t number = first;
    for (auto i = take(); i; i = take(), number = first + (number - first + 1) % kSlots) {
      wait(number);
      const Tensor to = stretch(dst_, *i), between = staged(number, to);
      kernels::strided_copy_cpu(between, stretch(src_, *i));
      start(number, to, between);
    }
    for (int64_t k = first; k < first + kSlots; ++k) wait(k);
  }

  void download(int64_t first) {
    std::array<std::optional<int64_t>, kSlots> under_way;
    const auto begin = [&](int64_t k) {
      std::optional<int64_t>& i = under_way[static_cast<size_t>(k)];
      i = take();
      if (!i) return;
      const Tensor from = stretch(src_, *i);
      start(first + k, staged(first + k, from), from);
    };
    for (int64_t k = 0; k < kSlots; ++k) begin(k);
    for (int64_t k = 0; under_way[static_cast<size_t>(k)]; k = (k + 1) % kSlots) {
      wait(first + k);
      const Tensor to = stretch(dst_, *under_way[static_cast<size_t>(k)]);
      kernels::strided_copy_cpu(to, staged(first + k, to));
      begin(k);
    }
  }

  const Tensor& dst_;
  const Tensor& src_;
  Stream stream_;
  int64_t lanes_, slot_bytes_;
  Stretches stretches_;
  memory::Workspace memory_;
  std::vector<Slot> slots_;
  std::atomic<int64_t> next_ = 0;
};

}  // namespace

bool is_staged(const Tensor& on_host, Device gpu) {
  if (on_host.nbytes() < kLeastBytes) return false;
  // The driver takes page-locked memory as it lies, but without gaps.
  if (on_host.is_contiguous() && backend::runtime(gpu).is_locked(on_host.data())) return false;
  // A graph takes no copy of the host.
  return !backend::runtime(gpu).is_recording(current_stream(gpu));
}

bool staged_copy(const Tensor& dst, const Tensor& src) {
  const Stream stream = current_stream(src.device().is_cpu() ? dst.device() : src.device());
  // What the stream holds comes first, in a wait that hears an interrupt.
  backend::runtime(stream.device).synchronize(stream);
  std::optional<StagedCopy> copy;
  try {
    copy.emplace(dst, src, stream);
  } catch (const MemoryError&) {
    return false;
  }
  copy->run();
  return true;
}

}  // namespace cuop
