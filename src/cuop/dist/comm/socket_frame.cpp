#include "cuop/dist/comm/socket_frame.h"

#include "cuop/core/text.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

namespace {

/// The least and the most that `bytes` may be.
struct Limits {
  int64_t least, most;
};

Limits limits_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kEager:
      return {0, kEagerBytes};
    case FrameKind::kPiece:
      return {1, kPieceBytes};
    case FrameKind::kOffer:
    case FrameKind::kCredit:
      return {0, INT64_MAX};  // nothing comes with it, and nothing is allocated for it
    case FrameKind::kGrant:
      return {0, 0};
    case FrameKind::kNotice:
      break;
  }
  return {0, static_cast<int64_t>(kControlText)};
}

}  // namespace

std::string check_header(const FrameHeader& header) {
  if (header.mark != kFrameMark) return "what came is no frame";
  const auto kind = static_cast<int32_t>(header.kind);
  if (kind < 0 || kind > static_cast<int32_t>(FrameKind::kCredit)) {
    return cat("a frame is of the unknown kind ", kind);
  }
  const auto [least, most] = limits_of(header.kind);
  if (header.bytes < least || header.bytes > most) {
    return cat("a frame of kind ", kind, " has ", header.bytes, " bytes, ", least, " to ", most,
               " are allowed");
  }
  if (header.tag < 0 || header.tag >= kTagLimit) return cat("a frame has the tag ", header.tag);
  if (header.blamed < -1) return cat("a notice blames rank ", header.blamed);
  return "";
}

}  // namespace cuop::dist
