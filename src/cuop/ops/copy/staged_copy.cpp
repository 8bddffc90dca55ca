#include "cuop/ops/copy/staged_copy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/copy_bytes.h"
#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/spin.h"
#include "cuop/memory/workspace.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/strided.h"

namespace cuop {
namespace {

constexpr int64_t kLeastBytes = 4 << 20;  // below, the driver's way has less to start
// Threads: 8 reach the speed of a link, and the slots of more, of copies both ways to several GPUs,
// leave no room in the last-level cache, where the GPU finds what they have filled.
constexpr int64_t kMostLanes = 8;
constexpr int64_t kSlots = 2;  // of each
constexpr int64_t kSmallestSlot = 256 << 10;
constexpr int64_t kLargestSlot = 2 << 20;
constexpr int64_t kSlotAlignment = 4 << 10;  // of more than any element, whatever the lanes
// Half of the time that a slot's copy takes: threads that ask the driver all the time keep it from
// starting the copies of the others, where these go on.
constexpr std::chrono::microseconds kBetweenLooks{20};
// Of copies from a GPU, whose elements are not used at once where they are so many.
constexpr int64_t kLeastPastCaches = 32 << 20;
constexpr int64_t kLeastRowPastCaches = 4 << 10;

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

  Box box(int64_t i) const {
    Box box = whole_box(shape_);
    box.set_interval(axis_, split_evenly({0, shape_[axis_]}, ranges_, i % ranges_));
    int64_t place = i / ranges_;
    for (int axis = axis_ - 1; axis >= 0; --axis) {
      box.set_interval(axis, {place % shape_[axis], place % shape_[axis] + 1});
      place /= shape_[axis];
    }
    return box;
  }

 private:
  Shape shape_;
  int axis_ = 0;  ///< that is cut
  int64_t ranges_ = 1, places_ = 1;
};

Tensor view_of(const Tensor& whole, const Box& box) {
  return whole.with_layout(slice(whole.layout(), box));
}

/// to <- from, of one dtype and shape, on the host, past its caches where rows are long.
void copy_rows_past_caches(const Tensor& to, const Tensor& from) {
  const auto nest = make_loop_nest<2>(to.shape(), {&to.strides(), &from.strides()});
  const int64_t item = itemsize(to.dtype()), row = nest.inner().size * item;
  const bool has_rows = nest.inner().strides[0] == 1 && nest.inner().strides[1] == 1;
  if (!has_rows || row < kLeastRowPastCaches) return kernels::strided_copy_cpu(to, from);
  for (int64_t i = 0; i < nest.outer_size(); ++i) {
    const auto offsets = nest.row_offsets(i);
    copy_bytes_past_caches(static_cast<char*>(to.data()) + offsets[0] * item,
                           static_cast<const char*>(from.data()) + offsets[1] * item, row);
  }
}

/// One copy: stretches that threads take in turn, each with two page-locked slots of its own, of
/// which it fills or empties one while the GPU copies the other.
class StagedCopy : NonCopyable {
 public:
  StagedCopy(const Tensor& on_gpu, Stream stream)
      : on_gpu_(on_gpu),
        stream_(stream),
        lanes_(std::clamp<int64_t>(backend::thread_count(), 1, kMostLanes)),
        slot_bytes_(
            round_down(std::clamp(on_gpu.nbytes() / (lanes_ * kSlots), kSmallestSlot, kLargestSlot),
                       kSlotAlignment)),
        stretches_(on_gpu.shape(), itemsize(on_gpu.dtype()), slot_bytes_),
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

  void upload(const FillStage& fill) {
    run([&](int64_t first) { upload(first, fill); });
  }
  void download(const EmptyStage& empty) {
    run([&](int64_t first) { download(first, empty); });
  }

 private:
  struct Slot {
    std::unique_ptr<backend::Event> is_copied;
    bool is_used = false;
  };

  /// work(first slot of a thread) on every thread.
  template <class Work>
  void run(const Work& work) {
    backend::parallel_for_each(lanes_, 1, [&](int64_t lane) {
      const StreamScope scope(stream_);
      try {
        work(lane * kSlots);
      } catch (...) {
        next_ = stretches_.count();  // of no use to the others
        throw;
      }
    });
  }

