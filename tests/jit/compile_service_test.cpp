#include "cuop/jit/compile_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "cuop/backend/execution.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/deadline.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/warm.h"
#include "tests/error_of.h"
#include "tests/own_process.h"
#include "tests/sanitized.h"
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

TEST_F(CompileServiceTest, AnOwnDirectoryHoldsAllThatItsThreadUses) {
  compile_kernel(request(20));
  const test::TemporaryFolder own;
  const auto kept = [&] {
    return DiskCache(kernel_directory(own.path().string()), 1 << 20).entries().size();
  };
  const int64_t before = compilations();
  {
    const backend::ExecutionScope scope(
        backend::with_cache_place({CachePlace::Kind::kOwn, own.path().string()}));
    compile_kernel(request(20));
    EXPECT_EQ(compilations(), before) << "the shared cache has it";
    EXPECT_EQ(kept(), 1u);
    compile_in_background(request(21)).get();
    EXPECT_EQ(kept(), 2u);
  }
  EXPECT_EQ(compilations(), before + 1);
  EXPECT_EQ(kernel_disk_cache()->entries().size(), 1u);
  EXPECT_FALSE(find_compiled(request(21)));
  const backend::ExecutionScope scope(
      backend::with_cache_place({CachePlace::Kind::kOwn, own.path().string()}));
  EXPECT_TRUE(find_compiled(request(21)));
}

