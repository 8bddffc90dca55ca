// The calls of a communicator, checked before they are run, and staged where they have to be.
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/by_exchange.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/communicator.h"
#include "cuop/dist/comm/packed_exchange.h"
#include "cuop/dist/comm/staging.h"
#include "cuop/ops/output.h"

namespace cuop::dist {

using Kind = Collective::Kind;

uint64_t Communicator::next_number() {
  static std::atomic<uint64_t> next = 0;
  return next++;
}

namespace {

Collective of_blocks(Kind kind, const void* send, std::span<const Block> blocks, void* recv,
                     Stream stream, int root = 0) {
  return {
      .kind = kind, .root = root, .send = send, .recv = recv, .blocks = blocks, .stream = stream};
}

Collective of_elements(Kind kind, const void* send, void* recv, int64_t count, DType dtype,
                       ReduceKind op, Stream stream, int root = 0) {
  return {.kind = kind,
          .root = root,
          .send = send,
          .recv = recv,
          .count = count,
          .dtype = dtype,
          .op = op,
          .stream = stream};
}

}  // namespace

const char* Collective::name() const {
  constexpr const char* kNames[] = {"barrier",    "broadcast",      "scatter",  "gather",
                                    "all_gather", "all_to_all",     "exchange", "reduce",
                                    "all_reduce", "reduce_scatter", "split"};
  return kNames[static_cast<size_t>(whole().kind)];
}

bool Communicator::goes_by_exchange(const Collective& call) {
  const bool is_candidate = maps_gpu_memory() && size() > 1;
  if (!is_candidate || call.kind == Kind::kBarrier) return false;
  if (call.kind != Kind::kAllToAll && agreed_bytes(call) < mapped_from_) return false;
  int32_t on_gpu = call.stream.device.is_cpu() ? 0 : 1;
  const Uncounted agreement(*this);
  run({.kind = Kind::kAllReduce,
       .send = &on_gpu,
       .recv = &on_gpu,
       .count = 1,
       .dtype = DType::kInt32,
       .op = ReduceKind::kMax,
       .step_of = &call});
  return on_gpu == 1;
}

std::string Collective::words() const {
  const Collective& made = whole();
  return cat("root ", made.root, ", count ", made.count, " of ", cuop::name(made.dtype), ", ",
             cuop::name(made.op));
}

/// The time of a call, counted once where calls are made of others.
class Communicator::CallTime : NonCopyable {
 public:
  explicit CallTime(Communicator& comm) : comm_(comm), is_outermost_(!comm.is_timed_) {
    if (!is_outermost_) return;
    comm_.is_timed_ = true;
    begin_ = std::chrono::steady_clock::now();
  }
  ~CallTime() {
    if (!is_outermost_) return;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin_;
    comm_.seconds_in_calls_ += taken.count();
    comm_.is_timed_ = false;
  }

