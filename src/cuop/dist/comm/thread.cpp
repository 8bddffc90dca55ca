#include "cuop/dist/comm/thread.h"

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <numeric>
#include <optional>

#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/dist/comm/rank_limit.h"
#include "cuop/dist/comm/reduction.h"
#include "cuop/dist/comm/split.h"
#include "cuop/dist/comm/thread_world.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

namespace {

using Kind = Collective::Kind;

/// Rank r's part of `count` elements when all ranks share the work of a reduction.
std::pair<int64_t, int64_t> segment(int64_t count, int rank, int size) {
  return {count * rank / size, count * (rank + 1) / size};
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, int rank, double timeout)
      : Communicator(timeout), world_(std::move(world)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string_view kind() const override { return "thread"; }
  int local_size() const override { return size(); }
  int in_world(int rank) const override { return world_->in_root(rank); }

  void send(const void* data, int64_t bytes, int dst, int tag) override;
  void recv(void* data, int64_t bytes, int src, int tag) override;
  void sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                int64_t recv_bytes, int src, int tag) override;
  std::shared_ptr<Communicator> split(int color, int key) override;

  /// Any that the process has: all ranks see it.
  bool reaches(Device) const override { return true; }
  bool exchanges_tensors(Stream) override { return true; }

  void refuse_call(const std::string& text) noexcept override { world_->refuse_call(rank_, text); }
  void refuse_message(const std::string& text) noexcept override {
    world_->refuse_message(rank_, text);
  }
  void abort_for(int failed, const std::string& reason) noexcept override;
  std::string failure() const override { return world_->failure(); }
  bool is_failure_reported() const override { return world_->is_failure_reported(rank_); }
  void recover() override {
    const Use use(*this, "recover");
    world_->recover(caller("recover"));
    forget_other_gpus();
  }
  std::vector<RankHealth> health() const override { return world_->health(); }
  std::exception_ptr cause_of(std::exception_ptr error) override;
  std::shared_ptr<Communicator> shrink() override {
    const Use use(*this, "shrink");
    forget_other_gpus();
    auto [world, rank] = world_->shrink(caller("shrink"));
    return std::make_shared<ThreadCommunicator>(std::move(world), rank, timeout_);
  }

  void leave() { world_->leave(rank_); }

 protected:
  void run(const Collective& call) override;

 private:
  ThreadWorld::Caller caller(const char* op) const { return {rank_, op, timeout_}; }
  ThreadWorld::Caller messenger(const char* op) const { return {rank_, op, timeout_, true}; }
  const Collective& peer(int rank) const { return world_->slot(rank); }
  /// The meeting that begins a call. A rank whose GPU another one has found broken first raises
  /// what its GPU says.
  void meet(const char* op);
  /// After a failure work of this rank's GPU waits for no other's.
  void forget_other_gpus();
  /// The frame of every collective: lay `mine` open, meet, check that all are in the same operation
  /// with the same root and count (else the copy would read the buffers of another operation),
  /// copy, meet again, raise what went wrong. Streams wait for each other before and after.
  void exchange(const Collective& mine, const std::function<void()>& copy);
  /// Raises it, after the others have been told.
  [[noreturn]] void raise(const char* op, const std::exception_ptr& error);
  void exchange_reduce_scatter(const Collective& call);
  std::string disagreement(const Collective& mine) const;
  /// Raises, inside an exchange, unless `src` sends as many bytes as this rank expects.
  void check_length(const Collective& call, int src, int64_t sent, int64_t expected) const;

  /// The other ranks whose buffers this call reads or writes, of those on GPUs (`reads`), and those
  /// that read or write its own; none where its own lie on the host.
  std::vector<int> others_on_gpus(const Collective& mine, bool reads) const;
  /// Copies between this rank's buffer and one of `peer`, on whatever devices they lie.
  void move(void* to, const void* from, int64_t bytes, Stream mine, int peer) const;

