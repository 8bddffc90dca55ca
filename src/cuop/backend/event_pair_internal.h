// What the events of every device have in common where two of them are compared.
#pragma once

#include "cuop/backend/event.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend {

/// `since` as an event of the own kind; DeviceError when it marks another device, whose clock is
/// another.
template <class Own>
const Own& same_device(const Own& own, const Event& since) {
  const auto* other = dynamic_cast<const Own*>(&since);
  if (other != nullptr && other->device() == own.device()) return *other;
  throw DeviceError(cat("event: one of ", own.device(), " cannot be measured from one of ",
                        other != nullptr ? cat(other->device()) : "another kind of device",
                        "; give two events of the same device"));
}

}  // namespace cuop::backend
