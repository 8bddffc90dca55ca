#include "cuop/dist/comm/p2p_communicator.h"

#include <chrono>
#include <optional>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/exchange.h"
#include "cuop/dist/comm/p2p_collectives.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

/// Each collective has a tag of its own, so that ranks in different ones wait for each other, and
/// say so at the deadline, instead of taking each other's bytes.
enum CollectiveTag : int {
  kBarrierTag = kUserTagLimit,
  kBroadcastTag,
  kScatterTag,
  kGatherTag,
  kAllGatherTag,
  kAllToAllTag,
  kReduceTag,
  kAllReduceTag,
  kReduceScatterTag,
};

/// Fruitless looks between two readings of the clock.
constexpr int kLooksPerClock = 16;

bool overlaps(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a);
  const auto b_begin = reinterpret_cast<uintptr_t>(b);
  return a_begin < b_begin + static_cast<uintptr_t>(b_bytes) &&
         b_begin < a_begin + static_cast<uintptr_t>(a_bytes);
}

}  // namespace

/// One call: its name, its messages, its waits.
class P2pCommunicator::Operation final : public Exchange {
 public:
  Operation(P2pCommunicator& comm, const char* name, int tag)
      : comm_(comm), name_(name), tag_(tag), span_(name, "comm"), sent_before_(comm.bytes_sent_) {
    if (is_message()) {
      comm_.watch_->check(name_);
    } else {
      comm_.watch_->begin_call(name_);
    }
    epoch_ = comm_.watch_->epoch();
  }
  ~Operation() override { span_.add_bytes(comm_.bytes_sent_ - sent_before_); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }

  void post_send(const void* data, int64_t bytes, int dst) override {
    if (bytes > 0) post_any_send(data, bytes, dst);
  }
  void post_recv(void* data, int64_t bytes, int src) override {
    if (bytes > 0) post_any_recv(data, bytes, src);
  }
  void post_signal(int dst) override { post_any_send(nullptr, 0, dst); }
  void post_await(int src) override { post_any_recv(nullptr, 0, src); }

  /// User messages may be empty and are sent all the same.
  void post_any_send(const void* data, int64_t bytes, int dst) {
    comm_.bytes_sent_ += bytes;
    pending_.push_back({comm_.transport_->post_send(data, bytes, {dst, epoch_, tag_}), dst});
  }
  void post_any_recv(void* data, int64_t bytes, int src) {
    pending_.push_back({comm_.transport_->post_recv(data, bytes, {src, epoch_, tag_}), src});
  }

  void wait_all() override {
    for (Pending& each : pending_) wait(each);
    pending_.clear();
  }

 private:
  struct Pending {
    std::unique_ptr<Request> request;
    int peer;
  };

  void wait(Pending& pending) {
    if (test(pending)) return;
    std::optional<FailureWatch::Waiting> waiting;
    Clock::time_point start = Clock::now();
    int64_t moved = pending.request->moved();
    for (int looks = 1; !test(pending); ++looks) {
      comm_.watch_->check(name_);
      if (looks % kLooksPerClock == 0) {
        if (!waiting) waiting.emplace(*comm_.watch_, name_, pending.peer);
        if (is_message()) comm_.watch_->check_message(name_, pending.peer);
        check_interrupted();
        if (pending.request->moved() != moved) {  // slow is not dead
          moved = pending.request->moved();
          start = Clock::now();
        }
        const double waited = std::chrono::duration<double>(Clock::now() - start).count();
        if (waited > comm_.timeout_) comm_.watch_->expire(name_, pending.peer, comm_.timeout_);
      }
      comm_.transport_->idle(looks);
    }
  }

  void check_interrupted() {
    try {
      check_interrupt();
    } catch (...) {
      comm_.watch_->abort(cat(name_, " was interrupted"));
      throw;
    }
  }