  template <class Visit>
  void for_each_other(const Visit& visit) const {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != rank_) visit(rank);
    }
  }

  // What this rank copies inside an exchange.
  void copy_scatter(const Collective& call);
  void copy_gather(const Collective& call);
  void copy_all_gather(const Collective& call);
  void copy_all_to_all(const Collective& call);
  void pull_tensors(const Collective& call);
  /// Whether rows go by the copy engine, which has all of a link (kernels 0.86): long ones where
  /// all is mapped memory. Beside an engine the other way a kernel is slower than beside a kernel.
  bool goes_by_engine(const Collective& call) const;
  /// out <- elements [begin, end) of all ranks' inputs, reduced on this rank's device.
  void reduce_inputs(const Collective& call, int64_t begin, int64_t end, void* out) const;
  void reduce_segment(const Collective& call, std::span<const int> receivers);

  std::shared_ptr<ThreadWorld> world_;
  int rank_;
};

std::vector<int> ThreadCommunicator::others_on_gpus(const Collective& mine, bool reads) const {
  if (mine.stream.device.is_cpu()) return {};
  const bool is_exchange = mine.kind == Kind::kExchange;
  const std::span<const Patch> patches = reads ? mine.receives : mine.sends;
  std::vector<int> others;
  for_each_other([&](int rank) {
    const auto is_with = [rank](const Patch& patch) { return patch.peer == rank; };
    if (peer(rank).stream.device.is_cpu()) return;
    if (!is_exchange || std::ranges::any_of(patches, is_with)) others.push_back(rank);
  });
  return others;
}

void ThreadCommunicator::move(void* to, const void* from, int64_t bytes, Stream mine,
                              int peer) const {
  const Stream& stream = mine.device.is_cpu() ? this->peer(peer).stream : mine;
  if (stream.device.is_cpu()) {
    copy_bytes(to, from, bytes);
  } else {
    backend::runtime(stream.device).copy(to, from, bytes, stream);
  }
}

void ThreadCommunicator::meet(const char* op) {
  try {
    world_->meet(caller(op));
  } catch (const CommunicationError& error) {
    if (error.rank() == in_world(rank_)) check_gpu();
    throw;
  }
}

void ThreadCommunicator::forget_other_gpus() {
  const Device own = world_->gpu(rank_);
  if (!own.is_cpu()) backend::runtime(own).forget_order();
}

std::exception_ptr ThreadCommunicator::cause_of(std::exception_ptr error) {
  const auto failure_of = [](Device gpu) -> std::string {
    if (gpu.is_cpu()) return "";
    try {
      backend::runtime(gpu).check_works();
    } catch (const Error& lost) {
      return lost.what();
    }
    return "";
  };
  try {
    std::rethrow_exception(error);
  } catch (const CommunicationError&) {
    return error;  // it names somebody
  } catch (...) {
    if (!failure_of(world_->gpu(rank_)).empty()) return error;
  }
  for (int rank = 0; rank < size(); ++rank) {
    const Device gpu = world_->gpu(rank);
    if (gpu == world_->gpu(rank_)) continue;
    const std::string lost = failure_of(gpu);
    if (lost.empty()) continue;
    const std::string text = cat("the GPU of rank ", rank, " of ", size(), " has failed: ", lost);
    world_->fail(rank_, rank, text);
    return std::make_exception_ptr(
        CommunicationError(text, in_world(rank), {"", world_->calls(rank_)}));
  }
  return error;
}

std::string ThreadCommunicator::disagreement(const Collective& mine) const {
  for (int rank = 0; rank < size(); ++rank) {
    const Collective& other = peer(rank);
    if (other.kind != mine.kind) {
      return cat(mine.name(), ": rank ", rank_, " of ", size(), " met rank ", rank, " in ",
                 other.name());
    }
    if (other.root != mine.root || other.count != mine.count || other.dtype != mine.dtype ||
        other.op != mine.op) {
      return cat(mine.name(), ": rank ", rank_, " of ", size(), " was called with ", mine.words(),
                 "; rank ", rank, " with ", other.words());
    }
  }
  return "";
}

void ThreadCommunicator::check_length(const Collective& call, int src, int64_t sent,
                                      int64_t expected) const {
  if (sent == expected) return;
  throw CommunicationError(cat(call.name(), ": rank ", rank_, " of ", size(), " expects ", expected,
                               " bytes from rank ", src, ", which sends ", sent));
}

