// Children that are forked while other threads compute.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cuop/ops/create/create.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/random/generator.h"
#include "cuop/ops/random/random.h"
#include "tests/own_process.h"
#include "tests/sanitized.h"

namespace cuop {
namespace {

/// Each of a length of its own: it makes a plan.
std::atomic<int64_t> last_length = 10;

void transform() {
  const int64_t n = last_length++ % 3000 + 10;
  const Tensor y = fft(ones({n}, DType::kComplex64));
  const auto sum = static_cast<float>(n);
  if (std::abs(*y.data<std::complex<float>>() - sum) > 1e-4F * sum) _exit(2);
}

void draw() {
  const Tensor x = uniform({3});
  if (!(*x.data<float>() < 1.0F)) _exit(3);
}

void take_tickets() {
  for (int i = 0; i < 1000; ++i) default_generator().take(1);
}

void contract() {
  const int64_t n = last_length++ % 50 + 2;
  const Tensor a = ones({n, n});
  const std::vector<Tensor> operands{a, a, a};
  const Tensor y = einsum("ij,jk,kl->il", operands);
  if (*y.data<float>() != static_cast<float>(n * n)) _exit(4);
}

void fork_amid(const std::function<void()>& others_do, const std::function<void()>& child_does,
               int forks) {
  child_does();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) others_do();
    });
  }
  int hung = 0;
  for (int i = 0; i < forks && hung == 0; ++i) hung += test::ends_in_fork(child_does) ? 0 : 1;
  EXPECT_EQ(hung, 0);
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Forks, DISABLED_AmidTransforms) { fork_amid(&transform, &transform, 200); }
TEST(Forks, DISABLED_AmidDraws) { fork_amid(&take_tickets, &draw, 200); }
TEST(Forks, DISABLED_AmidContractions) { fork_amid(&contract, &contract, 200); }

/// What a library keeps for the process is made by another thread meanwhile.
TEST(Forks, DISABLED_AmidFirstUse) {
  std::atomic<bool> has_begun = false;
  const auto use = [] {
    transform();
    const Tensor a = ones({10, 10});
    if (*matmul(a, a).data<float>() != 10.0F) _exit(5);
  };
  std::thread other([&] {
    has_begun = true;
    use();
  });
  while (!has_begun) std::this_thread::yield();
  const char* const delay = std::getenv("CUOP_TEST_DELAY_US");
  std::this_thread::sleep_for(std::chrono::microseconds(delay == nullptr ? 0 : std::atoi(delay)));
  EXPECT_TRUE(test::ends_in_fork(use));
  other.join();
}

TEST(Forks, ChildrenComputeAsTheFirst) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  for (int delay = 0; delay < 20000; delay = delay * 5 / 4 + 50) {
    const std::string setting = "CUOP_TEST_DELAY_US=" + std::to_string(delay) + " timeout 60";
    EXPECT_EQ(test::run_in_process("Forks.DISABLED_AmidFirstUse", setting), 0) << delay;
  }
}

TEST(Forks, ChildrenCompute) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers do not survive a fork amid other threads";
  for (const char* work : {"Transforms", "Draws", "Contractions"}) {
    EXPECT_EQ(test::run_in_process(std::string("Forks.DISABLED_Amid") + work, "timeout 120"), 0)
        << work;
  }
}

}  // namespace
}  // namespace cuop