  bool test(Pending& pending) {
    try {
      return pending.request->test();
    } catch (const CommunicationError& error) {
      comm_.watch_->check(name_);  // a peer that left because of a failure has told so before
      if (error.rank() >= 0) comm_.watch_->lose(name_, pending.peer, error.what());
      comm_.watch_->fail(name_, rank(), cat("with rank ", pending.peer, ": ", error.what()));
    }
  }

  bool is_message() const { return tag_ < kUserTagLimit; }

  P2pCommunicator& comm_;
  const char* name_;
  int tag_;
  int64_t epoch_ = 0;
  trace::Span span_;
  int64_t sent_before_;
  std::vector<Pending> pending_;  // given up when an exception leaves the operation
};

P2pCommunicator::P2pCommunicator(std::shared_ptr<Transport> transport,
                                 std::shared_ptr<FailureWatch> watch, double timeout)
    : transport_(std::move(transport)),
      watch_(watch ? std::move(watch) : std::make_shared<FailureWatch>(transport_)),
      timeout_(timeout),
      to_self_epoch_(watch_->epoch()) {}

void P2pCommunicator::send_to_self(const void* data, int64_t bytes, int tag) {
  if (to_self_epoch_ != watch_->epoch()) to_self_.clear();
  to_self_epoch_ = watch_->epoch();
  to_self_.put(data, bytes, tag);
}

void P2pCommunicator::recv_from_self(std::string_view op, void* data, int64_t bytes, int tag) {
  const int64_t length = to_self_epoch_ == watch_->epoch() ? to_self_.next_length(tag) : -1;
  if (length < 0) {
    watch_->fail(op, rank(), cat("waits for a message of tag ", tag, " that it has not sent"));
  }
  if (length != bytes) {
    watch_->fail(op, rank(),
                 cat("expects ", bytes, " bytes from itself with tag ", tag, ", the message has ",
                     length, " bytes"));
  }
  to_self_.take(data, tag);
}

void P2pCommunicator::send(const void* data, int64_t bytes, int dst, int tag) {
  check_message(*this, [&] { check_envelope("send", bytes, dst, tag, size()); });
  Operation operation(*this, "send", tag);
  if (dst == rank()) return send_to_self(data, bytes, tag);
  operation.post_any_send(data, bytes, dst);
  operation.wait_all();
}

void P2pCommunicator::recv(void* data, int64_t bytes, int src, int tag) {
  check_message(*this, [&] { check_envelope("recv", bytes, src, tag, size()); });
  Operation operation(*this, "recv", tag);
  if (src == rank()) return recv_from_self("recv", data, bytes, tag);
  operation.post_any_recv(data, bytes, src);
  operation.wait_all();
}

void P2pCommunicator::sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                               int64_t recv_bytes, int src, int tag) {
  check_message(*this, [&] {
    check_envelope("sendrecv", send_bytes, dst, tag, size());
    check_envelope("sendrecv", recv_bytes, src, tag, size());
  });
  Operation operation(*this, "sendrecv", tag);
  if (dst == rank()) {
    send_to_self(send_data, send_bytes, tag);
  } else {
    operation.post_any_send(send_data, send_bytes, dst);
  }
  if (src == rank()) {
    recv_from_self("sendrecv", recv_data, recv_bytes, tag);
  } else {
    operation.post_any_recv(recv_data, recv_bytes, src);
  }
  operation.wait_all();
}

void P2pCommunicator::barrier() {
  Operation operation(*this, "barrier", kBarrierTag);
  p2p::barrier(operation);
}

void P2pCommunicator::broadcast(void* data, int64_t bytes, int root) {
  check_call(*this, [&] {
    check_rank("broadcast", root, size());
    check_count("broadcast", bytes);
  });
  Operation operation(*this, "broadcast", kBroadcastTag);
  p2p::broadcast(operation, data, bytes, root);
}

void P2pCommunicator::scatter(const void* send, std::span<const Block> blocks, void* recv,
                              int root) {
  check_call(*this, [&] {
    check_rank("scatter", root, size());
    check_blocks("scatter", blocks, size());
  });
  Operation operation(*this, "scatter", kScatterTag);
  p2p::scatter(operation, send, blocks, recv, root);
}

