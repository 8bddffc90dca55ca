// What every device's runtime and memory resource must do. Registered once a device; a test of a
// device that is absent is skipped.
#pragma once

#include <string>

#include "cuop/core/device.h"

namespace cuop::backend::conformance {

/// Registers the cases as GoogleTest tests "Runtime_<kind>.<case>".
void register_runtime_suite(const std::string& kind, Device device);

}  // namespace cuop::backend::conformance