TEST_F(CompileServiceTest, NowhereIsReadAndNothingIsWritten) {
  compile_kernel(request(22));
  const int64_t before = compilations();
  const backend::ExecutionScope scope(backend::with_cache_place({CachePlace::Kind::kNowhere}));
  compile_kernel(request(22));
  EXPECT_EQ(compilations(), before);
  for (int i = 0; i < 2; ++i) compile_kernel(request(23));
  compile_in_background(request(24)).get();
  EXPECT_EQ(compilations(), before + 3);
  EXPECT_EQ(kernel_disk_cache()->entries().size(), 1u);
  std::thread([] { EXPECT_EQ(backend::execution_options().cache_place, CachePlace{}); }).join();
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

/// Takes a compiler long; its deadline ends it where the compiler can be stopped.
CompileRequest slow_request() {
  std::string source = "extern \"C\" __global__ void cuop_kernel(float* x) {\n";
  for (int i = 0; i < 1500; ++i) {
    source += cat("x[", i, "] = x[", i + 1, "] * x[", (i * 7) % 1500, "] + ", i, ".0f;\n");
  }
  return {"slow", source + "}", "sm_90a"};
}

TEST_F(CompileServiceTest, WaitingForATurnIsPartOfTheTimeout) {
  CompileSettings settings = compile_settings();
  // What tests before have left to the compiler ends first.
  while (compile_statistics().running > 0) std::this_thread::yield();
  settings.max_threads = 1;
  settings.timeout = 5.0;
  set_compile_settings(settings);
  std::thread slow([] {
    try {
      compile_kernel(slow_request());
    } catch (const CompilationError&) {
    }
  });
  while (compile_statistics().running == 0) std::this_thread::yield();
  settings.timeout = 0.01;
  set_compile_settings(settings);
  // A thread compiles, and only one may.
  EXPECT_THAT(test::error_of<CompilationError>([&] { compile_kernel(request(11)); }),
              ::testing::HasSubstr("fill_11 did not get its turn to be compiled "
                                   "within 0.01 s (compilation_timeout); 1 thread"));
  slow.join();
  settings.timeout = 60.0;
  set_compile_settings(settings);
  EXPECT_FALSE(compile_kernel(request(11)).image.empty());
}

/// Takes a compiler seconds, in a phase in which it does not ask whether it is to stop.
CompileRequest deaf_request() {
  std::string source =
      "constexpr unsigned f(unsigned n) {\n"
      "  unsigned s = 1;\n"
      "  for (unsigned i = 0; i < n; ++i) s = s * 1664525u + i;\n"
      "  return s;\n"
      "}\n"
      "constexpr unsigned kSlow = 0";
  for (int i = 0; i < 10; ++i) source += cat(" + f(", 500000 + i, ")");
  source += ";\nextern \"C\" __global__ void cuop_kernel(unsigned* x) { x[0] = kSlow; }";
  return {"deaf", source, "sm_90a"};
}

/// Runs the deaf compilation with little time; answers how long its caller waited, in seconds.
double seconds_until_given_up() {
  CompileSettings settings = compile_settings();
  settings.timeout = 0.2;
  set_compile_settings(settings);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THAT(test::error_of<CompilationError>([] { compile_kernel(deaf_request()); }),
              ::testing::AllOf(::testing::HasSubstr("deaf was not compiled within"),
                               ::testing::HasSubstr("s (compilation_timeout)")));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void wait_until_none_compiles() {
  while (compile_statistics().running > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST_F(CompileServiceTest, TheCallerGoesOnWhereTheCompilerCannotBeStopped) {
  // Half a second beyond the timeout is promised. Where others compute too the caller's thread may
  // get its turn later than that, but not every time.
  double shortest = seconds_until_given_up();
  EXPECT_EQ(compile_statistics().running, 1) << "it keeps its turn until it has ended";
  for (int attempt = 1; attempt < 5 && shortest > 0.7; ++attempt) {
    wait_until_none_compiles();
    shortest = std::min(shortest, seconds_until_given_up());
  }
  EXPECT_LE(shortest, 0.7);
  EXPECT_TRUE(kernel_disk_cache()->entries().empty());
  CompileSettings settings = compile_settings();
  settings.timeout = 60.0;
  set_compile_settings(settings);
  EXPECT_FALSE(compile_kernel(request(20)).image.empty()) << "others compile meanwhile";
  wait_until_none_compiles();
}

TEST_F(CompileServiceTest, TheThreadsOwnTimeIsKeptToo) {
  CompileSettings settings = compile_settings();
  settings.timeout = 600.0;
  set_compile_settings(settings);
  compile_kernel(request(30));
  const int64_t before = compilations();
  {
    const DeadlineScope no_time(0.0);
    EXPECT_FALSE(compile_kernel(request(30)).image.empty()) << "reading takes none of it";
    EXPECT_THROW(compile_kernel(request(31)), CompilationError);
    compile_in_background(request(32)).get();  // which is not this thread's work
    EXPECT_EQ(compilations(), before + 1);
  }
  {
    const DeadlineScope little(0.2);
    EXPECT_THAT(test::error_of<CompilationError>([] { compile_kernel(deaf_request()); }),
                ::testing::HasSubstr("deaf was not compiled within"));
  }
  compile_kernel(request(31));
  wait_until_none_compiles();
}

TEST_F(CompileServiceTest, DISABLED_EndsWhileTheCompilerCannotBeStopped) {
  seconds_until_given_up();
  EXPECT_EQ(compile_statistics().running, 1);
}

TEST_F(CompileServiceTest, TheProcessEndsCleanlyAfterACompilationWasLeft) {
  const std::string test = "CompileServiceTest.DISABLED_EndsWhileTheCompilerCannotBeStopped";
  EXPECT_EQ(test::run_in_process(test, "CUOP_CACHE_DIR=" + root_), 0);
}

/// Drivers take their time to end, and what was registered first, as this, ends last.
void end_slowly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  try {
    compile_kernel(slow_request());
  } catch (const CompilationError& error) {
    if (std::string(error.what()) == "jit: slow is not compiled: the process ends") return;
  }
  std::_Exit(3);
}

TEST(CompileServiceProcess, DISABLED_EndsWhileItCompiles) {
  std::atexit(end_slowly);
  CompileSettings settings = compile_settings();
  settings.max_threads = 1;
  set_compile_settings(settings);
  for (int i = 0; i < 3; ++i) compile_in_background(slow_request());
  while (compile_statistics().running == 0) std::this_thread::yield();
}

/// The compiler's own objects go before a thread that compiles does.
TEST_F(CompileServiceTest, AProcessMayEndWhileItCompiles) {
  const std::string setting = cat("CUOP_CACHE_DIR='", root_, "'");
  EXPECT_EQ(test::run_in_process("CompileServiceProcess.DISABLED_EndsWhileItCompiles", setting), 0);
}

TEST_F(CompileServiceTest, SourcesAndLogsAreKeptWhereAskedFor) {
  const auto files_of = [&](const char* ending) {
    int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(root_)) {
      count += entry.path().extension() == ending ? 1 : 0;
    }
    return count;
  };
  compile_kernel(request(1));
  EXPECT_EQ(files_of(".cu") + files_of(".log"), 0);
  CompileSettings settings = compile_settings();
  settings.keeps_texts = true;
  set_compile_settings(settings);
  compile_kernel(request(1));  // from disk
  EXPECT_EQ(files_of(".cu"), 1);
  compile_kernel(request(2));
  CompileRequest broken = request(3);
  broken.source = "no CUDA";
  EXPECT_THROW(compile_kernel(broken), CompilationError);
  EXPECT_EQ(files_of(".cu"), 3);
  EXPECT_EQ(files_of(".log"), 2);
  EXPECT_EQ(files_of(".kernel"), 2);
  EXPECT_EQ(kernel_disk_cache()->clear(), 2);
  EXPECT_EQ(files_of(".cu") + files_of(".log") + files_of(".kernel"), 0);
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

TEST_F(CompileServiceTest, AChildCompilesThoughThreadsOfItsParentDid) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  compile_kernel(request(30));
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) find_compiled(request(30));
    });
  }
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(test::ends_in_fork([] {
      if (!find_compiled(request(30)) || compile_statistics().running != 0) _exit(1);
    })) << i;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CompileServiceTest, AChildHasTurnsAndThreadsOfItsOwn) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  CompileSettings settings = compile_settings();
  settings.max_threads = 1;
  set_compile_settings(settings);
  const auto first = compile_in_background(request(31));
  EXPECT_TRUE(test::ends_in_fork([] {
    if (compile_statistics().running != 0) _exit(1);
    compile_in_background(request(32));  // NVRTC may be in the state of the parent's thread
  }));
  first.get();
  EXPECT_EQ(compile_statistics().running, 0);
}

TEST_F(CompileServiceTest, ArchitecturesWithoutBinariesAreRefused) {
  check_architecture("fill", "sm_90a");
  for (const char* arch : {"compute_90", "sm_1", "", "sm_90a;", "90"}) {
    EXPECT_THAT([&] { check_architecture("fill", arch); },
                ThrowsMessage<CompilationError>(
                    AllOf(HasSubstr(cat("fill: arch is '", arch, "'")), HasSubstr("sm_90"))))
        << arch;
  }
  CompileRequest virtual_one = request(33);
  virtual_one.arch = "compute_90";
  EXPECT_THAT([&] { compile_kernel(virtual_one); },
              ThrowsMessage<CompilationError>(HasSubstr("no binary for compute_90")));
  EXPECT_FALSE(find_compiled(virtual_one));
}

}  // namespace
}  // namespace cuop::jit