void ThreadCommunicator::exchange(const Collective& mine, const std::function<void()>& copy) {
  trace::Span span(mine.name(), "comm");
  const int64_t sent_before = bytes_sent();
  const Stream stream = mine.stream;
  std::exception_ptr error;
  const auto attempt = [&error](const auto& work) {
    if (error) return;
    try {
      work();
    } catch (const std::exception&) {
      error = std::current_exception();
    }
  };
  world_->slot(rank_) = mine;
  if (!stream.device.is_cpu()) {
    world_->set_gpu(rank_, stream.device);
    attempt([&] { world_->come(rank_).set(stream); });
  }
  meet(mine.name());
  const std::string wrong = disagreement(mine);
  std::vector<std::pair<int, Stream>> readers;  // of this rank's buffers
  const StreamScope scope(stream);              // of the arithmetic of reductions
  attempt([&] {
    if (!wrong.empty()) throw CommunicationError(wrong);
    for (int rank : others_on_gpus(mine, false)) readers.emplace_back(rank, peer(rank).stream);
    for (int rank : others_on_gpus(mine, true)) {
      world_->come(rank).await(stream, peer(rank).stream);
    }
    copy();
  });
  if (!stream.device.is_cpu()) attempt([&] { world_->copied(rank_).set(stream); });
  world_->meet_after_copy(rank_);
  // What others have copied from or to this rank's buffers comes before its next work.
  attempt([&] {
    for (const auto& [rank, other] : readers) world_->copied(rank).await(stream, other);
  });
  span.add_bytes(bytes_sent() - sent_before);
  if (error) raise(mine.name(), cause_of(error));
}

void ThreadCommunicator::raise(const char* op, const std::exception_ptr& error) {
  const std::string text = message_of(error);
  try {
    std::rethrow_exception(error);
  } catch (const CommunicationError& told) {
    const int blamed = told.rank() >= 0 ? told.rank() : in_world(rank_);
    if (told.rank() < 0) world_->fail(rank_, rank_, text);
    throw CommunicationError(text, blamed, {op, world_->calls(rank_)});
  } catch (...) {
    world_->fail(rank_, rank_, cat(op, ": rank ", rank_, " of ", size(), " failed: ", text));
    throw;
  }
}

void ThreadCommunicator::send(const void* data, int64_t bytes, int dst, int tag) {
  const Use use(*this, "send");
  check_message(*this, [&] { check_message_of("send", data, bytes, dst, tag, size()); });
  trace::Span span("send", "comm");
  world_->send(messenger("send"), data, bytes, dst, tag);
  if (dst != rank_) note_sent(dst, bytes);
  span.add_bytes(bytes);
}

void ThreadCommunicator::recv(void* data, int64_t bytes, int src, int tag) {
  const Use use(*this, "recv");
  check_message(*this, [&] { check_message_of("recv", data, bytes, src, tag, size()); });
  trace::Span span("recv", "comm");
  world_->recv(messenger("recv"), data, bytes, src, tag);
}

void ThreadCommunicator::sendrecv(const void* send_data, int64_t send_bytes, int dst,
                                  void* recv_data, int64_t recv_bytes, int src, int tag) {
  const Use use(*this, "sendrecv");
  check_message(*this, [&] {
    check_message_of("sendrecv", send_data, send_bytes, dst, tag, size());
    check_message_of("sendrecv", recv_data, recv_bytes, src, tag, size());
  });
  trace::Span span("sendrecv", "comm");
  world_->sendrecv(messenger("sendrecv"), send_data, send_bytes, dst, recv_data, recv_bytes, src,
                   tag);
  if (dst != rank_) note_sent(dst, send_bytes);
  span.add_bytes(send_bytes);
}

void ThreadCommunicator::run(const Collective& call) {
  switch (call.kind) {
    case Kind::kBarrier:
      return meet(call.name());
    case Kind::kBroadcast:
      return exchange(call, [&] {
        if (rank_ != call.root) {
          move(call.recv, peer(call.root).send, call.count, call.stream, call.root);
        } else {
          for_each_other([&](int rank) { note_sent(rank, call.count); });
        }
      });
    case Kind::kScatter:
      return exchange(call, [&] { copy_scatter(call); });
    case Kind::kGather:
      return exchange(call, [&] { copy_gather(call); });
    case Kind::kAllGather:
      return exchange(call, [&] { copy_all_gather(call); });
    case Kind::kAllToAll:
      return exchange(call, [&] { copy_all_to_all(call); });
    case Kind::kExchange:
      return exchange(call, [&] { pull_tensors(call); });
    case Kind::kReduce:
      return exchange(call, [&] { reduce_segment(call, std::array{call.root}); });
    case Kind::kAllReduce:
      return exchange(call, [&] { reduce_segment(call, all_ranks(size())); });
    default:
      return exchange_reduce_scatter(call);
  }
}

