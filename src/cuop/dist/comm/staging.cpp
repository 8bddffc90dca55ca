#include "cuop/dist/comm/staging.h"

#include "cuop/backend/runtime.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/memory/workspace.h"

namespace cuop::dist {

namespace {

using Kind = Collective::Kind;
using Blocks = std::vector<Block>;

Blocks whole(int64_t bytes) { return {{0, bytes}}; }

Blocks own(const Collective& call, int rank) {
  return whole(call.blocks[static_cast<size_t>(rank)].bytes);
}

/// What a rank's call reads of `send`.
Blocks read_by(const Collective& call, int rank) {
  const Blocks all(call.blocks.begin(), call.blocks.end());
  switch (call.kind) {
    case Kind::kBroadcast:
      return rank == call.root ? whole(call.count) : Blocks{};
    case Kind::kScatter:
      return rank == call.root ? all : Blocks{};
    case Kind::kGather:
    case Kind::kAllGather:
      return own(call, rank);
    case Kind::kAllToAll:
      return all;
    case Kind::kReduce:
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      return whole(call.count * itemsize(call.dtype));
    default:
      return {};
  }
}

/// What it writes of `recv`.
Blocks written_by(const Collective& call, int rank) {
  const bool is_root = rank == call.root;
  switch (call.kind) {
    case Kind::kBroadcast:
      return is_root ? Blocks{} : whole(call.count);
    case Kind::kScatter:
      return own(call, rank);
    case Kind::kGather:
      return is_root ? Blocks(call.blocks.begin(), call.blocks.end()) : Blocks{};
    case Kind::kAllGather:
      return {call.blocks.begin(), call.blocks.end()};
    case Kind::kAllToAll:
      return {call.recv_blocks.begin(), call.recv_blocks.end()};
    case Kind::kReduce:
      return is_root ? whole(call.count * itemsize(call.dtype)) : Blocks{};
    case Kind::kAllReduce:
      return whole(call.count * itemsize(call.dtype));
    case Kind::kReduceScatter:
      return whole(call.counts[static_cast<size_t>(rank)] * itemsize(call.dtype));
    default:
      return {};
  }
}

}  // namespace

StagedCall::StagedCall(const Collective& call, int rank)
    : call_(call),
      written_(written_by(call, rank)),
      written_here_(packed_blocks(written_)),
      blocks_here_(packed_blocks(call.blocks)),
      on_host_(call) {
  const Blocks read = read_by(call, rank), read_here = packed_blocks(read);
  const bool is_broadcast = call.kind == Kind::kBroadcast;  // which has one buffer
  const auto buffer = [&](int64_t bytes) {
    return std::make_unique<memory::Workspace>(bytes, call.stream,
                                               backend::locked_memory(call.stream.device));
  };
  send_ = buffer(is_broadcast ? call.count : total_bytes(read));
  recv_ = buffer(is_broadcast ? 0 : total_bytes(written_));
  backend::Runtime& gpu = backend::runtime(call.stream.device);
  for (size_t i = 0; i < read.size(); ++i) {
    gpu.copy(at(send_->data(), read_here[i].offset), at(call.send, read[i].offset), read[i].bytes,
             call.stream);
  }
  on_host_.send = send_->data();
  on_host_.recv = is_broadcast ? send_->data() : recv_->data();
  on_host_.blocks = blocks_here_;
  on_host_.recv_blocks = written_here_;
  on_host_.stream = {};
}

StagedCall::~StagedCall() = default;

void StagedCall::deliver() const {
  backend::Runtime& gpu = backend::runtime(call_.stream.device);
  for (size_t i = 0; i < written_.size(); ++i) {
    gpu.copy(at(call_.recv, written_[i].offset), at(on_host_.recv, written_here_[i].offset),
             written_[i].bytes, call_.stream);
  }
}

}  // namespace cuop::dist
