#include "cuop/core/interrupt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/slicing.h"
#include "cuop/dist/moves.h"
#include "cuop/jit/fusion.h"
#include "cuop/ops/blas/blas.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/fft/fft.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/norm/norm.h"
#include "cuop/ops/pool/pool.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/softmax/softmax.h"
#include "cuop/ops/sort/sort.h"
#include "cuop/ops/sparse/sparse.h"
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
  /// Ends before it is done, wherever it looks first.
  template <class Work>
  static void expect_ends(const Work& work, const char* what = "") {
    // A thread of the pool that has never looked before only starts its clock, and on a busy
    // machine it may take all there is to do: then once more.
    bool has_ended = false;
    for (int attempt = 0; attempt < 5 && !has_ended; ++attempt) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));  // since the last look
      try {
        work();
      } catch (const Interrupted&) {
        has_ended = true;
      }
    }
    EXPECT_TRUE(has_ended) << what;
  }
  static Tensor some(const Shape& shape, DType dtype = DType::kFloat32) {
    return undisturbed([&] { return ones(shape, dtype, kCpu); });
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

// What follows is one row, one plane or one list, which threads do not share.
constexpr int64_t kLong = int64_t{1} << 20;

TEST_P(InterruptTest, EndsTheSoftmaxOfOneLine) {
  const Tensor row = some({1, kLong}), column = some({kLong, 2});
  const Tensor half_row = some({1, kLong}, DType::kFloat16),
               half_column = some({kLong, 2}, DType::kFloat16);
  for (const Tensor& x : {row, half_row}) {
    expect_ends([&] { softmax(x); });
    expect_ends([&] { log_softmax(x); });
  }
  for (const Tensor& x : {column, half_column}) {
    expect_ends([&] { softmax(x, 0); });
    expect_ends([&] { log_softmax(x, 0); });
  }
}

TEST_P(InterruptTest, EndsTheNormalisationOfOneRow) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const Tensor row = some({1, kLong}, dtype), gamma = some({kLong}, dtype);
    const Tensor groups = some({1, 2, kLong}, dtype), pair = some({2}, dtype);
    expect_ends([&] { layer_norm(row, gamma, gamma); }, "layer_norm");
    expect_ends([&] { rms_norm(row, gamma); }, "rms_norm");
    expect_ends([&] { layer_norm(groups, pair); }, "of channels");
  }
  const Tensor channel = some({1, 1, kLong});
  expect_ends([&] { batch_norm(channel, {}); }, "batch_norm");
}

TEST_P(InterruptTest, EndsThePoolingOfOnePlane) {
  const auto options = [](int64_t kernel) { return PoolOptions{{kernel}, {1}, {}}; };
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    const Tensor plane = some({1, 1, 1024, 1024}, dtype), row = some({1, 1, kLong}, dtype);
    expect_ends([&] { avg_pool2d(plane, options(3)); }, "plane");
    expect_ends([&] { max_pool1d(row, options(9)); }, "row");
    expect_ends([&] { global_avg_pool(plane); }, "global");
    expect_ends([&] { global_max_pool(plane); }, "global");
  }
}

TEST_P(InterruptTest, EndsCopiesOfLongRowsBeforeOneIsThere) {
  const auto given = undisturbed([] {
    return std::pair{zeros({2, kLong}, DType::kFloat32, kCpu),
                     arange(0, 2, 1, DType::kInt64, kCpu)};
  });
  const Tensor rows = some({2, kLong}), column = some({2, 1}), tall = some({kLong / 16, 64});
  // Whichever of several threads the system lets go on first.
  const auto is_whole = [&] {
    const float* const first = given.first.data<float>();
    return std::all_of(first, first + 2 * kLong, [](float each) { return each == 1.0f; });
  };
  const auto expect_part = [&](const auto& work) {
    expect_ends([&] {  // twice, where the first time nobody looked
      undisturbed([&] {
        fill(given.first, 0);
        return 0;
      });
      work();
    });
    EXPECT_FALSE(is_whole());
  };
  expect_part([&] { copy(broadcast_to(column, {2, kLong}), &given.first); });
  expect_part([&] { take(rows, given.second, 0, &given.first); });
  expect_ends([&] { copy(transpose(tall)); });
}

TEST_P(InterruptTest, EndsPaddingThatGoesToAndFro) {
  const Tensor few = some({3});
  const std::pair<int64_t, int64_t> widths[] = {{0, kLong}};
  expect_ends([&] { pad(few, widths, PadMode::kReflect); });
}

TEST_P(InterruptTest, EndsMakingASymmetricMatrixWhole) {
  const Tensor square = some({1024, 1024}, DType::kInt8), column = some({1024, 1}, DType::kInt8);
  const Tensor result = some({1024, 1}, DType::kInt8);
  backend::set_thread_count(1);  // of several each may have less to do than lies between two looks
  expect_ends([&] { symm(square, column, {}, &result); });
  EXPECT_EQ(*result.data<int8_t>(), 1) << "the product had begun";
  expect_ends([&] { matmul(square, column, {}, &result); });
  EXPECT_EQ(*result.data<int8_t>(), 0) << "the product begins with the first row";
}

