#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"

namespace cuop::backend {
namespace {

using ::testing::HasSubstr;

TEST(CudaLibraries, EachIsFoundOrHasAReason) {
  EXPECT_EQ(cuda_libraries().size(), 9u);
  for (const LibraryStatus& row : cuda_libraries()) {
    EXPECT_NE(row.path.empty(), row.reason.empty()) << row.title;
  }
}

TEST(CudaLibraries, AbsenceSaysHowToGoOn) {
  if (device_count(DeviceType::kCuda) > 0) GTEST_SKIP() << "there is a usable GPU";
  EXPECT_THAT(cuda_absence_reason(), HasSubstr("CUOP_DEVICE=cpu"));
  try {
    runtime(Device{DeviceType::kCuda, 0});
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("device: cuda:0 is not available: "));
  }
  EXPECT_THROW(set_current_device(Device{DeviceType::kCuda, 0}), DeviceError);
  EXPECT_EQ(current_device(), kCpu);
  EXPECT_EQ(device_count(DeviceType::kCuda), 0);
}

}  // namespace
}  // namespace cuop::backend
