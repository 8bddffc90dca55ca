#include "cuop/dist/exec/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <optional>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/interrupt.h"
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
class Aside {
 public:
  Aside()
      : execution_(backend::execution_options()),
        threads_(backend::thread_count()),
        rank_(trace::thread_rank()) {}
  ~Aside() { is_interrupted_ = true; }  // what it does is of no use then; the future waits for it
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  template <class Work>
  void start(const Work& work) {
    working_ = std::async(std::launch::async, [this, work] {
      trace::set_thread_rank(rank_);
      backend::set_thread_count(threads_);
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
  const int threads_, rank_;
  std::atomic<bool> is_interrupted_ = false;
  std::future<void> working_;
};

/// start(chunk) begins the work, end(chunk) returns when what is taken away may follow;
/// move(take, bring) does both between them.
template <class Start, class Move, class End>
void run_overlapped(int64_t chunks, const Stages& stages, int64_t ahead, const Start& start,
                    const Move& move, const End& end) {
  int64_t brought = 0;
  const auto bring_until = [&](int64_t count) {
    for (; brought < std::min(count, chunks); ++brought) stages.bring(brought);
  };
  bring_until(1);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    start(chunk);
    move(
        [&] {
          if (chunk > 0) stages.take(chunk - 1);
        },
        [&] { bring_until(chunk + 1 + ahead); });
    end(chunk);
  }
  if (chunks > 0) stages.take(chunks - 1);
}

constexpr auto kInTurn = [](const auto& take, const auto& bring) {
  take();
  bring();
};

void run_on_host(int64_t chunks, const Stages& stages, int64_t ahead) {
  Aside aside;
  run_overlapped(
      chunks, stages, ahead,
      [&](int64_t chunk) { aside.start([&stages, chunk] { stages.work(chunk); }); }, kInTurn,
      [&](int64_t) { aside.finish(); });
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
      stage(chunk);
    };
  };
  const Stages placed{on(in, stages.bring), stages.work, on(out, stages.take)};
  const auto start = [&](int64_t chunk) {
    runtime.order(main, in);
    stages.work(chunk);
  };
  const auto end = [&](int64_t) { let_wait_for_main(); };
  const int64_t ahead = overlap.ahead;
  if (overlap.is_two_way) {
    const auto both_ways = [](const auto& take, const auto& bring) {
      Aside aside;  // has ended when this returns or throws
      aside.start(bring);
      take();
      aside.finish();
    };
    run_overlapped(chunks, placed, ahead, start, both_ways, end);
  } else {
    run_overlapped(chunks, placed, ahead, start, kInTurn, end);
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