void ThreadCommunicator::copy_scatter(const Collective& call) {
  const Block& mine = call.blocks[static_cast<size_t>(rank_)];
  const Block& sent = peer(call.root).blocks[static_cast<size_t>(rank_)];
  check_length(call, call.root, sent.bytes, mine.bytes);
  move(call.recv, at(peer(call.root).send, sent.offset), mine.bytes, call.stream, call.root);
  if (rank_ != call.root) return;
  for_each_other([&](int rank) { note_sent(rank, call.blocks[static_cast<size_t>(rank)].bytes); });
}

/// Every rank writes its own block, so the ranks share the work of the copy.
void ThreadCommunicator::copy_gather(const Collective& call) {
  const Block& mine = call.blocks[static_cast<size_t>(rank_)];
  const Block& place = peer(call.root).blocks[static_cast<size_t>(rank_)];
  check_length(call, rank_, mine.bytes, place.bytes);
  move(at(peer(call.root).recv, place.offset), call.send, mine.bytes, call.stream, call.root);
  if (rank_ != call.root) note_sent(call.root, mine.bytes);
}

void ThreadCommunicator::copy_all_gather(const Collective& call) {
  for (int rank = 0; rank < size(); ++rank) {
    const Block& block = call.blocks[static_cast<size_t>(rank)];
    check_length(call, rank, peer(rank).blocks[static_cast<size_t>(rank)].bytes, block.bytes);
    move(at(call.recv, block.offset), peer(rank).send, block.bytes, call.stream, rank);
  }
  const int64_t mine = call.blocks[static_cast<size_t>(rank_)].bytes;
  for_each_other([&](int rank) { note_sent(rank, mine); });
}

void ThreadCommunicator::copy_all_to_all(const Collective& call) {
  // Starting at different peers spreads the ranks over the memory they read.
  for (int step = 0; step < size(); ++step) {
    const int src = (rank_ + step) % size();
    const Block& from = peer(src).blocks[static_cast<size_t>(rank_)];
    const Block& to = call.recv_blocks[static_cast<size_t>(src)];
    check_length(call, src, from.bytes, to.bytes);
    move(at(call.recv, to.offset), at(peer(src).send, from.offset), to.bytes, call.stream, src);
    if (src != rank_) note_sent(src, call.blocks[static_cast<size_t>(src)].bytes);
  }
}

bool ThreadCommunicator::goes_by_engine(const Collective& call) const {
  constexpr int64_t kLong = int64_t{16} << 20;  // kernels begin sooner
  const auto is_long = [](const Patch& patch) { return patch.elements.nbytes() >= kLong; };
  const auto sends_mapped = [&](int rank) { return are_mapped(peer(rank).sends); };
  return std::ranges::any_of(call.receives, is_long) && are_mapped(call.sends) &&
         std::ranges::all_of(others_on_gpus(call, true), sends_mapped);
}

void ThreadCommunicator::pull_tensors(const Collective& call) {
  std::optional<backend::ExecutionScope> by_engine;
  if (goes_by_engine(call)) by_engine.emplace(backend::beside_work());
  for (int step = 0; step < size(); ++step) {
    const int src = (rank_ + step) % size();
    const std::vector<Tensor> from = tensors_of(peer(src).sends, rank_);
    const std::vector<Tensor> to = tensors_of(call.receives, src);
    if (const std::string wrong = misfit(to, from, src); !wrong.empty()) {
      throw CommunicationError(cat(call.name(), ": rank ", rank_, " of ", size(), ' ', wrong));
    }
    const StreamScope theirs(peer(src).stream);  // where what cannot be read from here is packed
    const StreamScope own(call.stream);
    for (size_t i = 0; i < to.size(); ++i) pull(to[i], from[i]);
  }
  for (const Patch& patch : call.sends) {
    if (patch.peer != rank_) note_sent(patch.peer, patch.elements.nbytes());
  }
}