 private:
  Communicator& comm_;
  bool is_outermost_;
  std::chrono::steady_clock::time_point begin_;
};

Communicator::Communicator(double timeout) : timeout_(timeout) {}

bool Communicator::is_at_home() const { return process_.is_here() || size() == 1; }

void Communicator::check_process(std::string_view who) const {
  if (is_at_home()) return;
  throw CommunicationError(cat(who, ": this process was forked from rank ", rank(), " of ", size(),
                               " and is no rank itself; make the call in the rank's process, or "
                               "start ranks of this one with run_ranks"));
}

Communicator::Use::Use(Communicator& comm, std::string_view who) {
  comm.check_process(who);
  const std::thread::id self = std::this_thread::get_id();
  if (comm.size() == 1 || comm.user_.load(std::memory_order_relaxed) == self) return;
  std::thread::id nobody;
  if (comm.user_.compare_exchange_strong(nobody, self, std::memory_order_acquire)) {
    entered_ = &comm;
    return;
  }
  const std::string text =
      cat(who, ": another thread of rank ", comm.rank(), " of ", comm.size(),
          " is in a call of this communicator, which one thread at a time may use; split makes one "
          "for each");
  count_collective_call();  // the others are told here
  comm.abort(text);
  throw ExecutionError(text);
}

Communicator::Use::~Use() {
  if (entered_) entered_->user_.store({}, std::memory_order_release);
}

void Communicator::set_timeout(double seconds) {
  if (!(seconds >= 0.0)) {
    throw ExecutionError(
        cat("timeout: ", seconds, " was given; needed are seconds, 0 or more, infinity included"));
  }
  timeout_ = seconds;
}

void Communicator::note_sent(int dst, int64_t bytes) {
  if (!is_counting_) return;
  if (bytes_sent_to_.empty()) bytes_sent_to_.resize(static_cast<size_t>(size()));
  bytes_sent_to_[static_cast<size_t>(dst)] += bytes;
  bytes_sent_ += bytes;
}

void Communicator::set_sent(int64_t bytes, std::vector<int64_t> to) {
  bytes_sent_ = bytes;
  bytes_sent_to_ = std::move(to);
}

void Communicator::check_and_run(const Collective& call) {
  const Use use(*this, call.name());
  const CallTime time(*this);
  check_call(*this, [&] {
    const char* const who = call.name();
    check_rank(who, call.root, size());
    if (call.kind >= Kind::kScatter && call.kind <= Kind::kAllToAll) {
      check_blocks(who, call.blocks, size());
    }
    if (call.kind == Kind::kAllToAll) check_blocks(who, call.recv_blocks, size());
    if (call.kind == Kind::kReduceScatter) check_counts(who, call.counts, size());
    check_count(who, call.count);
    if (call.kind >= Kind::kReduce) check_reducible(who, call.dtype, call.op);
    check_buffers(call, rank());
  });
  note_gpu(call.stream);
  if (goes_by_exchange(call)) {
    const trace::Span span(call.name(), "comm");
    const auto exchange = [&](std::span<const Patch> sends, std::span<const Patch> receives) {
      run({.kind = Kind::kExchange,
           .sends = sends,
           .receives = receives,
           .stream = call.stream,
           .step_of = &call});
    };
    try {
      return run_by_exchange(call, rank(), size(), exchange);
    } catch (const CommunicationError&) {
      throw;
    } catch (const Error& error) {  // of this rank, between two exchanges
      refuse_call(error.what());
      throw;
    }
  }
  if (reaches(call.stream.device)) return run(call);
  std::optional<StagedCall> staged;
  check_call(*this, [&] { staged.emplace(call, rank()); });
  run(staged->on_host());
  tell_errors(*this, call.name(), [&] { staged->deliver(); });
}

void Communicator::note_gpu(Stream stream) {
  if (!stream.device.is_cpu()) gpu_ = stream.device;
}

void Communicator::check_gpu() const {
  if (!gpu_.is_cpu()) backend::runtime(gpu_).check_works();
}

void Communicator::barrier() {
  const Use use(*this, "barrier");
  const CallTime time(*this);
  run({.kind = Kind::kBarrier});
}

void Communicator::broadcast(void* data, int64_t bytes, int root, Stream stream) {
  check_and_run({.kind = Kind::kBroadcast,
                 .root = root,
                 .send = data,
                 .recv = data,
                 .count = bytes,
                 .stream = stream});
}

void Communicator::scatter(const void* send, std::span<const Block> blocks, void* recv, int root,
                           Stream stream) {
  check_and_run(of_blocks(Kind::kScatter, send, blocks, recv, stream, root));
}

void Communicator::gather(const void* send, std::span<const Block> blocks, void* recv, int root,
                          Stream stream) {
  check_and_run(of_blocks(Kind::kGather, send, blocks, recv, stream, root));
}

void Communicator::all_gather(const void* send, std::span<const Block> blocks, void* recv,
                              Stream stream) {
  check_and_run(of_blocks(Kind::kAllGather, send, blocks, recv, stream));
}

void Communicator::all_to_all(const void* send, std::span<const Block> send_blocks, void* recv,
                              std::span<const Block> recv_blocks, Stream stream) {
  Collective call = of_blocks(Kind::kAllToAll, send, send_blocks, recv, stream);
  call.recv_blocks = recv_blocks;
  check_and_run(call);
}

void Communicator::exchange(std::span<const Patch> sends, std::span<const Patch> receives,
                            Stream stream) {
  const Use use(*this, "exchange");
  const CallTime time(*this);
  const Collective call{
      .kind = Kind::kExchange, .sends = sends, .receives = receives, .stream = stream};
  std::optional<PackedExchange> packed;
  check_call(*this, [&] {
    check_patches(call.name(), sends, size(), stream);
    check_patches(call.name(), receives, size(), stream);
    for (const Patch& patch : receives) check_writable(call.name(), patch.elements);
    for (const Patch& patch : sends) patch.elements.data();  // what is recorded runs here
  });
  note_gpu(stream);
  if (exchanges_tensors(stream)) return run(call);
  check_call(*this, [&] { packed.emplace(sends, receives, size(), stream); });
  const trace::Span span(call.name(), "comm");
  all_to_all(packed->send().data, packed->send().blocks, packed->receive().data,
             packed->receive().blocks, stream);
  tell_errors(*this, call.name(), [&] { packed->deliver(); });
}

void Communicator::reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op,
                          int root, Stream stream) {
  check_and_run(of_elements(Kind::kReduce, send, recv, count, dtype, op, stream, root));
}

void Communicator::all_reduce(const void* send, void* recv, int64_t count, DType dtype,
                              ReduceKind op, Stream stream) {
  check_and_run(of_elements(Kind::kAllReduce, send, recv, count, dtype, op, stream));
}

void Communicator::reduce_scatter(const void* send, void* recv, std::span<const int64_t> counts,
                                  DType dtype, ReduceKind op, Stream stream) {
  // A sum that is too large is refused with the counts.
  const uint64_t count = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  Collective call =
      of_elements(Kind::kReduceScatter, send, recv, static_cast<int64_t>(count), dtype, op, stream);
  call.counts = counts;
  check_and_run(call);
}

std::vector<std::vector<Tensor>> Communicator::map_memory(std::span<const Tensor> mine) {
  return {static_cast<size_t>(size()), std::vector<Tensor>(mine.size())};
}

bool Communicator::have_gpus() {
  if (!have_gpus_) {
    int32_t have = backend::device_count(DeviceType::kCuda) > 0 ? 1 : 0;
    all_reduce(&have, &have, 1, DType::kInt32, ReduceKind::kMin);
    have_gpus_ = have == 1;
  }
  return *have_gpus_;
}

}  // namespace cuop::dist
