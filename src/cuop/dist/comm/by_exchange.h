// Collective calls as exchanges of tensors, for ranks that read each other's GPU memory: whoever
// needs something reads it where it lies.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// The bytes of a call that all ranks know alike. No bytes of an all_to_all, of which a rank knows
/// its own part alone.
int64_t agreed_bytes(const Collective& call);

/// Communicator::exchange on the stream of the call.
using ExchangeTensors =
    std::function<void(std::span<const Patch> sends, std::span<const Patch> receives)>;

/// Makes the call for rank `rank` of `size`, whatever device its buffers lie on. All ranks make the
/// same number of exchanges. Not for barriers and exchanges.
void run_by_exchange(const Collective& call, int rank, int size, const ExchangeTensors& exchange);

}  // namespace cuop::dist
