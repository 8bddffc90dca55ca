#include "cuop/jit/kernel_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/error.h"

namespace cuop::jit {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string text(const KernelParameter& p) {
  return p.name + ":" + (p.dtype ? cuop::name(*p.dtype) : "any") + (p.is_pointer ? "*" : "") +
         (p.is_written ? "w" : "");
}

/// The parameters of `list` as "name:dtype", with * for a tensor and w for one that is written.
std::vector<std::string> parsed(const std::string& list,
                                const std::map<std::string, std::string>& macros = {}) {
  std::vector<std::string> result;
  const std::string source = "extern \"C\" __global__ void f(" + list + ") {}";
  for (const auto& p : parse_signature(source, "f", macros)) result.push_back(text(p));
  return result;
}

using Texts = std::vector<std::string>;

TEST(KernelSignature, ReadsTypesNamesAndWhatIsWritten) {
  EXPECT_EQ(parsed("const float* __restrict__ x, float const *y, float * const z, void* w"),
            (Texts{"x:float32*", "y:float32*", "z:float32*w", "w:any*w"}));
  EXPECT_EQ(parsed("int n, unsigned m, unsigned long long int k, const double alpha, bool b"),
            (Texts{"n:int32", "m:uint32", "k:uint64", "alpha:float64", "b:bool"}));
  EXPECT_EQ(parsed("long int a, unsigned short int b, signed char c, size_t d, long long e"),
            (Texts{"a:int64", "b:uint16", "c:int8", "d:uint64", "e:int64"}));
  EXPECT_EQ(parsed("const int x[], float y[4], const cuop::jit::Complex<float>* z, Half h"),
            (Texts{"x:int32*", "y:float32*w", "z:complex64*", "h:float16"}));
  EXPECT_EQ(parsed(""), Texts{});
  EXPECT_EQ(parsed(" void "), Texts{});
}

TEST(KernelSignature, ReplacesMacrosInTypes) {
  EXPECT_EQ(parsed("const T* x, T alpha", {{"T", "unsigned int"}}),
            (Texts{"x:uint32*", "alpha:uint32"}));
}

TEST(KernelSignature, FindsTheKernelAmongOtherText) {
  const std::string source = R"(
    // extern "C" __global__ void f(int commented) {}
    /* __global__ f(double) */
    __device__ float f_helper(float x) { return x; }
    __device__ float helper(float f) { return f_helper(f); }
    extern "C" {
    __global__ void g(double* x);
    __global__ __launch_bounds__(256)
    void f /* here */ (const float* x,  // the input
                       int n) { helper(x[n]); }
    })";
  const auto parameters = parse_signature(source, "f", {});
  ASSERT_EQ(parameters.size(), 2U);
  EXPECT_EQ(text(parameters[0]), "x:float32*");
  EXPECT_EQ(text(parameters[1]), "n:int32");
  EXPECT_EQ(text(parse_signature(source, "g", {}).at(0)), "x:float64*w");
}

TEST(KernelSignature, SaysWhatItDoesNotUnderstand) {
  const auto expect = [](const std::string& source, const std::string& message) {
    EXPECT_THAT([&] { parse_signature(source, "f", {}); },
                ThrowsMessage<CompilationError>(HasSubstr(message)))
        << source;
  };
  expect("", "kernel f: the source declares no function extern \"C\" __global__ void f(...)");
  expect("extern \"C\" __device__ void f(int n) {}", "declares no function");
  expect("__global__ void f(int n) {}", "declare it extern \"C\"");
  expect("extern \"C\" __global__ void f(int n", "not closed");
  expect("extern \"C\" __global__ void f(int) {}", "parameter 1 'int' has no name");
  expect("extern \"C\" __global__ void f(float** x) {}", "x is a pointer to pointers");
  expect("extern \"C\" __global__ void f(int& n) {}", "n is a reference");
  expect("extern \"C\" __global__ void f(int a, Point p) {}",
         "parameter p has the type 'Point'; understood are bool, char");
}

}  // namespace
}  // namespace cuop::jit
