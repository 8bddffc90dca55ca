#include "cuop/dist/comm/thread.h"

#include <algorithm>
#include <array>
#include <functional>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/reduction.h"
#include "cuop/dist/comm/split.h"
#include "cuop/dist/comm/thread_world.h"

namespace cuop::dist {

namespace {

/// Rank r's part of `count` elements when all ranks share the work of a reduction.
std::pair<int64_t, int64_t> segment(int64_t count, int rank, int size) {
  return {count * rank / size, count * (rank + 1) / size};
}

class ThreadCommunicator final : public Communicator {
 public:
  using Slot = ThreadWorld::Slot;

  ThreadCommunicator(std::shared_ptr<ThreadWorld> world, int rank, double timeout)
      : world_(std::move(world)), rank_(rank), timeout_(timeout) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  std::string_view kind() const override { return "thread"; }
  int local_size() const override { return size(); }
  int in_world(int rank) const override { return world_->in_root(rank); }

  void send(const void* data, int64_t bytes, int dst, int tag) override;
  void recv(void* data, int64_t bytes, int src, int tag) override;
  void sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                int64_t recv_bytes, int src, int tag) override;
  void barrier() override { world_->meet(caller("barrier")); }
  void broadcast(void* data, int64_t bytes, int root) override;
  void scatter(const void* send, std::span<const Block> blocks, void* recv, int root) override;
  void gather(const void* send, std::span<const Block> blocks, void* recv, int root) override;
  void all_gather(const void* send, std::span<const Block> blocks, void* recv) override;
  void all_to_all(const void* send, std::span<const Block> send_blocks, void* recv,
                  std::span<const Block> recv_blocks) override;
  void reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op,
              int root) override;
  void all_reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op) override;
  void reduce_scatter(const void* send, void* recv, std::span<const int64_t> counts, DType dtype,
                      ReduceKind op) override;
  std::shared_ptr<Communicator> split(int color, int key) override;

  double timeout() const override { return timeout_; }
  void set_timeout(double seconds) override { timeout_ = seconds; }
  void refuse_call(const std::string& text) noexcept override { world_->refuse_call(rank_, text); }
  void refuse_message(const std::string& text) noexcept override {
    world_->refuse_message(rank_, text);
  }
  void abort(const std::string& reason) noexcept override;
  std::string failure() const override { return world_->failure(); }
  bool is_failure_reported() const override { return world_->is_failure_reported(rank_); }
  void recover() override { world_->recover(caller("recover")); }
  int64_t bytes_sent() const override { return bytes_sent_; }

  void leave() { world_->leave(rank_); }

 private:
  ThreadWorld::Caller caller(const char* op) const { return {rank_, op, timeout_}; }
  ThreadWorld::Caller messenger(const char* op) const { return {rank_, op, timeout_, true}; }
  const Slot& peer(int rank) const { return world_->slot(rank); }
  void check_rooted(const char* op, std::span<const Block> blocks, int root) {
    check_call(*this, [&] {
      check_rank(op, root, size());
      check_blocks(op, blocks, size());
    });
  }
  /// The frame of every collective: lay `mine` open, meet, check that all are in the same operation
  /// with the same root and count (else the copy would read the buffers of another operation),
  /// copy, meet again, raise what went wrong.
  void exchange(const Slot& mine, const std::function<void()>& copy);
  std::string disagreement(const Slot& mine) const;
  /// Raises, inside an exchange, unless `src` sends as many bytes as this rank expects.
  void check_length(const char* op, int src, int64_t sent, int64_t expected) const;
  void reduce_segment(int64_t count, DType dtype, ReduceKind op, std::span<const int> receivers);

  std::shared_ptr<ThreadWorld> world_;
  int rank_;
  double timeout_;
  int64_t bytes_sent_ = 0;
};

