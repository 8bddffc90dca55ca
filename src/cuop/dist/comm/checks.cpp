#include "cuop/dist/comm/checks.h"

#include <numeric>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

namespace {
thread_local int64_t call_count = 0;
}

int64_t collective_calls() { return call_count; }
void count_collective_call() { ++call_count; }

void check_rank(std::string_view who, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw IndexError(cat(who, ": rank ", rank, " is out of range for ", size, " ranks"));
}

void check_count(std::string_view who, int64_t count) {
  if (count >= 0) return;
  throw ExecutionError(cat(who, ": the length is ", count, ", it must be 0 or more"));
}

void check_envelope(std::string_view who, int64_t bytes, int peer, int tag, int size) {
  check_rank(who, peer, size);
  check_count(who, bytes);
  if (tag >= 0 && tag < kUserTagLimit) return;
  throw ExecutionError(
      cat(who, ": tag ", tag, " is out of range, tags are 0 to ", kUserTagLimit - 1));
}

void check_blocks(std::string_view who, std::span<const Block> blocks, int size) {
  if (static_cast<int>(blocks.size()) != size) {
    throw ExecutionError(cat(who, ": ", blocks.size(), " blocks were given for ", size, " ranks"));
  }
  for (const Block& block : blocks) {
    if (block.offset >= 0 && block.bytes >= 0) continue;
    throw ExecutionError(cat(who, ": a block of ", block.bytes, " bytes at offset ", block.offset,
                             " was given, both must be 0 or more"));
  }
}

void check_counts(std::string_view who, std::span<const int64_t> counts, int size) {
  if (static_cast<int>(counts.size()) != size) {
    throw ExecutionError(cat(who, ": ", counts.size(), " counts were given for ", size, " ranks"));
  }
  for (int64_t count : counts) check_count(who, count);
}

void check_reducible(std::string_view who, DType dtype, ReduceKind op) {
  if (op > ReduceKind::kMin) {
    throw ExecutionError(cat(who, ": ranks combine by sum, prod, max or min, not by ", name(op)));
  }
  if (!is_complex(dtype) || op == ReduceKind::kSum || op == ReduceKind::kProd) return;
  throw DTypeError(cat(who, ": ", name(op), " is not defined for ", name(dtype),
                       ", complex numbers have sum and prod only"));
}

// The calls of a communicator, checked before they are run.

using Kind = Collective::Kind;

const char* Collective::name() const {
  constexpr const char* kNames[] = {"barrier",        "broadcast",  "scatter", "gather",
                                    "all_gather",     "all_to_all", "reduce",  "all_reduce",
                                    "reduce_scatter", "split"};
  return kNames[static_cast<size_t>(kind)];
}

void Communicator::check_and_run(const Collective& call) {
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
  });
  run(call);
}

void Communicator::barrier() { run({.kind = Kind::kBarrier}); }

void Communicator::broadcast(void* data, int64_t bytes, int root) {
  check_and_run(
      {.kind = Kind::kBroadcast, .root = root, .send = data, .recv = data, .count = bytes});
}

void Communicator::scatter(const void* send, std::span<const Block> blocks, void* recv, int root) {
  check_and_run(
      {.kind = Kind::kScatter, .root = root, .send = send, .recv = recv, .blocks = blocks});
}

void Communicator::gather(const void* send, std::span<const Block> blocks, void* recv, int root) {
  check_and_run(
      {.kind = Kind::kGather, .root = root, .send = send, .recv = recv, .blocks = blocks});
}

void Communicator::all_gather(const void* send, std::span<const Block> blocks, void* recv) {
  check_and_run({.kind = Kind::kAllGather, .send = send, .recv = recv, .blocks = blocks});
}

void Communicator::all_to_all(const void* send, std::span<const Block> send_blocks, void* recv,
                              std::span<const Block> recv_blocks) {
  check_and_run({.kind = Kind::kAllToAll,
                 .send = send,
                 .recv = recv,
                 .blocks = send_blocks,
                 .recv_blocks = recv_blocks});
}

void Communicator::reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op,
                          int root) {
  check_and_run({.kind = Kind::kReduce,
                 .root = root,
                 .send = send,
                 .recv = recv,
                 .count = count,
                 .dtype = dtype,
                 .op = op});
}

void Communicator::all_reduce(const void* send, void* recv, int64_t count, DType dtype,
                              ReduceKind op) {
  Collective call{.kind = Kind::kAllReduce, .send = send, .recv = recv, .count = count};
  call.dtype = dtype;
  call.op = op;
  check_and_run(call);
}

void Communicator::reduce_scatter(const void* send, void* recv, std::span<const int64_t> counts,
                                  DType dtype, ReduceKind op) {
  check_and_run({.kind = Kind::kReduceScatter,
                 .send = send,
                 .recv = recv,
                 .count = std::accumulate(counts.begin(), counts.end(), int64_t{0}),
                 .counts = counts,
                 .dtype = dtype,
                 .op = op});
}

}  // namespace cuop::dist
