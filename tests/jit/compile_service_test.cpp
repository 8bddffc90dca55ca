#include "cuop/jit/compile_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/warm.h"
#include "tests/temporary_folder.h"

namespace cuop::jit {
namespace {

namespace fs = std::filesystem;

/// A cache of its own for each test; the process's settings come back afterwards.
class CompileServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Nvrtc::instance().is_available()) {
      GTEST_SKIP() << "needs NVRTC: " << Nvrtc::instance().reason();
    }
    CompileSettings settings = before_;
    settings.directory = root_;
    set_compile_settings(settings);
  }
  void TearDown() override { set_compile_settings(before_); }
  static CompileRequest request(int number) {
    return {
        cat("fill_", number),
        cat("extern \"C\" __global__ void cuop_kernel(int* x) { x[threadIdx.x] = ", number, "; }"),
        "sm_90a"};
  }
  static int64_t compilations() { return compile_statistics().compilations; }

  const CompileSettings before_ = compile_settings();
  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(CompileServiceTest, CompilesOnceAndThenReadsFromDisk) {
  const int64_t before = compilations();
  const CompiledKernel first = compile_kernel(request(1));
  const CompiledKernel second = compile_kernel(request(1));
  EXPECT_EQ(first.image, second.image);
  EXPECT_EQ(compilations(), before + 1);
  EXPECT_GE(compile_statistics().disk_hits, 1);
  ASSERT_EQ(kernel_disk_cache()->entries().size(), 1u);
  EXPECT_EQ(kernel_disk_cache()->entries()[0].name, "fill_1 sm_90a");
}

TEST_F(CompileServiceTest, WithoutCachingEveryRequestIsCompiled) {
  CompileSettings settings = compile_settings();
  settings.is_caching = false;
  set_compile_settings(settings);
  const int64_t before = compilations();
  compile_kernel(request(1));
  compile_kernel(request(1));
  EXPECT_EQ(compilations(), before + 2);
  EXPECT_TRUE(kernel_disk_cache()->entries().empty());
}

TEST_F(CompileServiceTest, TheBackgroundAnswersTheSame) {
  CompileSettings settings = compile_settings();
  settings.max_threads = 2;
  set_compile_settings(settings);
  std::vector<std::shared_future<CompiledKernel>> pending;
  for (int i = 0; i < 6; ++i) pending.push_back(compile_in_background(request(i)));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(pending[static_cast<size_t>(i)].get().image, compile_kernel(request(i)).image);
  }
  CompileRequest broken = request(7);
  broken.source = "no CUDA";
  EXPECT_THROW(compile_in_background(broken).get(), CompilationError);
}

TEST_F(CompileServiceTest, ThreadsAskingForOneKernelCompileItOnce) {
  const int64_t before = compilations();
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back([] { compile_kernel(request(3)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compilations(), before + 1);
}

TEST_F(CompileServiceTest, TheTimeoutIsKept) {
  CompileSettings settings = compile_settings();
  settings.timeout = 1e-6;
  set_compile_settings(settings);
  EXPECT_THROW(compile_kernel(request(9)), CompilationError);
}

TEST_F(CompileServiceTest, WarmsForAGpuThatIsNotHere) {
  const WarmUp wanted{"sm_90a", {"add", "sum"}, {DType::kFloat32}};
  EXPECT_EQ(warm_kernels(wanted), 3);
  EXPECT_EQ(kernel_disk_cache()->entries().size(), 3u);
  const int64_t before = compilations();
  EXPECT_EQ(warm_kernels(wanted), 3);
  EXPECT_EQ(compilations(), before);
  EXPECT_THROW(warm_kernels({"sm_90a", {"no_such_op"}}), ExecutionError);
}

TEST(CompileSettingsTest, RefusesWhatMakesNoSense) {
  const CompileSettings good = compile_settings();
  for (const auto& spoil : std::vector<void (*)(CompileSettings&)>{
           [](CompileSettings& s) { s.max_threads = 0; }, [](CompileSettings& s) { s.timeout = 0; },
           [](CompileSettings& s) { s.max_bytes = -1; }}) {
    CompileSettings bad = good;
    spoil(bad);
    EXPECT_THROW(set_compile_settings(bad), CompilationError);
  }
}

TEST(Architecture, HasTheExactName) {
  EXPECT_EQ(architecture_of(8, 0), "sm_80");
  EXPECT_EQ(architecture_of(9, 0), "sm_90a");
  if (!Nvrtc::instance().is_available()) GTEST_SKIP() << "needs NVRTC";
  EXPECT_EQ(architecture_of(10, 0), "sm_100a");
  EXPECT_THROW(architecture_of(3, 5), CompilationError);
}

}  // namespace
}  // namespace cuop::jit
