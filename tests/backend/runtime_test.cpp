#include "cuop/backend/runtime.h"

#include <gtest/gtest.h>

#include "tests/conformance/runtime_suite.h"

namespace cuop::backend {
namespace {

[[maybe_unused]] const bool kIsRegistered = [] {
  conformance::register_runtime_suite("cpu", kCpu);
  return true;
}();

}  // namespace
}  // namespace cuop::backend
