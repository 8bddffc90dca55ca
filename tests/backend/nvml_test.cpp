#include "cuop/backend/cuda/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "tests/error_of.h"

namespace cuop::backend::cuda {
namespace {

using ::testing::HasSubstr;

TEST(Nvml, TellsTheDriverAndTheOtherProcesses) {
  const DynLib library("NVML", {CUOP_FAKE_NVML});
  const Nvml nvml(library);
  ASSERT_EQ(nvml.absence(), "");
  EXPECT_EQ(nvml.driver_version(), "580.95.05");
  const auto processes = nvml.other_processes("GPU-1");
  ASSERT_EQ(processes.size(), 2u) << "this process is left out";
  EXPECT_EQ(processes[0].pid, 4'000'000'001);
  EXPECT_EQ(processes[0].bytes, int64_t{2} << 30);
  EXPECT_EQ(processes[1].bytes, -1);
  EXPECT_THAT(to_text(processes), HasSubstr("pid 4000000001 holds 2"));
  EXPECT_THAT(to_text(processes), HasSubstr(", pid 4000000002 holds an unknown amount"));
}

TEST(Nvml, SaysWhatItCannotTell) {
  const DynLib library("NVML", {CUOP_FAKE_NVML});
  EXPECT_EQ(test::error_of<ExecutionError>([&] { Nvml(library).other_processes("GPU-2"); }),
            "NVML: GPU-2: Not Found");
}

TEST(Nvml, AbsentIsAStateWithAReason) {
  const Nvml none(DynLib("NVML", {"libcuop-no-such-library.so"}));
  EXPECT_THAT(none.absence(), HasSubstr("libcuop-no-such-library"));
  EXPECT_EQ(none.driver_version(), "");
  EXPECT_THROW(none.other_processes("GPU-1"), ExecutionError);
  const Nvml other(DynLib("NVML", {"libc.so.6"}));
  EXPECT_THAT(other.absence(), HasSubstr("libc.so.6 has no nvmlInit_v2"));
}

TEST(Nvml, ProcessesAreNamedWhereTheyCanBeSeen) {
  EXPECT_EQ(to_text(std::vector<GpuProcess>{}), "none");
  EXPECT_EQ(to_text({{17, int64_t{3} << 30, "python"}}), "python (pid 17) holds 3 GiB");
}

}  // namespace
}  // namespace cuop::backend::cuda
