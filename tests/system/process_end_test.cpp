// What computes after the first thread's own objects are gone: destructors of static objects.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <complex>
#include <thread>
#include <vector>

#include "cuop/jit/fusion.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/random/random.h"
#include "cuop/ops/reduce/reduce.h"
#include "tests/own_process.h"

namespace cuop {
namespace {

/// 0, or which of them was wrong.
int compute() {
  const Tensor a = ones({300}), b = ones({30, 40}), c = ones({40, 50});
  if (*add(a, 1.0).data<float>() != 2.0F) return 1;
  if (*multiply(a, add(a, a)).data<float>() != 2.0F) return 2;
  if (*sum(a).data<float>() != 300.0F) return 3;
  const std::vector<Tensor> operands{b, c};
  if (*einsum("ij,jk->ik", operands).data<float>() != 40.0F) return 4;
  if (fft(ones({8}, DType::kComplex64)).data<std::complex<float>>()->real() != 8.0F) return 5;
  if (!(*uniform({3}).data<float>() < 1.0F)) return 6;
  const Fused fused;
  if (*sum(multiply(add(a, 1.0), a)).data<float>() != 600.0F) return 7;
  return 0;
}

constexpr int kRight = 40;  // plus what was wrong

struct ComputesAtTheEnd {
  ~ComputesAtTheEnd() {
    for (int i = 0; i < 3; ++i) {
      if (const int wrong = compute()) _exit(kRight + wrong);
    }
    _exit(kRight);
  }
};

TEST(ProcessEnd, DISABLED_LeavesAStaticObject) {
  static const ComputesAtTheEnd late;
  (void)late;
  ASSERT_EQ(compute(), 0);
}

TEST(ProcessEnd, StaticObjectsCompute) {
  const int status = test::run_in_process("ProcessEnd.DISABLED_LeavesAStaticObject", "timeout 60");
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), kRight);
}

struct ComputesAtTheThreadsEnd {
  ~ComputesAtTheThreadsEnd() { wrong = compute(); }
  static inline int wrong = -1;
};

TEST(ProcessEnd, ObjectsOfAThreadCompute) {
  std::thread([] {
    thread_local ComputesAtTheThreadsEnd late;
    (void)late;
    EXPECT_EQ(compute(), 0);
  }).join();
  EXPECT_EQ(ComputesAtTheThreadsEnd::wrong, 0);
}

}  // namespace
}  // namespace cuop
