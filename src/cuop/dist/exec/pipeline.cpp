#include "cuop/dist/exec/pipeline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"
#include "cuop/core/trace.h"
#include "cuop/memory/current.h"

namespace cuop::dist {
namespace {

void run_in_turn(int64_t chunks, const Stages& stages) {
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    stages.bring(chunk);
    stages.work(chunk);
    stages.take(chunk);
  }
}

/// A thread beside the caller's, for one piece of work at a time.
class Aside : NonCopyable {
 public:
  Aside()
      : execution_(backend::execution_options()),
        threads_(backend::thread_count()),
        device_(backend::current_device()),
        rank_(trace::thread_rank()) {}
  ~Aside() { is_interrupted_ = true; }  // what it does is of no use then; the future waits for it

  template <class Work>
  void start(const Work& work) {
    working_ = std::async(std::launch::async, [this, work] {
      trace::set_thread_rank(rank_);
      backend::set_thread_count(threads_);
      backend::set_current_device(device_);
      const backend::ExecutionScope wanted(execution_);
      const CancelScope cancelled(is_interrupted_);
      work();
    });
  }
  /// Waits; throws what it threw.
  void finish() {
    while (working_.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      check_interrupt();
    }
    working_.get();
  }

 private:
  const backend::ExecutionOptions execution_;
  const int threads_;
  const Device device_;
  const int rank_;
  std::atomic<bool> is_interrupted_ = false;
  std::future<void> working_;
};

/// How far two threads have come with the chunks, in which order.
class Progress {
 public:
  /// Waits until `is_so_far` of the counts holds; false when the other side has ended before.
  template <class IsSoFar>
  bool wait(const IsSoFar& is_so_far) {
    std::unique_lock lock(mutex_);
    wait_interruptibly(changed_, lock, std::chrono::steady_clock::time_point::max(),
                       [&] { return has_ended_ || is_so_far(started_, taken_); });
    return is_so_far(started_, taken_);
  }
  void count_started() { count(started_); }
  void count_taken() { count(taken_); }
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_all();
  }

 private:
  void count(int64_t& chunks) {
    const std::lock_guard lock(mutex_);
    ++chunks;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t started_ = 0, taken_ = 0;
  bool has_ended_ = false;
};

/// start(chunk) begins the work, end(chunk) returns when what is taken away may follow.
template <class Start, class End>
void run_overlapped(int64_t chunks, const Stages& stages, int64_t ahead, const Start& start,
                    const End& end) {
  int64_t brought = 0;
  const auto bring_until = [&](int64_t count) {
    for (; brought < std::min(count, chunks); ++brought) stages.bring(brought);
  };
  bring_until(1);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    start(chunk);
    if (chunk > 0) stages.take(chunk - 1);
    bring_until(chunk + 1 + ahead);
    end(chunk);
  }
  if (chunks > 0) stages.take(chunks - 1);
}

void run_on_host(int64_t chunks, const Stages& stages, int64_t ahead) {
  Aside aside;
  run_overlapped(
      chunks, stages, ahead,
      [&](int64_t chunk) { aside.start([&stages, chunk] { stages.work(chunk); }); },
      [&](int64_t) { aside.finish(); });
}

/// Chunks are brought and their work is started by another thread; this one takes them away. Of two
/// chunks in a row the inputs, and the results, are there at a time.
void run_both_ways(Device device, int64_t chunks, const Stages& stages, Stream main, Stream in) {
  backend::Runtime& runtime = backend::runtime(device);
  std::array<std::unique_ptr<backend::Event>, 2> worked;
  for (auto& event : worked) event = runtime.create_event(false);
  const auto work_of = [&](int64_t chunk) -> backend::Event& {
    return *worked[static_cast<size_t>(chunk % 2)];
  };
  Progress progress;
  const auto bring_and_start = [&] {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      // What its memory was before is free when the work before the last has ended.
      if (chunk > 1) work_of(chunk).synchronize();
      stages.bring(chunk);
      runtime.order(main, in);
      if (!progress.wait([&](int64_t, int64_t taken) { return chunk < taken + 2; })) return;
      const StreamScope scope(main);
      stages.work(chunk);
      work_of(chunk).record(main);
      progress.count_started();
    }
  };
  Aside aside;
  struct End {  // before `aside` waits for its thread
    Progress& progress;
    ~End() { progress.end(); }
  };
  aside.start([&] {
    const End end{progress};
    bring_and_start();
  });
  {
    const End end{progress};
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      if (!progress.wait([&](int64_t started, int64_t) { return chunk < started; })) break;
      work_of(chunk).synchronize();
      stages.take(chunk);
      progress.count_taken();
    }
  }
  aside.finish();  // which throws what has ended it
}

void run_on_streams(Device device, int64_t chunks, const Stages& stages, const Overlap& overlap,
                    const std::vector<Tensor>& tensors) {
  backend::Runtime& runtime = backend::runtime(device);
  const Stream main = current_stream(device);
  const backend::OwnedStream way_in(device);
  std::optional<backend::OwnedStream> way_out;
  if (overlap.is_two_way) way_out.emplace(device);
  std::vector<Stream> ways{way_in.get()};
  if (way_out) ways.push_back(way_out->get());
  const Stream in = ways.front(), out = ways.back();
  const auto let_wait_for_main = [&] {
    for (const Stream& way : ways) runtime.order(way, main);
  };
  for (const Tensor& tensor : tensors) {
    if (!tensor.is_defined() || tensor.size() == 0) continue;
    for (const Stream& way : ways) memory::record_stream(*tensor.storage(), way);
  }
  let_wait_for_main();
  const auto on = [](Stream stream, const std::function<void(int64_t)>& stage) {
    return [&stage, stream](int64_t chunk) {
      const StreamScope scope(stream);
      const backend::ExecutionScope beside(backend::beside_work());
      stage(chunk);
    };
  };
  const Stages placed{on(in, stages.bring), stages.work, on(out, stages.take)};
  if (overlap.is_two_way) {
    run_both_ways(device, chunks, placed, main, in);
  } else {
    run_overlapped(
        chunks, placed, overlap.ahead,
        [&](int64_t chunk) {
          if (!overlap.is_apart) runtime.order(main, in);
          stages.work(chunk);
        },
        [&](int64_t) {
          if (!overlap.is_apart) let_wait_for_main();
        });
  }
  for (const Stream& way : ways) runtime.order(main, way);
}

}  // namespace

void run_pipeline(Device device, int64_t chunks, const Stages& stages, const Overlap& overlap,
                  const std::vector<Tensor>& tensors) {
  const trace::Span span("pipeline", "dist");
  Overlap wanted = overlap;
  wanted.ahead = std::max<int64_t>(overlap.ahead, 1);
  if (!wanted.is_on || chunks < 2) return run_in_turn(chunks, stages);
  if (device.is_cpu()) return run_on_host(chunks, stages, wanted.ahead);
  run_on_streams(device, chunks, stages, wanted, tensors);
}

}  // namespace cuop::dist
