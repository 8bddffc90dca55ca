// What is written to a connection: frames, each a header and the bytes that it announces. Nothing
// in a header is believed before check_header has seen it.
//
// A message of up to kEagerBytes is one frame. A longer one is offered; when the receiver has a
// buffer for it, it grants the offer, and the bytes come in pieces straight into that buffer. So
// what nobody has asked for yet needs little memory, and short notices pass between the pieces.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "cuop/dist/comm/hub.h"

namespace cuop::dist {

enum class FrameKind : int32_t { kNotice, kEager, kOffer, kGrant, kPiece, kCredit };

/// As it is on the wire, in the order of bytes of the hosts, which must be the same.
struct FrameHeader {
  uint32_t mark;
  FrameKind kind;
  int64_t bytes;  ///< of the message, of the piece, of the notice's text; of the credit
  uint64_t context;
  int64_t epoch;
  uint64_t id;     ///< of an offer and all that follows from it
  int32_t tag;     ///< of a notice its ControlKind
  int32_t blamed;  ///< as a Control (transport.h) has it

  MessageKey key() const { return {context, epoch, tag}; }
};
static_assert(sizeof(FrameHeader) == 48 && std::has_unique_object_representations_v<FrameHeader>);

inline constexpr uint32_t kFrameMark = 0x704f7563;
inline constexpr int64_t kEagerBytes = 256 * 1024;
inline constexpr int64_t kPieceBytes = 1024 * 1024;
/// Short messages that nobody has asked for yet: so many bytes of each rank are kept, and counted
/// with so much beside each; what goes beyond is offered only.
inline constexpr int64_t kEagerWindow = 16 * 1024 * 1024;
inline constexpr int64_t kEagerExtra = 256;
inline constexpr size_t kMostOffers = 1 << 16;   ///< of a rank, not yet asked for
inline constexpr size_t kMostNotices = 1 << 16;  ///< not yet read

/// Bytes that come after the header.
inline int64_t payload_of(const FrameHeader& header) {
  const bool has_payload = header.kind == FrameKind::kNotice || header.kind == FrameKind::kEager ||
                           header.kind == FrameKind::kPiece;
  return has_payload ? header.bytes : 0;
}
/// What a short message takes from the window.
inline int64_t eager_cost(int64_t bytes) { return bytes + kEagerExtra; }

/// Why this cannot be a frame; "" when it can.
std::string check_header(const FrameHeader& header);

}  // namespace cuop::dist
