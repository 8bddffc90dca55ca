// What is left to do where the system has no thread any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/own_process.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

void multiply() {
  const Tensor a = ones({300, 300});
  const Tensor c = matmul(a, a);
  EXPECT_EQ(*c.data<float>(), 300.0F);
}

void convolve() {
  backend::set_thread_count(4);
  const Tensor y = conv2d(ones({1, 8, 32, 32}), ones({4, 8, 3, 3}));
  EXPECT_EQ(*y.data<float>(), 72.0F);
}

/// These two end each other's processes, or hang, by the threads of their libraries.
TEST(FewThreads, DISABLED_MultipliesAndConvolves) {
  multiply();
  convolve();
}
TEST(FewThreads, DISABLED_ConvolvesAndMultiplies) {
  convolve();
  multiply();
}

TEST(FewThreads, DISABLED_RanksAreRefused) {
  EXPECT_THAT([] { dist::run_ranks(4, [](const auto& comm) { comm->barrier(); }); },
              ThrowsMessage<ExecutionError>(HasSubstr("run_ranks: no thread for rank")));
}

TEST(FewThreads, DISABLED_IsFoundOut) {
  EXPECT_TRUE(backend::can_start_threads(2));
  EXPECT_TRUE(backend::can_start_threads(2)) << "the first two have ended";
  EXPECT_FALSE(backend::can_start_threads(3));
}

void expect_passes(const std::string& test, int most_threads) {
  const std::string setting =
      "LD_PRELOAD=" CUOP_FAKE_NO_THREAD " CUOP_MOST_THREADS=" + std::to_string(most_threads) +
      " timeout 60";
  EXPECT_EQ(test::run_in_process("FewThreads.DISABLED_" + test, setting), 0)
      << test << " with " << most_threads;
}

class NoThread : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer has threads of its own, and comes before other libraries";
#endif
  }
};

TEST_F(NoThread, LibrariesComputeWithoutThreads) {
  for (const int most : {0, 1, 2, 3}) {
    expect_passes("MultipliesAndConvolves", most);
    expect_passes("ConvolvesAndMultiplies", most);
  }
}

TEST_F(NoThread, RanksAreRefused) {
  for (const int most : {0, 3}) expect_passes("RanksAreRefused", most);
}

TEST_F(NoThread, IsFoundOut) { expect_passes("IsFoundOut", 2); }

}  // namespace
}  // namespace cuop
