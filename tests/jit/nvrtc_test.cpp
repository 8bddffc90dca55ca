#include "cuop/jit/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <set>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/kernel_text.h"
#include "tests/error_of.h"

namespace cuop::jit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(float* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
)";

/// Skips, loudly, where there is no compiler; it needs no GPU.
class NvrtcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!nvrtc_.is_available()) GTEST_SKIP() << "needs NVRTC: " << nvrtc_.reason();
  }
  const Nvrtc& nvrtc_ = Nvrtc::instance();
};

TEST_F(NvrtcTest, CompilesForTheExactArchitecture) {
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    const CompiledKernel compiled = nvrtc_.compile({"scale", kScale, arch}, 60.0);
    EXPECT_EQ(compiled.image.substr(0, 4),
              "\x7f"
              "ELF")
        << arch;
    EXPECT_THAT(compiled.image, HasSubstr("scale")) << arch;
    EXPECT_GT(compiled.made_in_ms, 0.0);
  }
  EXPECT_GE(nvrtc_.major(), 12);
  EXPECT_THAT(nvrtc_.architectures(), ::testing::Contains(90));
  EXPECT_THAT(nvrtc_.path(), HasSubstr("nvrtc"));
}

/// Whose signal it is while `work` runs: true while nobody takes it from `handler`.
bool is_kept(int signal, void (*handler)(int), const std::function<void()>& work) {
  struct sigaction mine {};
  struct sigaction before {};
  mine.sa_handler = handler;
  sigaction(signal, &mine, &before);
  std::atomic<bool> is_over = false, is_taken = false;
  std::thread watch([&] {
    while (!is_over) {
      struct sigaction now {};
      sigaction(signal, nullptr, &now);
      if (now.sa_handler != handler) is_taken = true;
    }
  });
  work();
  is_over = true;
  watch.join();
  sigaction(signal, &before, nullptr);
  return !is_taken;
}

// The first compilation of a process is the one that matters: ctest gives this test its own.
TEST_F(NvrtcTest, TheProcessKeepsItsSignals) {
  const auto handler = [](int) {};
  EXPECT_TRUE(is_kept(SIGINT, handler, [&] {
    EXPECT_TRUE(is_kept(SIGTERM, handler, [&] {
      nvrtc_.compile({"scale", kScale, "sm_90a"}, 60.0);
    }));
  }));
}

TEST_F(NvrtcTest, TheSameRequestGivesTheSameBytes) {
  const CompileRequest request{"scale", kScale, "sm_90a"};
  EXPECT_EQ(nvrtc_.compile(request, 60.0).image, nvrtc_.compile(request, 60.0).image);
}

TEST_F(NvrtcTest, RefusesWithTheCompilersLog) {
  const std::string source = "extern \"C\" __global__ void f() { no_such_function(); }";
  EXPECT_THAT(test::error_of<CompilationError>([&] {
                nvrtc_.compile({"broken", source, "sm_90a"}, 60.0);
              }),
              AllOf(HasSubstr("jit: broken does not compile for sm_90a"),
                    HasSubstr("no_such_function"), HasSubstr("broken.cu(1)")));
  EXPECT_THROW(nvrtc_.compile({"scale", kScale, "sm_1"}, 60.0), CompilationError);
  EXPECT_THROW(nvrtc_.compile({"scale", "#include \"cuop/core/tensor.h\"\n", "sm_90a"}, 60.0),
               CompilationError);
}

TEST_F(NvrtcTest, GivesUpAtTheTimeout) {
  EXPECT_THAT(test::error_of<CompilationError>([&] {
                nvrtc_.compile({"scale", kScale, "sm_90a"}, 0.0);
              }),
              HasSubstr("compilation_timeout"));
  EXPECT_NO_THROW(nvrtc_.compile({"scale", kScale, "sm_90a"}, 60.0));
}

TEST_F(NvrtcTest, OptionsReachTheCompiler) {
  CompileRequest request{"scale", kScale, "sm_90a"};
  request.options = {"--ptxas-options=-v"};
  // Every time: nothing comes from a cache of the compiler's own, which where a driver is it has.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(nvrtc_.compile(request, 60.0).log, HasSubstr("registers"));
  }
  request.options = {"--no-such-option"};
  EXPECT_THROW(nvrtc_.compile(request, 60.0), CompilationError);
}

TEST_F(NvrtcTest, KnowsTheCudaRuntimesTypesWhereTheyAreAskedFor) {
  CompileRequest request{
      "texel",
      "extern \"C\" __global__ void texel(cudaTextureObject_t image, float* out) {\n"
      "  out[threadIdx.x] = tex1Dfetch<float>(image, threadIdx.x);\n}\n",
      "sm_90a"};
  request.has_runtime_types = true;
  EXPECT_FALSE(nvrtc_.compile(request, 60.0).image.empty());
}

TEST(KernelText, IncludesAreFollowed) {
  std::set<std::string> names;
  for (const KernelText* text : included_texts("#include \"cuop/jit/kernels/op_list.h\"\n")) {
    EXPECT_TRUE(names.insert(text->name).second) << text->name << " twice";
    EXPECT_STRNE(text->text, "");
  }
  EXPECT_TRUE(names.count("cuop/jit/kernels/arithmetic.h"));
  EXPECT_TRUE(names.count("cuop/jit/kernels/prelude.h"));
  EXPECT_TRUE(names.count("cuop/jit/op_kind.h"));
  EXPECT_FALSE(names.count("cuop/jit/kernels/philox.h"));
  EXPECT_TRUE(included_texts(kScale).empty());
  EXPECT_THROW(included_texts("#include \"cuop/core/tensor.h\"\n"), CompilationError);
}

TEST(CompileKey, ChangesWithEverythingThatChangesTheBinary) {
  const CompileRequest base{"scale", kScale, "sm_90a"};
  std::set<std::string> keys{compile_key(base, "nvrtc 13.0 1")};
  CompileRequest changed = base;
  changed.arch = "sm_80";
  keys.insert(compile_key(changed, "nvrtc 13.0 1"));
  changed = base;
  changed.options = {"--maxrregcount=32"};
  keys.insert(compile_key(changed, "nvrtc 13.0 1"));
  changed.options = {"--maxrregcount=", "32"};
  keys.insert(compile_key(changed, "nvrtc 13.0 1"));
  changed = base;
  changed.source += " ";
  keys.insert(compile_key(changed, "nvrtc 13.0 1"));
  changed.source = cat("#include \"cuop/jit/kernels/prelude.h\"\n", kScale);
  keys.insert(compile_key(changed, "nvrtc 13.0 1"));
  changed = base;
  changed.has_runtime_types = true;
  keys.insert(compile_key(changed, "nvrtc 13.0 1"));
  keys.insert(compile_key(base, "nvrtc 13.1 1"));
  EXPECT_EQ(keys.size(), 8u);
  changed = base;
  changed.name = "another name";
  EXPECT_TRUE(keys.count(compile_key(changed, "nvrtc 13.0 1")));
}

}  // namespace
}  // namespace cuop::jit
