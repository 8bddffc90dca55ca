#include "cuop/core/interrupt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/sort/sort.h"
#include "cuop/ops/stencil/stencil.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

std::atomic<bool> is_asked_for = false;

/// Work that would take hours is interrupted from the beginning; nothing else ends it.
class InterruptTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    check_interrupt();  // the thread's clock starts with the first look, and looks are 0.05 s apart
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    is_asked_for = true;
    set_interrupt_check([] { return is_asked_for.load(); });
    backend::set_thread_count(GetParam());
  }
  void TearDown() override {
    set_interrupt_check(nullptr);
    backend::set_thread_count(0);
  }
  /// What `make` makes, uninterrupted.
  template <class Make>
  static auto undisturbed(const Make& make) {
    is_asked_for = false;
    auto made = make();
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    is_asked_for = true;
    return made;
  }
  static Tensor endless() {
    return broadcast_to(ones({1, 1}, DType::kFloat32, kCpu), {int64_t{1} << 20, int64_t{1} << 20});
  }
};
INSTANTIATE_TEST_SUITE_P(Threads, InterruptTest, ::testing::Values(1, 2, 3));

TEST_P(InterruptTest, EndsReductions) {
  EXPECT_THROW(sum(endless()), Interrupted);
  EXPECT_THROW(mean(endless(), {1}), Interrupted);
  EXPECT_THROW(prod(endless(), {0}), Interrupted);
}

TEST_P(InterruptTest, EndsSweeps) {
  const Tensor grid = ones({64, 64}, DType::kFloat32, kCpu);
  const Tensor cross = ones({3, 3}, DType::kFloat32, kCpu);
  EXPECT_THROW(stencil2d(grid, cross, Boundary::kZero, int64_t{1} << 40), Interrupted);
  JacobiOptions options;
  options.iterations = int64_t{1} << 40;
  options.tolerance = 0.0;
  EXPECT_THROW(jacobi2d(grid, grid, options), Interrupted);
}

TEST_P(InterruptTest, EndsTheSortOfOneLine) {
  EXPECT_THROW(sort(zeros({int64_t{1} << 24}, DType::kInt32, kCpu)), Interrupted);
}

// One call of a library each, or few; what the library still computes when the test goes on is kept
// for it.
TEST_P(InterruptTest, EndsTransformsOfLongLines) {
  const Tensor line = undisturbed([] { return ones({1 << 23}, DType::kComplex128, kCpu); });
  const Tensor two = reshape(line, {1 << 22, 2});
  const Tensor real = undisturbed([] { return ones({1 << 23}, DType::kFloat64, kCpu); });
  EXPECT_THROW(fft(line), Interrupted);
  EXPECT_THROW(rfft(real, (1 << 23) - 15), Interrupted);
  EXPECT_THROW(fft(two, std::nullopt, 0), Interrupted);
}

TEST_P(InterruptTest, EndsConvolutions) {
  const auto given = undisturbed([] {
    return std::pair{ones({8, 128, 64, 64}, DType::kFloat32, kCpu),
                     ones({256, 128, 7, 7}, DType::kFloat32, kCpu)};
  });
  for (const ConvVariant variant : {ConvVariant::kAuto, ConvVariant::kGemm, ConvVariant::kDirect}) {
    ConvOptions options;
    options.variant = variant;
    EXPECT_THROW(conv2d(given.first, given.second, nullptr, options), Interrupted) << name(variant);
  }
}

TEST_P(InterruptTest, EndsTheConvolutionOfOneRow) {
  const auto given = undisturbed([] {
    return std::pair{ones({1, 1, 1 << 18}, DType::kFloat64, kCpu),
                     ones({1, 1, 1 << 17}, DType::kFloat64, kCpu)};
  });
  ConvOptions options;
  options.variant = ConvVariant::kDirect;
  EXPECT_THROW(conv1d(given.first, given.second, nullptr, options), Interrupted);
}

TEST_P(InterruptTest, EndsProducts) {
  const auto given = undisturbed([] {
    return std::pair{ones({4000, 4000}, DType::kFloat64, kCpu),
                     ones({4000, 4000}, DType::kFloat64, kCpu)};
  });
  EXPECT_THROW(matmul(given.first, given.second), Interrupted);
  EXPECT_THROW(matmul(given.first, transpose(given.first)), Interrupted);
}

TEST_P(InterruptTest, LeavesDeferredValuesThatSayWhatHappened) {
  Tensor result;
  {
    Fused fused;
    const Tensor wide = broadcast_to(ones({1, 1}, DType::kFloat32, kCpu), {1 << 15, 1 << 15});
    result = sum(multiply(wide, wide));
    EXPECT_THROW(fused.close(), Interrupted);
  }
  is_asked_for = false;
  const std::string error = test::error_of<ExecutionError>([&] { result.data<float>(); });
  EXPECT_NE(error.find("was interrupted"), std::string::npos) << error;
  EXPECT_EQ(*sum(ones({5}, DType::kFloat32, kCpu)).data<float>(), 5.0f);
}

TEST_P(InterruptTest, EndsTheArgsortOfOneLine) {
  EXPECT_THROW(argsort(zeros({int64_t{1} << 24}, DType::kInt32, kCpu)), Interrupted);
}

TEST_P(InterruptTest, ShortWorkIsNotAskedFor) {
  for (int i = 0; i < 1000; ++i) EXPECT_NO_THROW(sum(ones({100}, DType::kFloat32, kCpu)));
}

TEST(Interrupt, ACancelledThreadEnds) {
  std::atomic<bool> is_cancelled = false, has_ended = false;
  std::thread rank([&] {
    const CancelScope scope(is_cancelled);
    const Tensor wide = broadcast_to(ones({1}, DType::kFloat32, kCpu), {int64_t{1} << 40});
    EXPECT_THROW(sum(wide), Interrupted);
    has_ended = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(has_ended);
  is_cancelled = true;
  rank.join();
  EXPECT_NO_THROW(check_interrupt());
}

TEST(Interrupt, RepeatedElementsAreReadOnce) {
  const Tensor column = arange(0, 3, 1, DType::kFloat32, kCpu);
  const Shape shape{3, int64_t{1} << 30, int64_t{1} << 10};
  const Tensor wide = broadcast_to(reshape(column, {3, 1, 1}), shape);
  EXPECT_FALSE(*all(wide).data<bool>());
  EXPECT_TRUE(*any(wide).data<bool>());
  EXPECT_EQ(*max(wide).data<float>(), 2.0f);
  EXPECT_EQ(*min(wide).data<float>(), 0.0f);
  const Tensor rows = max(wide, {1, 2}, true);
  EXPECT_EQ(rows.shape(), (Shape{3, 1, 1}));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(rows.data<float>()[i], static_cast<float>(i));
  const Tensor first = argmax(broadcast_to(reshape(column, {3, 1}), {3, int64_t{1} << 40}), 1);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(first.data<int64_t>()[i], 0);
}

}  // namespace
}  // namespace cuop
