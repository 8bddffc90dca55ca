#include "cuop/dist/comm/p2p_communicator.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "cuop/backend/cuda/waiting.h"
#include "cuop/backend/current_device.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/fabric.h"
#include "cuop/dist/comm/p2p_collectives.h"
#include "cuop/dist/comm/shared_exchange.h"

namespace cuop::dist {

namespace {

using Kind = Collective::Kind;

using Clock = std::chrono::steady_clock;

/// Fruitless looks between two readings of the clock.
constexpr int kLooksPerClock = 16;
constexpr auto kBetweenHeartbeats = std::chrono::milliseconds(1);

/// Each collective has a tag of its own, made of what must be the same on all ranks, so that those
/// in different ones wait for each other, and say so, instead of taking each other's bytes.
int tag_of(const Collective& call) {
  constexpr int kShapes = 1 << 12;
  static_assert(kUserTagLimit + (static_cast<int>(Collective::Kind::kSplit) + 1) * kShapes <=
                kTagLimit);
  const Collective& whole = call.whole();
  uint64_t mixed = static_cast<uint64_t>(whole.count);
  for (const int part : {whole.root, static_cast<int>(whole.dtype), static_cast<int>(whole.op)}) {
    mixed = (mixed ^ static_cast<uint64_t>(part)) * 0x9e3779b97f4a7c15;
  }
  const auto shape = static_cast<int>((mixed >> 32) % kShapes);
  return kUserTagLimit + static_cast<int>(call.kind) * kShapes + shape;
}

class Condition final : public Delivery {
 public:
  explicit Condition(std::function<bool()> holds) : holds_(std::move(holds)) {}
  bool test() override { return holds_(); }
  int64_t moved() const override { return 0; }

 private:
  std::function<bool()> holds_;
};

}  // namespace

/// One call: its name, its messages, its waits.
class P2pCommunicator::Operation final : public Exchange, private NonCopyable {
 public:
  Operation(P2pCommunicator& comm, const Collective& call)
      : Operation(comm, call.name(), tag_of(call), &call) {}
  /// A message with a tag of the user's.
  Operation(P2pCommunicator& comm, const char* name, int tag)
      : Operation(comm, name, tag, nullptr) {}
  ~Operation() override { span_.add_bytes(comm_.bytes_sent() - sent_before_); }

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  bool is_near(int rank) const override { return comm_.transport_->is_near(rank); }
  double timeout() const override { return comm_.timeout_; }

  void post_send(const void* data, int64_t bytes, int dst) override {
    if (bytes > 0) post_any_send(data, bytes, dst);
  }
  void post_recv(void* data, int64_t bytes, int src) override {
    if (bytes > 0) post_any_recv(data, bytes, src);
  }
  void post_signal(int dst) override { post_any_send(nullptr, 0, dst); }
  void post_await(int src) override { post_any_recv(nullptr, 0, src); }

  void post_condition(std::function<bool()> holds, int peer) override {
    post_delivery(std::make_unique<Condition>(std::move(holds)), peer);
  }
  void post_delivery(DeliveryPtr delivery, int peer) override {
    pending_.push_back({std::move(delivery), peer, true});
  }
  void fail(int blamed, const std::string& what) override {
    pending_.clear();
    comm_.watch_->fail(name_, blamed, what);
  }

  /// Part of the call in which this rank may fail by itself: of that the others are told.
  template <class Work>
  void run(Work&& work) {
    try {
      work();
    } catch (const CommunicationError&) {
      throw;
    } catch (const Interrupted&) {
      comm_.watch_->abort(cat(name_, " was interrupted"));
      throw;
    } catch (const std::exception& error) {
      pending_.clear();
      comm_.watch_->tell(name_, error.what());
      throw;
    }
  }

  /// User messages may be empty and are sent all the same.
  void post_any_send(const void* data, int64_t bytes, int dst) {
    comm_.note_sent(dst, bytes);
    pending_.push_back({comm_.transport_->post_send(data, bytes, {dst, epoch_, tag_}), dst});
  }
  void post_any_recv(void* data, int64_t bytes, int src) {
    pending_.push_back({comm_.transport_->post_recv(data, bytes, {src, epoch_, tag_}), src});
  }

  void wait_all() override {
    try {
      for (Pending& each : pending_) wait(each);
    } catch (...) {
      pending_.clear();  // before the caller's buffers go
      throw;
    }
    pending_.clear();
  }