std::string ThreadCommunicator::disagreement(const Slot& mine) const {
  for (int rank = 0; rank < size(); ++rank) {
    const Slot& other = peer(rank);
    if (std::string_view(other.op) != mine.op) {
      return cat(mine.op, ": rank ", rank_, " of ", size(), " met rank ", rank, " in ", other.op);
    }
    if (other.root != mine.root || other.count != mine.count || other.dtype != mine.dtype ||
        other.reduce_op != mine.reduce_op) {
      return cat(mine.op, ": rank ", rank_, " of ", size(), " was called with root ", mine.root,
                 ", count ", mine.count, " of ", name(mine.dtype), ", ", name(mine.reduce_op),
                 "; rank ", rank, " with root ", other.root, ", count ", other.count, " of ",
                 name(other.dtype), ", ", name(other.reduce_op));
    }
  }
  return "";
}

void ThreadCommunicator::check_length(const char* op, int src, int64_t sent,
                                      int64_t expected) const {
  if (sent == expected) return;
  throw CommunicationError(cat(op, ": rank ", rank_, " of ", size(), " expects ", expected,
                               " bytes from rank ", src, ", which sends ", sent));
}

void ThreadCommunicator::exchange(const Slot& mine, const std::function<void()>& copy) {
  trace::Span span(mine.op, "comm");
  const int64_t sent_before = bytes_sent_;
  world_->slot(rank_) = mine;
  world_->meet(caller(mine.op));
  std::string wrong = disagreement(mine);
  if (wrong.empty()) {
    try {
      copy();
    } catch (const std::exception& error) {
      wrong = error.what();
    }
  }
  world_->meet_after_copy(rank_);
  span.add_bytes(bytes_sent_ - sent_before);
  if (wrong.empty()) return;
  world_->fail(rank_, wrong);
  throw CommunicationError(wrong, in_world(rank_));
}

void ThreadCommunicator::send(const void* data, int64_t bytes, int dst, int tag) {
  check_message(*this, [&] { check_envelope("send", bytes, dst, tag, size()); });
  trace::Span span("send", "comm");
  world_->send(messenger("send"), data, bytes, dst, tag);
  if (dst != rank_) bytes_sent_ += bytes;
  span.add_bytes(bytes);
}

void ThreadCommunicator::recv(void* data, int64_t bytes, int src, int tag) {
  check_message(*this, [&] { check_envelope("recv", bytes, src, tag, size()); });
  trace::Span span("recv", "comm");
  world_->recv(messenger("recv"), data, bytes, src, tag);
}

void ThreadCommunicator::sendrecv(const void* send_data, int64_t send_bytes, int dst,
                                  void* recv_data, int64_t recv_bytes, int src, int tag) {
  check_message(*this, [&] {
    check_envelope("sendrecv", send_bytes, dst, tag, size());
    check_envelope("sendrecv", recv_bytes, src, tag, size());
  });
  trace::Span span("sendrecv", "comm");
  world_->sendrecv(messenger("sendrecv"), send_data, send_bytes, dst, recv_data, recv_bytes, src,
                   tag);
  if (dst != rank_) bytes_sent_ += send_bytes;
  span.add_bytes(send_bytes);
}

void ThreadCommunicator::broadcast(void* data, int64_t bytes, int root) {
  check_call(*this, [&] {
    check_rank("broadcast", root, size());
    check_count("broadcast", bytes);
  });
  exchange({.op = "broadcast", .root = root, .send = data, .count = bytes}, [&] {
    if (rank_ != root) copy_bytes(data, peer(root).send, bytes);
    if (rank_ == root) bytes_sent_ += bytes * (size() - 1);
  });
}

void ThreadCommunicator::scatter(const void* send, std::span<const Block> blocks, void* recv,
                                 int root) {
  check_rooted("scatter", blocks, root);
  exchange({.op = "scatter", .root = root, .send = send, .blocks = blocks}, [&] {
    const Block& mine = blocks[static_cast<size_t>(rank_)];
    const Block& sent = peer(root).blocks[static_cast<size_t>(rank_)];
    check_length("scatter", root, sent.bytes, mine.bytes);
    copy_bytes(recv, at(peer(root).send, sent.offset), mine.bytes);
    if (rank_ != root) return;
    for (const Block& block : blocks) bytes_sent_ += block.bytes;
    bytes_sent_ -= mine.bytes;
  });
}

