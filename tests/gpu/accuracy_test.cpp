// How far functions of one argument are from the truth on a GPU: what is promised for every device.
#include <algorithm>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/gpu/gpu_test.h"
#include "tests/jit/true_functions.h"

namespace cuop {
namespace {

using test::TrueFunction;

class GpuAccuracy : public GpuTest {
 protected:
  template <class T>
  test::WorstAnswer<T> worst(const TrueFunction& f, int count) const {
    const auto x = test::sample<T>(f, count);
    const DType dtype = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;
    const Tensor host = empty({static_cast<int64_t>(x.size())}, dtype, kCpu);
    std::copy(x.begin(), x.end(), host.data<T>());
    const Tensor there = to_device(host, kGpu);
    const Operand operand(there);
    const Operand* const operands[] = {&operand};
    const Tensor answer = to_device(elementwise(f.name.data(), operands), kCpu);
    return test::worst_answer(f, x, answer.data<T>());
  }
};

TEST_F(GpuAccuracy, OneUlpOfFloat32AndOneAndAHalfOfFloat64) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    const auto single = worst<float>(f, 2000);
    EXPECT_LE(single.ulps, 1.0) << f.name << "(" << single.x << ") = " << single.given;
    const auto twice = worst<double>(f, 2000);
    EXPECT_LE(twice.ulps, 1.5) << f.name << "(" << twice.x << ") = " << twice.given;
  }
}

/// --gtest_also_run_disabled_tests --gtest_filter='GpuAccuracy.DISABLED_Measure' prints a table.
TEST_F(GpuAccuracy, DISABLED_Measure) {
  for (const TrueFunction& f : test::kTrueFunctions) {
    print_worst(f, worst<float>(f, 60000), worst<double>(f, 60000));
  }
}

}  // namespace
}  // namespace cuop
