// A fork while another thread opens the BLAS library and multiplies.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "cuop/backend/cpu/blas.h"
#include "tests/own_process.h"
#include "tests/sanitized.h"

namespace cuop::backend {
namespace {

/// Ends the process where the result is not right.
void multiply() {
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  float c[4] = {};
  blas::GemmCall<float> call;
  call.m = call.n = call.k = call.lda = call.ldb = call.ldc = 2;
  call.a = a;
  call.b = b;
  call.c = c;
  blas::gemm(call);
  if (c[0] != 19 || c[1] != 22 || c[2] != 43 || c[3] != 50) _exit(2);
}

TEST(ForkedBlas, DISABLED_ForksWhileItIsOpened) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  setenv("CUOP_TEST_OPENING", std::to_string(ends[1]).c_str(), 1);
  std::thread other(&multiply);
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  EXPECT_TRUE(test::ends_in_fork(&multiply));
  other.join();
  // And as it is ever after.
  multiply();
  EXPECT_TRUE(test::ends_in_fork(&multiply));
  multiply();
}

/// The library has stopped its threads for that fork before the fork comes to where it waits for
/// calls, and the other thread's product has started them again.
TEST(ForkedBlas, AChildMultipliesThatWasForkedWhileItWasOpened) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  EXPECT_EQ(test::run_in_process("ForkedBlas.DISABLED_ForksWhileItIsOpened",
                                 "CUOP_BLAS_LIBRARY=" CUOP_FAKE_FORKED_BLAS " timeout 60"),
            0);
}

}  // namespace
}  // namespace cuop::backend
