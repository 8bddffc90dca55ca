// Division by a product and a shift beside the machine's own.
#include "cuop/jit/kernels/divisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cuop::jit {
namespace {

constexpr uint32_t kLargest = 0x7fffffff;

TEST(Divisor, DividesAsTheMachineDoes) {
  std::mt19937 random(1);
  const auto any = [&] { return static_cast<uint32_t>(random() & kLargest) >> random() % 31; };
  std::vector<uint32_t> divisors{1, 2, 3, 5, 7, 641, 65535, 65536, 65537, kLargest - 1, kLargest};
  for (int i = 0; i < 1000; ++i) divisors.push_back(std::max(uint32_t{1}, any()));
  for (const uint32_t by : divisors) {
    const Divisor divisor = make_divisor(by);
    const auto expect_right = [&](uint32_t number) {
      ASSERT_EQ(quotient(number, divisor), number / by) << number << " by " << by;
    };
    for (const uint32_t number : {0u, 1u, kLargest - 1, kLargest}) expect_right(number);
    for (int i = 0; i < 100; ++i) {
      expect_right(any());
      const uint32_t multiple = any() / by * by;  // and just below, where quotients change
      expect_right(multiple);
      if (multiple > 0) expect_right(multiple - 1);
    }
  }
}

}  // namespace
}  // namespace cuop::jit
