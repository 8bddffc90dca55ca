// What ranks tell each other about GPU memory that others map; sent as it stands here.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/descriptor_channel.h"

namespace cuop::dist::fabric {

/// A short text; a longer one is cut.
struct Text {
  std::array<char, 160> letters = {};

  Text() = default;
  explicit Text(const std::string& text) {
    std::snprintf(letters.data(), letters.size(), "%s", text.c_str());
  }
  /// Also of letters without an end.
  std::string str() const {
    const std::string all(letters.data(), letters.size());
    return all.substr(0, all.find('\0'));
  }
};

/// The first message of a rank to another: where its memory is to be had.
struct Offer {
  int64_t is_able = 0;
  Text reason;  ///< why not
  Text gpu;     ///< "cuda:0, GPU-5f1c..."; "" for a rank without one
  int64_t memory_bytes = 0;
  ChannelPlace place;
};

/// Sent in datagrams: a piece, in the order of the files that come along, or that one is gone.
struct PieceNote {
  enum class Kind : int64_t { kMapped, kGone };
  Kind kind = Kind::kMapped;
  uint64_t number = 0;
  uint64_t range = 0;
  int64_t range_bytes = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// A tensor in memory that was announced.
struct TensorNote {
  uint64_t range = 0;
  int64_t offset = 0;  ///< bytes from the range's beginning to element (0, 0, ...)
  int32_t dtype = 0;
  int32_t ndim = 0;
  std::array<int64_t, kMaxDims> shape = {};
  std::array<int64_t, kMaxDims> strides = {};  ///< in elements
};

/// Its dtype, shape and strides; of no place yet.
TensorNote note_of(const Tensor& tensor);
/// "(4, 3) of float32", also of numbers that make no sense.
std::string text_of(const TensorNote& note);
/// CommunicationError "expects (4, 3) of float32, and was sent ..." unless it is of this dtype and
/// shape.
void check_fits(const TensorNote& note, DType dtype, const Shape& shape);

/// How the elements of one call travel from a rank to another.
enum class Way : int64_t {
  kPulled,   ///< the receiver reads them in their sender's memory
  kOrdered,  ///< the same, and streams wait for each other instead of the hosts
  kLinked,   ///< from GPU to GPU by NCCL
  kSent,     ///< as bytes behind this message
};

/// Before the TensorNotes of a call.
struct ExchangeNote {
  Way way = Way::kPulled;
  int64_t pieces =
      0;  ///< PieceNotes that the sender has sent to this receiver so far, these included
  uint32_t number = 0;  ///< of kOrdered: by which the sender's stream says that they are there
};

/// A tensor that the receiver is to read in its sender's memory.
struct MapNote {
  int64_t is_there = 0;  ///< 0: there is none, or it cannot
  int64_t pieces = 0;    ///< as an ExchangeNote's
  TensorNote tensor;
};

/// The trial by which it is found out whether a rank can read another's memory.
struct Trial {
  int64_t is_on_its_way = 0;
  Text reason;  ///< why not
  int64_t pieces = 0;
  TensorNote tensor;
  ChannelToken content = {};  ///< which stands in the tensor
};

/// What became of it.
struct Verdict {
  int64_t is_read = 0;      ///< by the sender of this message
  int64_t readable = 0;     ///< ranks whose memory the sender reads
  int64_t unread_gpus = 0;  ///< ranks with GPUs whose memory it does not read, having one itself
};

template <class... Messages>
constexpr bool kAreBytes = (std::is_trivially_copyable_v<Messages> && ...);
static_assert(kAreBytes<Offer, PieceNote, TensorNote, ExchangeNote, MapNote, Trial, Verdict>);

}  // namespace cuop::dist::fabric
