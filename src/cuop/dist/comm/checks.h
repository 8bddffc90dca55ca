// Checks of arguments that every communicator makes before it moves anything, and how errors are
// told to the other ranks.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// What the work of a rank may throw to say of which rank's failure it tells; CommunicationError
/// says it too.
struct RankFailure : std::exception {
  /// None for a failure of its own.
  virtual std::optional<int> rank() const noexcept = 0;
};

/// Runs the checks of a collective call: what is wrong raises here, and with its text on the other
/// ranks of the call.
template <class Check>
void check_call(Communicator& comm, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    comm.refuse_call(error.what());
    throw;
  }
}

/// The same for a message to or from one rank: ranks that wait for this one raise.
template <class Check>
void check_message(Communicator& comm, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    comm.refuse_message(error.what());
    throw;
  }
}

/// What a rank does behind a call that all have made: of what goes wrong there the others hear in
/// their next one.
template <class Work>
void tell_errors(Communicator& comm, std::string_view who, Work&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    comm.abort(cat(who, ": ", error.what()));
    throw;
  }
}

/// The rank whose failure a caught exception tells of, as ranks are numbered in the world; none
/// where it is the exception itself that went wrong.
inline std::optional<int> blamed_by(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommunicationError& exception) {
    return exception.rank();
  } catch (const RankFailure& failure) {
    return failure.rank();
  } catch (...) {
    return std::nullopt;
  }
}

/// The text of a caught exception, whatever its type.
inline std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

/// Collective calls that this thread has begun or refused so far, on whatever communicator: an
/// error that is raised while it stays the same is one that the other ranks do not know of.
int64_t collective_calls();
void count_collective_call();

/// IndexError "broadcast: rank 5 is out of range for 4 ranks".
void check_rank(std::string_view who, int64_t rank, int size);
/// The peer and the tag of a message: IndexError, ExecutionError unless the tag lies in [0, 65536).
void check_address(std::string_view who, int64_t peer, int64_t tag, int size);
/// Those, the length and the buffer of a message; it needs none where it is empty.
void check_message_of(std::string_view who, const void* data, int64_t bytes, int peer, int tag,
                      int size);
/// ExecutionError for a count of bytes or elements that is negative, or larger than memory.
void check_count(std::string_view who, int64_t count);
/// ExecutionError unless there is one block of non-negative offset and length for each rank.
void check_blocks(std::string_view who, std::span<const Block> blocks, int size);
/// ExecutionError where the rank has bytes to send or to receive in the call, and no buffer. Its
/// root, blocks and counts have been checked.
void check_buffers(const Collective& call, int rank);
/// ExecutionError unless there is one non-negative count for each rank, and their sum is in memory.
void check_counts(std::string_view who, std::span<const int64_t> counts, int size);
/// IndexError for a peer that is none of `size` ranks, ExecutionError where there is no tensor,
/// DeviceError for one that is not on the stream's device, DTypeError for several dtypes.
void check_patches(std::string_view who, std::span<const Patch> patches, int size, Stream stream);
/// ExecutionError for what ranks do not combine by, all but sum, prod, max and min; DTypeError for
/// the maximum or minimum of complex numbers, which have no order.
void check_reducible(std::string_view who, DType dtype, ReduceKind op);

}  // namespace cuop::dist
