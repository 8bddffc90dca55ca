// What becomes of the streams of a communicator's exchanges when it fails, and of the communicator
// when streams have waited in vain.
#include <optional>
#include <string>

#include "cuop/dist/comm/fabric.h"
#include "cuop/dist/comm/p2p_communicator.h"

namespace cuop::dist {

void P2pCommunicator::check_streams(const char* op) {
  fabric::Flags* const flags = fabric_ ? fabric_->flags() : nullptr;
  if (flags == nullptr || !has_fabric()) return;
  const std::optional<fabric::Abandonment> reason = flags->reason();
  if (!reason) return;
  flags->note_raised();
  watch_->give_up(op, reason->rank, reason->text, reason->is_gone);
}

void P2pCommunicator::release_streams() noexcept {
  if (!fabric_ || fabric_->flags() == nullptr) return;
  const std::string why = watch_->failure();
  const int blamed = watch_->blamed();
  fabric::Flags& flags = *fabric_->flags();
  flags.give_up(blamed >= 0 ? blamed : flags.own_number(), why);
}

void P2pCommunicator::abort_for(int failed, const std::string& reason) noexcept {
  if (!is_at_home()) return;
  watch_->abort(reason, failed);
  release_streams();
}

/// The ranks know of what has failed, in the communicators that were split from this one too.
void P2pCommunicator::forget_streams() {
  if (watch_->is_root()) {
    fabric::Flags::forget_all();
  } else if (fabric_ && fabric_->flags() != nullptr) {
    fabric_->flags()->forget();
  }
}

}  // namespace cuop::dist