void ThreadCommunicator::reduce_inputs(const Collective& call, int64_t begin, int64_t end,
                                       void* out) const {
  const Device device = call.stream.device;
  const int64_t item = itemsize(call.dtype), count = end - begin;
  std::vector<Tensor> moved;  // from other devices
  std::vector<const void*> inputs;
  for (int rank = 0; rank < size(); ++rank) {
    inputs.push_back(at(peer(rank).send, begin * item));
    if (peer(rank).stream.device == device) continue;
    moved.push_back(empty({count}, call.dtype, device));
    move(moved.back().data(), inputs.back(), count * item, call.stream, rank);
    inputs.back() = moved.back().data();
  }
  reduce_in_rank_order(inputs, out, count, call.dtype, call.op, device);
}

/// Each rank reduces one segment of all ranks' buffers and writes it to all receivers. With 2
/// ranks, [a0 a1 | a2 a3] and [b0 b1 | b2 b3]: rank 0 writes a0+b0, a1+b1 everywhere, rank 1 the
/// rest. Only the owner of a segment touches it, which makes buffers that are both input and output
/// safe.
void ThreadCommunicator::reduce_segment(const Collective& call, std::span<const int> receivers) {
  const auto [begin, end] = segment(call.count, rank_, size());
  const int64_t item = itemsize(call.dtype), offset = begin * item, bytes = (end - begin) * item;
  Tensor aside;
  void* first = at(peer(receivers[0]).recv, offset);
  if (!(peer(receivers[0]).stream.device == call.stream.device)) {
    aside = empty({end - begin}, call.dtype, call.stream.device);
    first = aside.data();
  }
  reduce_inputs(call, begin, end, first);
  for (int receiver : receivers) {
    move(at(peer(receiver).recv, offset), first, bytes, call.stream, receiver);
  }
  // What a rank's contribution to the segments of others weighs, as on a wire.
  for_each_other([&](int rank) {
    const auto [low, high] = segment(call.count, rank, size());
    note_sent(rank, (high - low) * item);
  });
}

void ThreadCommunicator::exchange_reduce_scatter(const Collective& call) {
  const int64_t item = itemsize(call.dtype), count = call.counts[static_cast<size_t>(rank_)];
  const int64_t begin =
      std::accumulate(call.counts.begin(), call.counts.begin() + rank_, int64_t{0});
  // `recv` may lie in `send`, which others still read: the result is kept aside until they are
  // done.
  Tensor kept;
  exchange(call, [&] {
    kept = empty({count}, call.dtype, call.stream.device);
    reduce_inputs(call, begin, begin + count, kept.data());
    for_each_other(
        [&](int rank) { note_sent(rank, call.counts[static_cast<size_t>(rank)] * item); });
  });
  move(call.recv, kept.data(), count * item, call.stream, rank_);
}

std::shared_ptr<Communicator> ThreadCommunicator::split(int color, int key) {
  const Use use(*this, "split");
  const SplitGroup group = choose_split_group(*this, color, key);
  std::shared_ptr<ThreadWorld> child;
  const bool is_leader = color >= 0 && group.rank == 0;
  if (is_leader) {
    child = std::make_shared<ThreadWorld>(world_, group.members);
    world_->add_child(child);
  }
  exchange({.kind = Collective::Kind::kSplit, .send = &child}, [&] {
    if (color < 0 || is_leader) return;
    child = *static_cast<const std::shared_ptr<ThreadWorld>*>(peer(group.members[0]).send);
  });
  if (color < 0) return nullptr;
  return std::make_shared<ThreadCommunicator>(child, group.rank, timeout_);
}

void ThreadCommunicator::abort_for(int failed, const std::string& reason) noexcept {
  world_->abort(rank_, failed, cat("rank ", rank_, " of ", size(), " aborted: ", reason));
}

}  // namespace

std::vector<std::shared_ptr<Communicator>> make_thread_communicators(int size) {
  checked_ranks(size, "thread communicator");
  const auto world = std::make_shared<ThreadWorld>(size);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_shared<ThreadCommunicator>(world, rank, env().comm_timeout.value));
  }
  return ranks;
}

void leave_thread_world(Communicator& comm) {
  if (auto* rank = dynamic_cast<ThreadCommunicator*>(&comm)) rank->leave();
}

}  // namespace cuop::dist