TEST_P(InterruptTest, EndsWhatIsDoneWithSparseMatrices) {
  const Tensor vector = some({kLong}),
               positions = undisturbed([] { return arange(0, kLong + 1, 1, DType::kInt64, kCpu); });
  const Tensor columns = undisturbed([] { return zeros({kLong}, DType::kInt64, kCpu); });
  const auto made = undisturbed([&] {
    const SparseMatrix tall(SparseLayout::kCsr, {kLong, 1}, positions, columns, vector);
    return std::pair{to_sparse(reshape(vector, {1, kLong})), tall};
  });
  expect_ends([&] { matmul(made.first, vector); }, "one row");
  const Tensor one = some({1}), several = some({kLong, 4});
  expect_ends([&] { matmul(made.second, one); }, "many rows");
  expect_ends([&] { matmul(made.first, several); }, "several columns");
  expect_ends(
      [&] {
        SparseMatrix(SparseLayout::kCsr, {kLong, 1}, positions, columns, vector);
      },
      "check");
  const Tensor rows = undisturbed([] { return arange(0, kLong, 1, DType::kInt64, kCpu); });
  expect_ends([&] { SparseMatrix(SparseLayout::kCoo, {kLong, 1}, rows, columns, vector); }, "coo");
  expect_ends([&] { in_layout(made.second, SparseLayout::kCoo); }, "to coo");
  const SparseMatrix coo = undisturbed([&] { return in_layout(made.second, SparseLayout::kCoo); });
  expect_ends([&] { in_layout(coo, SparseLayout::kCsr); }, "to csr");
}

/// Matrices in a row.
Contraction chain_of(int matrices) {
  Contraction contraction;
  for (int i = 0; i < matrices; ++i) contraction.inputs.push_back({i, i + 1});
  contraction.sizes.assign(static_cast<size_t>(matrices) + 1, 3);
  contraction.output = {0, matrices};
  return contraction;
}

TEST_P(InterruptTest, EndsTheSearchForAnOrder) {
  for (const PathSearch search : {PathSearch::kOptimal, PathSearch::kGreedy}) {
    expect_ends([&] { find_steps(chain_of(16), {search}); }, name(search));
  }
  expect_ends([&] { find_steps(chain_of(200), {PathSearch::kRandomGreedy}); });
  const Contraction two = chain_of(2);
  const std::vector<ContractionStep> steps = find_steps(two);
  expect_ends([&] { sliced_further(two, steps, {}); });
  const Shape shapes[] = {{3, 3}, {3, 3}};
  expect_ends([&] { einsum_path("ij,jk->ik", shapes); }, "its memory");
}

TEST_P(InterruptTest, EndsPlansOfMoves) {
  const std::vector<Box> owners{whole_box({4}), whole_box({4})};
  expect_ends([&] { plan_traffic(owners, dist::needs_of(owners), dist::Sources::kAll); });
  expect_ends([&] { plan_traffic(owners, {}, dist::Sources::kReplicas); });
}

TEST_P(InterruptTest, EndsBetweenPiecesThatAreOneStepEach) {
  std::atomic<int> done = 0;
  const auto work = [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    ++done;
  };
  EXPECT_THROW(backend::parallel_for(4 * GetParam(), 1, work), Interrupted);
  EXPECT_LE(done, 2 * GetParam()) << "the caller looks behind its first piece";
}

TEST_P(InterruptTest, EndsTheWaitForAnotherThread) {
  InterruptibleMutex mutex("a test");
  {
    const std::lock_guard held(mutex);
    std::thread other([&] { expect_ends([&] { mutex.lock(); }); });
    other.join();
  }
  const std::lock_guard free_again(mutex);
  std::promise<int> result;
  const std::shared_future<int> later = result.get_future().share();
  expect_ends([&] { wait_interruptibly(later); });
  result.set_value(7);
  wait_interruptibly(later);
  EXPECT_EQ(later.get(), 7);
}

TEST(Interrupt, AThreadDoesNotWaitForItself) {
  InterruptibleMutex mutex("measuring");
  {
    const auto held = lock_unless_mine(mutex);
    EXPECT_TRUE(mutex.is_mine());
    EXPECT_EQ(test::error_of<ExecutionError>([&] { mutex.lock(); }),
              "measuring: called again amid the same work of this thread, as by a handler of a "
              "signal, which would wait for itself; call it when that work is done");
    EXPECT_FALSE(lock_unless_mine(mutex).owns_lock());
    EXPECT_TRUE(mutex.is_mine());
  }
  EXPECT_FALSE(mutex.is_mine());
  EXPECT_TRUE(lock_unless_mine(mutex).owns_lock());
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