 private:
  Operation(P2pCommunicator& comm, const char* name, int tag, const Collective* call)
      : comm_(comm),
        call_(call),
        name_(name),
        tag_(tag),
        span_(name, "comm"),
        sent_before_(comm.bytes_sent()) {
    if (is_message()) {
      comm_.watch_->check(name_);
    } else {
      comm_.watch_->begin_call(name_);
    }
    comm_.check_streams(name_);
    epoch_ = comm_.watch_->epoch();
    note_.emplace(comm_.watch_->heartbeat().get(), name_, comm_.transport_->context(), epoch_,
                  comm_.watch_->calls(), !is_message(), call_ ? shape_of(*call_) : CallShape{});
  }

  struct Pending {
    DeliveryPtr delivery;
    int peer;
    bool is_condition = false;  ///< that no message wakes this rank for
  };

  void wait(Pending& pending) {
    if (test(pending)) return;
    std::optional<AwaitedPeer> waiting;
    backend::cuda::WaitingPause pause;
    Clock::time_point start = Clock::now(), looked = start;
    std::optional<Clock::time_point> met;  // when the peer was first seen to meet others
    int64_t moved = pending.delivery->moved();
    for (int looks = 1; !test(pending); ++looks) {
      comm_.watch_->check(name_);
      if (looks % kLooksPerClock == 0) {
        const bool is_own = pending.peer == rank();  // its GPU; it waits for nobody
        if (!waiting && !is_own) waiting.emplace(*this, pending.peer);
        if (is_message()) comm_.watch_->check_message(name_, pending.peer);
        check_interrupted();
        if (pending.delivery->moved() != moved) {  // slow is not dead
          moved = pending.delivery->moved();
          start = Clock::now();
          met.reset();
          if (waiting) waiting->note();
        }
        const Clock::time_point now = Clock::now();
        if (now - looked > kBetweenHeartbeats) {
          looked = now;
          comm_.watch_->check_heartbeats(name_, pending.peer, call_);
        }
        comm_.watch_->check_meeting(name_, pending.peer, met);
        const double waited = std::chrono::duration<double>(now - start).count();
        if (waited > comm_.timeout_ && is_own) {
          comm_.watch_->fail(name_, rank(), cat("waited ", comm_.timeout_, " s for its own GPU"));
        }
        if (waited > comm_.timeout_) comm_.watch_->expire(name_, pending.peer, comm_.timeout_);
      }
      if (pending.is_condition) {
        pause.next();
      } else {
        comm_.transport_->idle(looks);
      }
    }
  }

  /// What this rank says of its wait: to those who ask for it, and in its page.
  class AwaitedPeer : NonCopyable {
   public:
    AwaitedPeer(Operation& operation, int peer)
        : operation_(operation),
          peer_(peer),
          waiting_(*operation.comm_.watch_, operation.name_, peer) {
      note();
    }
    ~AwaitedPeer() { operation_.note_->wait_for(-1); }
    /// It has made progress.
    void note() {
      FailureWatch& watch = *operation_.comm_.watch_;
      if (watch.heartbeat()) operation_.note_->wait_for(watch.in_heartbeat(peer_));
    }

   private:
    Operation& operation_;
    int peer_;
    FailureWatch::Waiting waiting_;
  };

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
      return pending.delivery->test();
    } catch (const CommunicationError& error) {
      comm_.watch_->check(name_);  // a peer that left because of a failure has told so before
      comm_.check_streams(name_);
      if (error.rank() >= 0) comm_.watch_->lose(name_, pending.peer, error.what());
      comm_.watch_->fail(name_, rank(), cat("with rank ", pending.peer, ": ", error.what()));
    }
  }

  bool is_message() const { return call_ == nullptr; }

  P2pCommunicator& comm_;
  const Collective* call_;  // null for a message
  const char* name_;
  int tag_;
  int64_t epoch_ = 0;
  std::optional<NotedCall> note_;
  trace::Span span_;
  int64_t sent_before_;
  std::vector<Pending> pending_;  // given up when an exception leaves the operation
};

P2pCommunicator::P2pCommunicator(std::shared_ptr<Transport> transport,
                                 std::shared_ptr<FailureWatch> watch, double timeout)
    : Communicator(timeout),
      transport_(std::move(transport)),
      watch_(watch ? std::move(watch) : std::make_shared<FailureWatch>(transport_)),
      to_self_epoch_(watch_->epoch()) {}

P2pCommunicator::~P2pCommunicator() = default;

