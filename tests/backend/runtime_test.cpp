#include "cuop/backend/runtime.h"

#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "tests/conformance/runtime_suite.h"

namespace cuop::backend {
namespace {

[[maybe_unused]] const bool kIsRegistered = [] {
  conformance::register_runtime_suite("cpu", kCpu);
  return true;
}();

TEST(CpuRuntime, HasNoPropertiesAndNoLockedMemory) {
  EXPECT_THROW(runtime(kCpu).properties(), NotImplementedError);
  EXPECT_THROW(locked_memory(kCpu), DeviceError);
}

}  // namespace
}  // namespace cuop::backend
