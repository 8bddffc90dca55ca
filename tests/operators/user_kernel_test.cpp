// Kernels of the user's own as far as no GPU is needed: sources, options, arguments, compilation.
#include "cuop/operators/tuned/user_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/operators/tuned/user_kernel_check_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/current_device_scope.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kScale = R"(
extern "C" __global__ void scale(const T* x, T* y, T factor, int64_t n) {
  int64_t i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
})";

UserKernelOptions two_configs() {
  return {.configs = {{{{"BLOCK", "128"}, {"T", "float"}}}, {{{"BLOCK", "256"}, {"T", "float"}}}},
          .key = {"n"}};
}

TEST(UserKernel, KnowsItsParametersAndConfigurations) {
  const UserKernel kernel(kScale, "scale", two_configs());
  ASSERT_EQ(kernel.parameters().size(), 4U);
  EXPECT_EQ(kernel.parameters()[1].name, "y");
  EXPECT_TRUE(kernel.parameters()[1].is_written);
  EXPECT_EQ(kernel.parameters()[2].dtype, DType::kFloat32);
  EXPECT_EQ(kernel.configs()[1].text(), "BLOCK=256 T=float");
  EXPECT_EQ(kernel.last_search(), "");
  EXPECT_EQ(UserKernel("extern \"C\" __global__ void f() {}", "f").configs().size(), 1U);
}

TEST(UserKernel, RefusesWhatMakesNoSense) {
  const auto expect = [](UserKernelOptions options, const std::string& message) {
    EXPECT_THAT([&] { UserKernel(kScale, "scale", options); },
                ThrowsMessage<CompilationError>(HasSubstr(message)));
  };
  expect({}, "parameter x has the type 'T'");
  UserKernelOptions options = two_configs();
  options.key = {"m"};
  expect(options, "the key names 'm', which is no parameter; they are x, y, factor, n");
  options = two_configs();
  options.compiler_options = {"-I/usr/include"};
  expect(options, "reads files that the cache of kernels does not know");
  options.compiler_options = {"O3"};
  expect(options, "'O3' is no option");
  options = two_configs();
  options.configs[1].macros["2x"] = "1";
  expect(options, "defines '2x'");
  options = two_configs();
  options.configs[1].macros["BLOCK"] = "1\n#error";
  expect(options, "BLOCK in a configuration has control characters");
}

TEST(UserKernel, ArgumentsAreCheckedBeforeAnyWork) {
  UserKernel kernel(kScale, "scale", two_configs());
  const UserKernel::LaunchFor never = [](size_t) -> KernelLaunch {
    ADD_FAILURE() << "no launch should be asked for";
    return {};
  };
  const Tensor x = ones({4}), wrong = ones({4}, DType::kFloat64);
  EXPECT_THAT(
      [&] {
        kernel.launch({x, x, 2.0}, never);
      },
      ThrowsMessage<ExecutionError>(
          HasSubstr("kernel scale: takes 4 arguments (x, y, factor, n), given 3")));
  EXPECT_THAT(
      [&] {
        kernel.launch({wrong, x, 2.0, 4}, never);
      },
      ThrowsMessage<DTypeError>(
          HasSubstr("x is float*, which takes float32, given a tensor of float64")));
  EXPECT_THAT(
      [&] {
        kernel.launch({1.0, x, 2.0, 4}, never);
      },
      ThrowsMessage<DTypeError>(HasSubstr("x is float*, a tensor of a GPU")));
  EXPECT_THAT(
      [&] {
        kernel.launch({x, x, 2.0, 4}, never);
      },
      ThrowsMessage<DeviceError>(HasSubstr("x is on cpu; kernels run on a GPU")));
  UserKernel count("extern \"C\" __global__ void count(int n, bool b) {}", "count");
  EXPECT_THAT(
      [&] {
        count.launch({1.5, true}, never);
      },
      ThrowsMessage<DTypeError>(HasSubstr("n is int, given the number 1.5")));
  EXPECT_THAT(
      [&] {
        count.launch({int64_t{1} << 31, true}, never);
      },
      ThrowsMessage<OverflowError>(HasSubstr("count: n: the number 2147483648")));
  EXPECT_THAT(
      [&] {
        count.launch({x, true}, never);
      },
      ThrowsMessage<DTypeError>(HasSubstr("n is int, a number; given a tensor")));
  const test::CurrentDeviceScope scope(kCpu);  // a GPU would run it
  EXPECT_THAT(
      [&] {
        count.launch({1, true}, never);
      },
      ThrowsMessage<DeviceError>(HasSubstr("no argument is a tensor")));
}

TEST(UserKernel, NumbersArePackedAsTheKernelReadsThem) {
  const auto parameters = jit::parse_signature(
      "extern \"C\" __global__ void f(signed char a, uint64_t b, float c, double d, Half e, "
      "bool f, float2 g, void* h) {}",
      "f", {});
  const Tensor h = ones({3}, DType::kInt16);
  const std::vector<KernelArgument> arguments{-3,   Scalar(uint64_t{1} << 63),   0.1, 0.1, 1.5,
                                              true, std::complex<double>(1, -2), h};
  PackedArguments packed(arguments, parameters);
  const auto values = packed.addresses();
  EXPECT_EQ(*static_cast<int8_t*>(values[0]), -3);
  EXPECT_EQ(*static_cast<uint64_t*>(values[1]), uint64_t{1} << 63);
  EXPECT_EQ(*static_cast<float*>(values[2]), 0.1F);
  EXPECT_EQ(*static_cast<double*>(values[3]), 0.1);
  EXPECT_EQ(static_cast<float>(*static_cast<Half*>(values[4])), 1.5F);
  EXPECT_TRUE(*static_cast<bool*>(values[5]));
  EXPECT_EQ(*static_cast<std::complex<float>*>(values[6]), std::complex<float>(1, -2));
  EXPECT_EQ(*static_cast<void**>(values[7]), h.data());
}

TEST(UserKernel, CompilesEveryConfigurationWithoutAGpu) {
  if (!jit::Nvrtc::instance().is_available()) GTEST_SKIP() << jit::Nvrtc::instance().reason();
  UserKernelOptions options = two_configs();
  options.compiler_options = {"--use_fast_math", "--fmad=true"};
  const UserKernel kernel(kScale, "scale", options);
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"}) {
    const auto first = kernel.compile(0, arch), second = kernel.compile(1, arch);
    EXPECT_THAT(first.image, HasSubstr("scale"));
    EXPECT_NE(first.image, second.image);
  }
  const UserKernel broken("extern \"C\" __global__ void f(int n) {\n  nothing(n);\n}", "f");
  EXPECT_THAT([&] { broken.compile(0, "sm_90a"); },
              ThrowsMessage<CompilationError>(HasSubstr("f.cu(2)")));  // the user's own line
}

}  // namespace
}  // namespace cuop