  /// The next stretch that no thread has taken; none behind the last.
  std::optional<int64_t> take() {
    check_interrupt();
    const int64_t i = next_.fetch_add(1);
    return i < stretches_.count() ? std::optional(i) : std::nullopt;
  }
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number)]; }
  /// What a stretch goes through, as a row-major tensor that is like it: the host's, or for the
  /// GPU, which reaches the same memory.
  Tensor staged(int64_t number, const Tensor& like, Device device = kCpu) const {
    void* const data = static_cast<char*>(memory_.data()) + number * slot_bytes_;
    return from_memory(data, contiguous_layout(like.shape()), like.dtype(), device, {});
  }
  /// to <- from, of which one is a slot's: by the copy engine, or by a kernel where the other one
  /// is not row-major.
  void start(int64_t number, const Tensor& to, const Tensor& from) {
    const Device gpu = stream_.device;
    if (to.is_contiguous() && from.is_contiguous()) {
      backend::runtime(gpu).copy_locked(to.data(), from.data(), to.nbytes(), stream_);
    } else if (to.device().is_cpu()) {
      kernels::strided_copy_cuda(staged(number, to, gpu), from);
    } else {
      kernels::strided_copy_cuda(to, staged(number, from, gpu));
    }
    slot(number).is_used = true;
    slot(number).is_copied->record(stream_);
  }
  void wait(int64_t number) {
    const Slot& used = slot(number);
    while (used.is_used && !used.is_copied->is_done()) {
      check_interrupt();
      const bool goes_on = next_ < stretches_.count();
      if (goes_on) spin_until([] { return false; }, kBetweenLooks);
      std::this_thread::yield();
    }
  }

  void upload(int64_t first, const FillStage& fill) {
    int64_t number = first;
    for (auto i = take(); i; i = take(), number = first + (number - first + 1) % kSlots) {
      wait(number);
      const Box box = stretches_.box(*i);
      const Tensor to = view_of(on_gpu_, box), between = staged(number, to);
      fill(box, between);
      start(number, to, between);
    }
    for (int64_t k = first; k < first + kSlots; ++k) wait(k);
  }

  void download(int64_t first, const EmptyStage& empty) {
    std::array<std::optional<int64_t>, kSlots> under_way;
    const auto begin = [&](int64_t k) {
      std::optional<int64_t>& i = under_way[static_cast<size_t>(k)];
      i = take();
      if (!i) return;
      const Tensor from = view_of(on_gpu_, stretches_.box(*i));
      start(first + k, staged(first + k, from), from);
    };
    for (int64_t k = 0; k < kSlots; ++k) begin(k);
    for (int64_t k = 0; under_way[static_cast<size_t>(k)]; k = (k + 1) % kSlots) {
      wait(first + k);
      const Box box = stretches_.box(*under_way[static_cast<size_t>(k)]);
      empty(box, staged(first + k, view_of(on_gpu_, box)));
      begin(k);
    }
  }

  const Tensor& on_gpu_;
  Stream stream_;
  int64_t lanes_, slot_bytes_;
  Stretches stretches_;
  memory::Workspace memory_;
  std::vector<Slot> slots_;
  std::atomic<int64_t> next_ = 0;
};

/// Whether so many bytes are worth stages, and the GPU's stream takes copies of the host: a graph
/// does not.
bool is_worth_stages(int64_t bytes, Device gpu) {
  return bytes >= kLeastBytes && !backend::runtime(gpu).is_recording(current_stream(gpu));
}

}  // namespace

bool is_staged(const Tensor& on_host, Device gpu) {
  if (!is_worth_stages(on_host.nbytes(), gpu)) return false;
  // The driver takes page-locked memory as it lies, but without gaps.
  return !(on_host.is_contiguous() && is_pinned(on_host, gpu));
}

namespace {

/// What `move` does with the copy of a tensor on a GPU. False where no memory can be locked.
template <class Move>
bool run_staged(const Tensor& on_gpu, const Move& move) {
  const Stream stream = current_stream(on_gpu.device());
  // What the stream holds comes first, in a wait that hears an interrupt.
  backend::runtime(stream.device).synchronize(stream);
  std::optional<StagedCopy> copy;
  try {
    copy.emplace(on_gpu, stream);
  } catch (const MemoryError&) {
    return false;
  }
  move(*copy);
  return true;
}

}  // namespace

bool staged_copy(const Tensor& dst, const Tensor& src) {
  // Stretches follow the host's memory; what lies in another order on the GPU is turned by it.
  const Dims order = memory_order(dst.device().is_cpu() ? dst.layout() : src.layout());
  const auto in_order = [&](const Tensor& tensor) {
    return tensor.with_layout(permute(tensor.layout(), order));
  };
  const Tensor to = in_order(dst), from = in_order(src);
  if (dst.device().is_cpu()) {
    const auto copy_rows =
        dst.nbytes() >= kLeastPastCaches ? &copy_rows_past_caches : &kernels::strided_copy_cpu;
    const auto empty = [&](const Box& box, const Tensor& staged) {
      copy_rows(view_of(to, box), staged);
    };
    return run_staged(from, [&](StagedCopy& copy) { copy.download(empty); });
  }
  const auto fill = [&](const Box& box, const Tensor& staged) {
    kernels::strided_copy_cpu(staged, view_of(from, box));
  };
  return run_staged(to, [&](StagedCopy& copy) { copy.upload(fill); });
}

bool staged_fill(const Tensor& dst, const FillStage& fill) {
  return is_worth_stages(dst.nbytes(), dst.device()) &&
         run_staged(dst, [&](StagedCopy& copy) { copy.upload(fill); });
}

bool staged_empty(const Tensor& src, const EmptyStage& empty) {
  return is_worth_stages(src.nbytes(), src.device()) &&
         run_staged(src, [&](StagedCopy& copy) { copy.download(empty); });
}

}  // namespace cuop