void ThreadCommunicator::gather(const void* send, std::span<const Block> blocks, void* recv,
                                int root) {
  check_rooted("gather", blocks, root);
  // Every rank writes its own block, so the ranks share the work of the copy.
  exchange({.op = "gather", .root = root, .recv = recv, .blocks = blocks}, [&] {
    const Block& mine = blocks[static_cast<size_t>(rank_)];
    const Block& place = peer(root).blocks[static_cast<size_t>(rank_)];
    check_length("gather", rank_, mine.bytes, place.bytes);
    copy_bytes(at(peer(root).recv, place.offset), send, mine.bytes);
    if (rank_ != root) bytes_sent_ += mine.bytes;
  });
}

void ThreadCommunicator::all_gather(const void* send, std::span<const Block> blocks, void* recv) {
  check_call(*this, [&] { check_blocks("all_gather", blocks, size()); });
  exchange({.op = "all_gather", .send = send, .blocks = blocks}, [&] {
    for (int rank = 0; rank < size(); ++rank) {
      const Block& block = blocks[static_cast<size_t>(rank)];
      check_length("all_gather", rank, peer(rank).blocks[static_cast<size_t>(rank)].bytes,
                   block.bytes);
      copy_bytes(at(recv, block.offset), peer(rank).send, block.bytes);
    }
    bytes_sent_ += blocks[static_cast<size_t>(rank_)].bytes * (size() - 1);
  });
}

void ThreadCommunicator::all_to_all(const void* send, std::span<const Block> send_blocks,
                                    void* recv, std::span<const Block> recv_blocks) {
  check_call(*this, [&] {
    check_blocks("all_to_all", send_blocks, size());
    check_blocks("all_to_all", recv_blocks, size());
  });
  exchange({.op = "all_to_all", .send = send, .blocks = send_blocks}, [&] {
    // Starting at different peers spreads the ranks over the memory they read.
    for (int step = 0; step < size(); ++step) {
      const int src = (rank_ + step) % size();
      const Block& from = peer(src).blocks[static_cast<size_t>(rank_)];
      const Block& to = recv_blocks[static_cast<size_t>(src)];
      check_length("all_to_all", src, from.bytes, to.bytes);
      copy_bytes(at(recv, to.offset), at(peer(src).send, from.offset), to.bytes);
      if (src != rank_) bytes_sent_ += send_blocks[static_cast<size_t>(src)].bytes;
    }
  });
}

/// Each rank reduces one segment of all ranks' buffers and writes it to all receivers. With 2
/// ranks, [a0 a1 | a2 a3] and [b0 b1 | b2 b3]: rank 0 writes a0+b0, a1+b1 everywhere, rank 1 the
/// rest. Only the owner of a segment touches it, which makes buffers that are both input and output
/// safe.
void ThreadCommunicator::reduce_segment(int64_t count, DType dtype, ReduceKind op,
                                        std::span<const int> receivers) {
  const auto [begin, end] = segment(count, rank_, size());
  const int64_t offset = begin * itemsize(dtype);
  const int64_t bytes = (end - begin) * itemsize(dtype);
  std::vector<const void*> inputs;
  for (int rank = 0; rank < size(); ++rank) inputs.push_back(at(peer(rank).send, offset));
  void* first = at(peer(receivers[0]).recv, offset);
  reduce_in_rank_order(inputs, first, end - begin, dtype, op);
  for (int receiver : receivers) copy_bytes(at(peer(receiver).recv, offset), first, bytes);
  // What a rank's contribution to the segments of others weighs, as on a wire.
  bytes_sent_ += count * itemsize(dtype) - bytes;
}

