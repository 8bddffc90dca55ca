#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/error.h"

namespace cuop::backend::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(CudaDriver, IsThereOrSaysWhatIsMissing) {
  if (find_driver() != nullptr) {
    EXPECT_EQ(driver_absence(), "");
    EXPECT_GE(driver().version, 12000);
    return;
  }
  EXPECT_THAT(driver_absence(), HasSubstr("CUOP_DEVICE=cpu"));
  EXPECT_THAT([] { driver(); }, ThrowsMessage<DeviceError>(HasSubstr(driver_absence())));
}

TEST(CudaDriver, CheckPassesSuccessAndNamesTheOperation) {
  EXPECT_NO_THROW(check(Result::kSuccess, "nothing"));
  EXPECT_THAT([] { check(Result::kInvalidValue, "copy of ", 12, " bytes"); },
              ThrowsMessage<ExecutionError>(HasSubstr("copy of 12 bytes: CUDA")));
}

TEST(CudaDriver, ResultsBecomeTheErrorsOfTheirKind) {
  EXPECT_THROW(check(Result::kOutOfMemory, "x"), MemoryError);
  EXPECT_THROW(check(Result::kNoDevice, "x"), DeviceError);
  EXPECT_THROW(check(Result::kRequiresNewerDriver, "x"), DeviceError);
  EXPECT_THROW(check(Result::kNoBinaryForGpu, "x"), CompilationError);
  EXPECT_THROW(check(static_cast<Result>(12345), "x"), ExecutionError);
}

TEST(CudaDriver, ABrokenDeviceSaysHowToFindTheCause) {
  Operation("an_operation_of_this_test", Stream{{DeviceType::kCuda, 0}}).started();
  const Result broken[] = {Result::kEccUncorrectable,
                           Result::kNvlinkUncorrectable,
                           Result::kIllegalAddress,
                           Result::kLaunchTimeout,
                           Result::kAssert,
                           Result::kHardwareStackError,
                           Result{715},  // CUDA_ERROR_ILLEGAL_INSTRUCTION
                           Result{716},  // CUDA_ERROR_MISALIGNED_ADDRESS
                           Result{717},  // CUDA_ERROR_INVALID_ADDRESS_SPACE
                           Result{718},  // CUDA_ERROR_INVALID_PC
                           Result::kLaunchFailed};
  for (const Result result : broken) {
    EXPECT_THAT([&] { check(result, "softmax"); },
                ThrowsMessage<ExecutionError>(AllOf(HasSubstr("softmax: CUDA"),
                                                    HasSubstr("started last: an_operation_of"),
                                                    HasSubstr("CUOP_CUDA_BLOCKING=1"))))
        << static_cast<int>(result);
  }
}

}  // namespace
}  // namespace cuop::backend::cuda