void P2pCommunicator::gather(const void* send, std::span<const Block> blocks, void* recv,
                             int root) {
  check_call(*this, [&] {
    check_rank("gather", root, size());
    check_blocks("gather", blocks, size());
  });
  Operation operation(*this, "gather", kGatherTag);
  p2p::gather(operation, send, blocks, recv, root);
}

void P2pCommunicator::all_gather(const void* send, std::span<const Block> blocks, void* recv) {
  check_call(*this, [&] { check_blocks("all_gather", blocks, size()); });
  Operation operation(*this, "all_gather", kAllGatherTag);
  p2p::all_gather(operation, send, blocks, recv);
}

void P2pCommunicator::all_to_all(const void* send, std::span<const Block> send_blocks, void* recv,
                                 std::span<const Block> recv_blocks) {
  check_call(*this, [&] {
    check_blocks("all_to_all", send_blocks, size());
    check_blocks("all_to_all", recv_blocks, size());
  });
  Operation operation(*this, "all_to_all", kAllToAllTag);
  const int64_t sent = send_blocks[static_cast<size_t>(rank())].bytes;
  const int64_t expected = recv_blocks[static_cast<size_t>(rank())].bytes;
  if (sent != expected) {
    watch_->fail("all_to_all", rank(),
                 cat("expects ", expected, " bytes from itself and sends ", sent));
  }
  p2p::all_to_all(operation, send, send_blocks, recv, recv_blocks);
}

void P2pCommunicator::reduce(const void* send, void* recv, int64_t count, DType dtype,
                             ReduceKind op, int root) {
  check_call(*this, [&] {
    check_rank("reduce", root, size());
    check_count("reduce", count);
    check_reducible("reduce", dtype, op);
  });
  Operation operation(*this, "reduce", kReduceTag);
  p2p::reduce(operation, send, recv, count, {dtype, op}, root);
}

void P2pCommunicator::all_reduce(const void* send, void* recv, int64_t count, DType dtype,
                                 ReduceKind op) {
  check_call(*this, [&] {
    check_count("all_reduce", count);
    check_reducible("all_reduce", dtype, op);
  });
  Operation operation(*this, "all_reduce", kAllReduceTag);
  p2p::all_reduce(operation, send, recv, count, {dtype, op});
}

void P2pCommunicator::reduce_scatter(const void* send, void* recv, std::span<const int64_t> counts,
                                     DType dtype, ReduceKind op) {
  check_call(*this, [&] {
    check_counts("reduce_scatter", counts, size());
    check_reducible("reduce_scatter", dtype, op);
  });
  Operation operation(*this, "reduce_scatter", kReduceScatterTag);
  int64_t total = 0;
  for (int64_t count : counts) total += count;
  const int64_t own = counts[static_cast<size_t>(rank())] * itemsize(dtype);
  if (!overlaps(send, total * itemsize(dtype), recv, own)) {
    p2p::reduce_scatter(operation, send, recv, counts, {dtype, op});
    return;
  }
  // The first pieces of the result must not overwrite what is still to be sent.
  std::vector<char> kept(static_cast<size_t>(own));
  p2p::reduce_scatter(operation, send, kept.data(), counts, {dtype, op});
  copy_bytes(recv, kept.data(), own);
}

std::shared_ptr<Communicator> P2pCommunicator::split(int color, int key) {
  const SplitGroup group = choose_split_group(*this, color, key, splits_);
  splits_ = group.number;
  std::shared_ptr<Transport> part = transport_->split(color, group);
  if (!part) return nullptr;
  auto watch = std::make_shared<FailureWatch>(part, watch_, group.members);
  return std::make_shared<P2pCommunicator>(std::move(part), std::move(watch), timeout_);
}

void P2pCommunicator::recover() {
  watch_->recover(timeout_);
  to_self_.clear();
}

}  // namespace cuop::dist