void ThreadCommunicator::reduce(const void* send, void* recv, int64_t count, DType dtype,
                                ReduceKind op, int root) {
  check_call(*this, [&] {
    check_rank("reduce", root, size());
    check_count("reduce", count);
    check_reducible("reduce", dtype, op);
  });
  const Slot mine{.op = "reduce",
                  .root = root,
                  .send = send,
                  .recv = recv,
                  .blocks = {},
                  .count = count,
                  .dtype = dtype,
                  .reduce_op = op};
  exchange(mine, [&] { reduce_segment(count, dtype, op, std::array{root}); });
}

void ThreadCommunicator::all_reduce(const void* send, void* recv, int64_t count, DType dtype,
                                    ReduceKind op) {
  check_call(*this, [&] {
    check_count("all_reduce", count);
    check_reducible("all_reduce", dtype, op);
  });
  const Slot mine{.op = "all_reduce",
                  .root = 0,
                  .send = send,
                  .recv = recv,
                  .blocks = {},
                  .count = count,
                  .dtype = dtype,
                  .reduce_op = op};
  std::vector<int> everyone(static_cast<size_t>(size()));
  for (int rank = 0; rank < size(); ++rank) everyone[static_cast<size_t>(rank)] = rank;
  exchange(mine, [&] { reduce_segment(count, dtype, op, everyone); });
}

void ThreadCommunicator::reduce_scatter(const void* send, void* recv,
                                        std::span<const int64_t> counts, DType dtype,
                                        ReduceKind op) {
  check_call(*this, [&] {
    check_counts("reduce_scatter", counts, size());
    check_reducible("reduce_scatter", dtype, op);
  });
  int64_t begin = 0;
  int64_t total = 0;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == rank_) begin = total;
    total += counts[static_cast<size_t>(rank)];
  }
  const int64_t count = counts[static_cast<size_t>(rank_)];
  const Slot mine{.op = "reduce_scatter",
                  .root = 0,
                  .send = send,
                  .recv = recv,
                  .blocks = {},
                  .count = total,
                  .dtype = dtype,
                  .reduce_op = op};
  // `recv` may lie in `send`, which others still read: the result is kept aside until they are
  // done.
  const int64_t bytes = count * itemsize(dtype);
  std::vector<char> kept(static_cast<size_t>(bytes));
  exchange(mine, [&] {
    std::vector<const void*> inputs;
    for (int rank = 0; rank < size(); ++rank) {
      inputs.push_back(at(peer(rank).send, begin * itemsize(dtype)));
    }
    reduce_in_rank_order(inputs, kept.data(), count, dtype, op);
    bytes_sent_ += (total - count) * itemsize(dtype);
  });
  copy_bytes(recv, kept.data(), bytes);
}

std::shared_ptr<Communicator> ThreadCommunicator::split(int color, int key) {
  const SplitGroup group = choose_split_group(*this, color, key);
  std::shared_ptr<ThreadWorld> child;
  const bool is_leader = color >= 0 && group.rank == 0;
  if (is_leader) {
    child = std::make_shared<ThreadWorld>(world_, group.members);
    world_->add_child(child);
  }
  exchange({.op = "split", .root = 0, .send = &child}, [&] {
    if (color < 0 || is_leader) return;
    child = *static_cast<const std::shared_ptr<ThreadWorld>*>(peer(group.members[0]).send);
  });
  if (color < 0) return nullptr;
  return std::make_shared<ThreadCommunicator>(child, group.rank, timeout_);
}

void ThreadCommunicator::abort(const std::string& reason) noexcept {
  world_->abort(rank_, cat("rank ", rank_, " of ", size(), " aborted: ", reason));
}

}  // namespace

/// More threads than a system gives a process; their mailboxes alone would fill its memory.
constexpr int kMostRanks = 1 << 15;

std::vector<std::shared_ptr<Communicator>> make_thread_communicators(int size) {
  if (size < 1 || size > kMostRanks) {
    throw ExecutionError(
        cat("thread communicator: ", size, " ranks were asked for, allowed are 1 to ", kMostRanks));
  }
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