int P2pCommunicator::local_size() const {
  int count = 0;
  for (int rank = 0; rank < size(); ++rank) count += transport_->is_near(rank) ? 1 : 0;
  return count;
}

void P2pCommunicator::send_to_self(const void* data, int64_t bytes, int tag) {
  const std::lock_guard lock(to_self_mutex_);
  if (to_self_epoch_ != watch_->epoch()) to_self_.clear();
  to_self_epoch_ = watch_->epoch();
  to_self_.put(data, bytes, tag);
}

void P2pCommunicator::recv_from_self(std::string_view op, void* data, int64_t bytes, int tag) {
  const std::lock_guard lock(to_self_mutex_);
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
  const Use use(*this, "send");
  check_message(*this, [&] { check_message_of("send", data, bytes, dst, tag, size()); });
  Operation operation(*this, "send", tag);
  if (dst == rank()) return send_to_self(data, bytes, tag);
  operation.post_any_send(data, bytes, dst);
  operation.wait_all();
}

void P2pCommunicator::recv(void* data, int64_t bytes, int src, int tag) {
  const Use use(*this, "recv");
  check_message(*this, [&] { check_message_of("recv", data, bytes, src, tag, size()); });
  Operation operation(*this, "recv", tag);
  if (src == rank()) return recv_from_self("recv", data, bytes, tag);
  operation.post_any_recv(data, bytes, src);
  operation.wait_all();
}

