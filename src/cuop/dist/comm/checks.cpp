#include "cuop/dist/comm/checks.h"

#include <algorithm>
#include <limits>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

namespace {

thread_local int64_t call_count = 0;

/// Elements of 16 bytes that can be counted in bytes.
constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max() / 16;

bool has_bytes(std::span<const Block> blocks) {
  return std::ranges::any_of(blocks, [](const Block& block) { return block.bytes > 0; });
}

}  // namespace

int64_t collective_calls() { return call_count; }
void count_collective_call() { ++call_count; }

void check_rank(std::string_view who, int64_t rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw IndexError(cat(who, ": rank ", rank, " is out of range for ", size, " ranks"));
}

void check_count(std::string_view who, int64_t count) {
  if (count >= 0 && count <= kMostElements) return;
  throw ExecutionError(cat(who, ": the length is ", count, ", it must be 0 to ", kMostElements));
}

void check_address(std::string_view who, int64_t peer, int64_t tag, int size) {
  check_rank(who, peer, size);
  if (tag >= 0 && tag < kUserTagLimit) return;
  throw ExecutionError(
      cat(who, ": tag ", tag, " is out of range, tags are 0 to ", kUserTagLimit - 1));
}

void check_message_of(std::string_view who, const void* data, int64_t bytes, int peer, int tag,
                      int size) {
  check_address(who, peer, tag, size);
  check_count(who, bytes);
  if (data != nullptr || bytes == 0) return;
  throw ExecutionError(cat(who, ": no buffer was given for a message of ", bytes, " bytes"));
}

void check_blocks(std::string_view who, std::span<const Block> blocks, int size) {
  if (static_cast<int>(blocks.size()) != size) {
    throw ExecutionError(cat(who, ": ", blocks.size(), " blocks were given for ", size, " ranks"));
  }
  for (const Block& block : blocks) {
    if (block.offset < 0 || block.bytes < 0) {
      throw ExecutionError(cat(who, ": a block of ", block.bytes, " bytes at offset ", block.offset,
                               " was given, both must be 0 or more"));
    }
    check_count(who, block.offset);
    check_count(who, block.bytes);
  }
}

void check_buffers(const Collective& call, int rank) {
  using Call = Collective::Kind;
  const auto own = [rank](const auto& parts) { return parts[static_cast<size_t>(rank)]; };
  const bool is_root = rank == call.root;
  bool sends = call.count > 0, receives = sends;  // of a broadcast the same buffer
  if (call.kind == Call::kScatter) {
    sends = is_root && has_bytes(call.blocks);
    receives = own(call.blocks).bytes > 0;
  } else if (call.kind == Call::kGather || call.kind == Call::kAllGather) {
    sends = own(call.blocks).bytes > 0;
    receives = (is_root || call.kind == Call::kAllGather) && has_bytes(call.blocks);
  } else if (call.kind == Call::kAllToAll) {
    sends = has_bytes(call.blocks);
    receives = has_bytes(call.recv_blocks);
  } else if (call.kind == Call::kReduce) {
    receives = is_root && sends;
  } else if (call.kind == Call::kReduceScatter) {
    receives = own(call.counts) > 0;
  }
  if (sends && call.send == nullptr) {
    throw ExecutionError(cat(call.name(), ": no buffer to send from was given on rank ", rank));
  }
  if (receives && call.recv == nullptr) {
    throw ExecutionError(cat(call.name(), ": no buffer to receive into was given on rank ", rank));
  }
}

void check_counts(std::string_view who, std::span<const int64_t> counts, int size) {
  if (static_cast<int>(counts.size()) != size) {
    throw ExecutionError(cat(who, ": ", counts.size(), " counts were given for ", size, " ranks"));
  }
  int64_t sum = 0;
  for (int64_t count : counts) {
    check_count(who, count);
    check_count(who, sum += count);
  }
}

void check_patches(std::string_view who, std::span<const Patch> patches, int size, Stream stream) {
  for (const Patch& patch : patches) {
    check_rank(who, patch.peer, size);
    const Tensor& tensor = patch.elements;
    if (!tensor.is_defined()) {
      throw ExecutionError(cat(who, ": no tensor was given for rank ", patch.peer));
    }
    if (tensor.device() != stream.device) {
      throw DeviceError(cat(who, ": the tensor for rank ", patch.peer, " is on ", tensor.device(),
                            ", the stream on ", stream.device));
    }
    if (tensor.dtype() != patches[0].elements.dtype()) {
      throw DTypeError(cat(who, ": tensors of ", patches[0].elements.dtype(), " and of ",
                           tensor.dtype(), " were given; one exchange is of one dtype"));
    }
  }
}

void check_reducible(std::string_view who, DType dtype, ReduceKind op) {
  if (op > ReduceKind::kMin) {
    throw ExecutionError(cat(who, ": ranks combine by sum, prod, max or min, not by ", name(op)));
  }
  if (!is_complex(dtype) || op == ReduceKind::kSum || op == ReduceKind::kProd) return;
  throw DTypeError(cat(who, ": ", name(op), " is not defined for ", name(dtype),
                       ", complex numbers have sum and prod only"));
}

}  // namespace cuop::dist
