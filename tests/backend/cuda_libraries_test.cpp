#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>

#include <filesystem>

#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "tests/error_of.h"

namespace cuop::backend {
namespace {

using ::testing::HasSubstr;

TEST(CudaLibraries, EachIsFoundOrHasAReason) {
  EXPECT_EQ(cuda_libraries().size(), 9u);
  for (const LibraryStatus& row : cuda_libraries()) {
    EXPECT_NE(row.path.empty(), row.reason.empty()) << row.title;
  }
}

TEST(CudaLibraries, VersionsAreToldInWords) {
  EXPECT_EQ(version_text(CudaLibrary::kDriver, 13000), "13.0");
  EXPECT_EQ(version_text(CudaLibrary::kDriver, 12040), "12.4");
  EXPECT_EQ(version_text(CudaLibrary::kCublasLt, 130100), "13.1.0");
  EXPECT_EQ(version_text(CudaLibrary::kCudnn, 91002), "9.10.2");
  EXPECT_EQ(version_text(CudaLibrary::kCudnn, 8907), "8.9.7");
  EXPECT_EQ(version_text(CudaLibrary::kNccl, 22703), "2.27.3");
  EXPECT_EQ(version_text(CudaLibrary::kCufft, 11300), "11.3.0");
}

TEST(CudaLibraries, NvrtcsBuiltInFunctionsAreThoseBesideIt) {
  const DynLib& nvrtc = cuda_library(CudaLibrary::kNvrtc);
  if (!nvrtc.is_loaded()) GTEST_SKIP() << "needs NVRTC";
  const std::string name = cat("libnvrtc-builtins.so.", cuda_library_version(CudaLibrary::kNvrtc));
  void* const builtins = dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(builtins, nullptr) << "NVRTC would look where the system's loader does";
  link_map* map = nullptr;
  ASSERT_EQ(dlinfo(builtins, RTLD_DI_LINKMAP, &map), 0);
  const auto folder = [](const std::string& path) {
    return std::filesystem::path(path).parent_path();
  };
  EXPECT_EQ(folder(map->l_name), folder(nvrtc.real_path("nvrtcVersion")));
}

TEST(CudaLibraries, AbsenceSaysHowToGoOn) {
  if (device_count(DeviceType::kCuda) > 0) GTEST_SKIP() << "there is a usable GPU";
  EXPECT_THAT(cuda_absence_reason(), HasSubstr("CUOP_DEVICE=cpu"));
  EXPECT_THAT(test::error_of<DeviceError>([] {
                runtime(Device{DeviceType::kCuda, 0});
              }),
              HasSubstr("device: cuda:0 is not available: "));
  EXPECT_THROW(set_current_device(Device{DeviceType::kCuda, 0}), DeviceError);
  EXPECT_EQ(current_device(), kCpu);
  EXPECT_EQ(device_count(DeviceType::kCuda), 0);
  EXPECT_EQ(default_device().device, kCpu);
  EXPECT_FALSE(cuda::is_driver_broken());
  if (env().device.value == "auto") {
    EXPECT_THAT(default_device().reason, HasSubstr("no GPU can be used: "));
  }
}

}  // namespace
}  // namespace cuop::backend