void P2pCommunicator::sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                               int64_t recv_bytes, int src, int tag) {
  const Use use(*this, "sendrecv");
  check_message(*this, [&] {
    check_message_of("sendrecv", send_data, send_bytes, dst, tag, size());
    check_message_of("sendrecv", recv_data, recv_bytes, src, tag, size());
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

/// Asked for by all ranks at once, in a call of its own.
bool P2pCommunicator::exchanges_tensors(Stream stream) {
  if (!has_fabric()) {
    fabric_.reset();
    shared_.reset();
    const Uncounted agreement(*this);
    const Collective call{.kind = Collective::Kind::kExchange};
    Operation x(*this, call);
    const Device chosen = backend::current_device();
    x.run([&] {
      fabric::Watched watched{watch_->heartbeat(), {}, {}};
      for (int rank = 0; rank < size(); ++rank) {
        if (watched.heartbeat) watched.places.push_back(watch_->in_heartbeat(rank));
        watched.in_root.push_back(watch_->in_root(rank));
      }
      auto fabric = std::make_unique<Fabric>(x, stream.device.is_cpu() ? chosen : stream.device,
                                             std::move(watched));
      if (!fabric->is_used()) shared_ = std::make_unique<SharedExchange>(x);
      fabric_ = std::move(fabric);
      fabric_epoch_ = watch_->epoch();
    });
  }
  return fabric_->is_used() || shared_->is_used();
}

bool P2pCommunicator::maps_gpu_memory() const { return has_fabric() && fabric_->is_used(); }

Tensor P2pCommunicator::readable_by_others(const Tensor& tensor) const {
  const bool is_on_gpu = tensor.is_defined() && !tensor.device().is_cpu();
  return is_on_gpu && has_fabric() && fabric_->is_read() ? fabric_->readable(tensor) : tensor;
}

std::vector<std::vector<Tensor>> P2pCommunicator::map_memory(std::span<const Tensor> mine) {
  if (!maps_gpu_memory()) return Communicator::map_memory(mine);
  const Use use(*this, "map_memory");
  const Uncounted notes(*this);
  const Collective call{.kind = Collective::Kind::kExchange};
  Operation x(*this, call);
  std::vector<std::vector<Tensor>> result;
  x.run([&] { result = fabric_->map(x, mine); });
  return result;
}

std::string P2pCommunicator::exchange_ways() const { return fabric_ ? fabric_->description() : ""; }

void P2pCommunicator::exchange_tensors(const Collective& call) {
  Operation x(*this, call);
  x.run([&] {
    {
      const Uncounted messages(*this);
      shared_ ? shared_->exchange(x, call) : fabric_->exchange(x, call);
    }
    // What travels is the elements, however they do.
    for (const Patch& patch : call.sends) {
      if (patch.peer != rank()) note_sent(patch.peer, patch.elements.nbytes());
    }
  });
  // Who sent it may have given up meanwhile, and used its memory for something else.
  watch_->check(call.name());
}

void P2pCommunicator::run(const Collective& call) {
  try {
    run_call(call);
  } catch (const CommunicationError&) {
    release_streams();
    // What the wait for a stream has told, the communicator does not know of yet.
    if (watch_->failure().empty()) check_streams(call.name());
    throw;
  } catch (...) {
    if (!watch_->failure().empty()) release_streams();
    throw;
  }
}

void P2pCommunicator::run_call(const Collective& call) {
  if (call.kind == Kind::kExchange) return exchange_tensors(call);
  Operation x(*this, call);
  if (has_fabric()) fabric_->tidy();
  const p2p::CombineRule what{call.dtype, call.op};
  switch (call.kind) {
    case Kind::kBarrier:
      return p2p::barrier(x);
    case Kind::kBroadcast:
      return p2p::broadcast(x, call.recv, call.count, call.root);
    case Kind::kScatter:
      return p2p::scatter(x, call.send, call.blocks, call.recv, call.root);
    case Kind::kGather:
      return p2p::gather(x, call.send, call.blocks, call.recv, call.root);
    case Kind::kAllGather:
      return p2p::all_gather(x, call.send, call.blocks, call.recv);
    case Kind::kAllToAll:
      check_own_block(call);
      return p2p::all_to_all(x, call.send, call.blocks, call.recv, call.recv_blocks);
    case Kind::kReduce:
      return p2p::reduce(x, call.send, call.recv, call.count, what, call.root);
    case Kind::kAllReduce:
      return p2p::all_reduce(x, call.send, call.recv, call.count, what);
    default:
      break;
  }
  const int64_t own = call.counts[static_cast<size_t>(rank())] * itemsize(call.dtype);
  if (!overlaps(call.send, call.count * itemsize(call.dtype), call.recv, own)) {
    return p2p::reduce_scatter(x, call.send, call.recv, call.counts, what);
  }
  // The first pieces of the result must not overwrite what is still to be sent.
  std::vector<char> kept(static_cast<size_t>(own));
  p2p::reduce_scatter(x, call.send, kept.data(), call.counts, what);
  copy_bytes(call.recv, kept.data(), own);
}

void P2pCommunicator::check_own_block(const Collective& call) {
  const int64_t sent = call.blocks[static_cast<size_t>(rank())].bytes;
  const int64_t expected = call.recv_blocks[static_cast<size_t>(rank())].bytes;
  if (sent == expected) return;
  watch_->fail(call.name(), rank(),
               cat("expects ", expected, " bytes from itself and sends ", sent));
}

std::shared_ptr<Communicator> P2pCommunicator::split(int color, int key) {
  const Use use(*this, "split");
  const SplitGroup group = choose_split_group(*this, color, key, splits_);
  splits_ = group.number;
  std::shared_ptr<Transport> part = transport_->split(color, group);
  if (!part) return nullptr;
  auto watch = std::make_shared<FailureWatch>(part, watch_, group.members);
  return std::make_shared<P2pCommunicator>(std::move(part), std::move(watch), timeout_);
}

void P2pCommunicator::start_heartbeat(const HostWay& way) {
  auto heartbeat = std::make_shared<Heartbeat>(Heartbeat::limit_of_environment());
  const std::vector<PagePlace> places = gather_values(*this, heartbeat->place());
  heartbeat->watch(rank(), places, connect_hosts(*this, places, way));
  watch_->set_heartbeat(std::move(heartbeat), all_ranks(size()));
  set_sent(0, {});
}

std::shared_ptr<Communicator> P2pCommunicator::shrink() {
  const Use use(*this, "shrink");
  SplitGroup group;
  group.members = watch_->agree_on_survivors(timeout_);
  forget_streams();
  const auto self = std::find(group.members.begin(), group.members.end(), rank());
  group.rank = static_cast<int>(self - group.members.begin());
  group.number = watch_->shrinks();
  auto part = transport_->shrink(group);
  auto watch = std::make_shared<FailureWatch>(part);
  if (watch_->heartbeat()) {
    std::vector<int> places;
    for (const int member : group.members) places.push_back(watch_->in_heartbeat(member));
    watch->set_heartbeat(watch_->heartbeat(), std::move(places));
  }
  return std::make_shared<P2pCommunicator>(std::move(part), std::move(watch), timeout_);
}

void P2pCommunicator::recover() {
  const Use use(*this, "recover");
  watch_->recover(timeout_);
  forget_streams();
  to_self_.clear();
  fabric_.reset();  // ranks may have come to different points of an agreement or of a call
  shared_.reset();
}

}  // namespace cuop::dist
