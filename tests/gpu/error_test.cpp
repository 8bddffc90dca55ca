// Errors of a GPU arrive late and end its use by the process, so each is caused in a process of its
// own.
#include "cuop/core/error.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/memory/current.h"
#include "tests/gpu/gpu_test.h"

namespace cuop::backend::cuda {
namespace {

constexpr char kFailingKernel[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry fails() { trap; }
)";

/// Starts a kernel that fails under the name of an operation.
void start_failing(const char* operation) {
  const ContextScope scope(kGpu);
  const Driver& d = driver();
  ModuleHandle module = nullptr;
  FunctionHandle function = nullptr;
  check(d.module_load_data_ex(&module, kFailingKernel, 0, nullptr, nullptr), "loading");
  check(d.module_get_function(&function, module, "fails"), "finding");
  Operation started(operation, {kGpu});
  check(d.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), operation);
  started.started();
}

/// Ends the process with the error's text on stderr, with 3 when there was none.
template <class Work>
[[noreturn]] void exit_with_error_of(Work work) {
  try {
    work();
  } catch (const ExecutionError& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(0);
  }
  std::_Exit(3);
}

class GpuErrorDeathTest : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(GpuErrorDeathTest, ALateErrorNamesWhatWasStartedLast) {
  EXPECT_EXIT(exit_with_error_of([] {
                start_failing("softmax");
                runtime(kGpu).synchronize();
              }),
              testing::ExitedWithCode(0),
              "synchronize: waiting for cuda:0: CUDA_ERROR_.*started last: softmax.*"
              "CUOP_CUDA_BLOCKING=1");
}

TEST_F(GpuErrorDeathTest, InBlockingModeTheOperationItselfFails) {
  setenv("CUOP_CUDA_BLOCKING", "1", 1);
  EXPECT_EXIT(exit_with_error_of([] { start_failing("softmax"); }), testing::ExitedWithCode(0),
              "softmax: CUDA_ERROR_");
  unsetenv("CUOP_CUDA_BLOCKING");
}

TEST_F(GpuErrorDeathTest, MemoryIsLetGoQuietlyAfterAFailure) {
  EXPECT_EXIT(exit_with_error_of([] {
                const auto kept = memory::allocate_storage(1 << 20, kGpu);
                start_failing("softmax");
                runtime(kGpu).synchronize();
              }),
              testing::ExitedWithCode(0), "CUDA_ERROR_");
}

}  // namespace
}  // namespace cuop::backend::cuda
