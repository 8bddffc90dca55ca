// The operator objects as C++ users see them; results are tested in depth from Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/interrupt.h"
#include "cuop/operators/activations.h"
#include "cuop/operators/convolution.h"
#include "cuop/operators/normalisation.h"
#include "cuop/operators/pooling.h"
#include "cuop/operators/products.h"
#include "cuop/operators/structured.h"
#include "cuop/operators/vectors.h"
#include "cuop/operators/windows.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/own_process.h"

namespace cuop {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class T>
class Operators : public ::testing::Test {
 protected:
  static constexpr DType kDType = dtype_of<T>;
  static Tensor matrix(int64_t rows, std::initializer_list<T> values) {
    return from_values<T>({rows, static_cast<int64_t>(values.size()) / rows}, values);
  }
  static std::vector<T> values(const Tensor& tensor) {
    const Tensor dense = contiguous(tensor);
    return {dense.data<T>(), dense.data<T>() + dense.size()};
  }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Operators, Types);

TYPED_TEST(Operators, GemmFillsAndReturnsItsOutput) {
  Gemm<TypeParam> gemm(false, true, 2.0, 1.0);
  gemm.set_weight(this->matrix(2, {1, 2, 3, 4}));
  const Tensor c = ones({1, 2}, this->kDType);
  const Tensor result = gemm.forward(this->matrix(1, {1, 1}), c);
  EXPECT_TRUE(is_same_view(result, c));
  EXPECT_THAT(this->values(c), ElementsAre(7, 15));
}

TYPED_TEST(Operators, StructuredMatricesReadOneTriangle) {
  Symm<TypeParam> symm(Side::kLeft, Uplo::kUpper);
  symm.set_weight(this->matrix(2, {1, 2, 99, 3}));
  EXPECT_THAT(this->values(symm.forward(eye(2, 2, 0, this->kDType), zeros({2, 2}, this->kDType))),
              ElementsAre(1, 2, 2, 3));
  Trsm<TypeParam> trsm(Side::kLeft, Uplo::kLower);
  trsm.set_matrix_a(this->matrix(2, {2, 99, 1, 4}));
  const Tensor b = this->matrix(2, {2, 9});
  EXPECT_THAT(this->values(trsm.forward(b, b)), ElementsAre(1, 2));  // in place
}

TYPED_TEST(Operators, VectorsAndWindows) {
  const Tensor x = from_values<TypeParam>({4}, {1, 2, 3, 4});
  const Tensor y = ones({4}, this->kDType);
  EXPECT_THAT(this->values(Axpy<TypeParam>(2.0).forward(x, y)), ElementsAre(3, 5, 7, 9));
  EXPECT_EQ(Dot<TypeParam>().forward(x, x), 30.0);
  EXPECT_THAT(this->values(Scal<TypeParam>(0.5).forward(y)), ElementsAre(1.5, 2.5, 3.5, 4.5));
  EXPECT_THAT(this->values(Copy<TypeParam>().forward(x, y)), ElementsAre(1, 2, 3, 4));
  View<TypeParam> view;
  view.set_offset(1);
  EXPECT_THAT(this->values(view.forward(x, zeros({1, 2}, this->kDType))), ElementsAre(2, 3));
  const Tensor matrix = window(x, 0, {2, 2});
  EXPECT_THAT(this->values(window(matrix, {0, 1}, {2, 1})), ElementsAre(2, 4));
  view.set_offset({1, 0});
  EXPECT_THAT(this->values(view.forward(matrix, zeros({1, 2}, this->kDType))), ElementsAre(3, 4));
  EXPECT_THAT(this->values(view.forward(matrix, zeros({2, 1}, this->kDType), Dims{0, 1})),
              ElementsAre(2, 4));
  EXPECT_THROW(view.forward(matrix, zeros({2, 1}, this->kDType)), ShapeError);
  EXPECT_TRUE(may_overlap(matrix, x));
  EXPECT_THAT(this->values(Flatten<TypeParam>().forward(matrix, y)), ElementsAre(1, 2, 3, 4));
}

TYPED_TEST(Operators, NetworkLayersChain) {
  const Tensor image = ones({1, 1, 4, 4}, this->kDType);
  Convolution2D<TypeParam> conv(
      {.in_channels = 1, .out_channels = 2, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  conv.set_weight(ones({2, 1, 3, 3}, this->kDType));
  conv.set_bias(from_values<TypeParam>({2}, {0, -100}));
  const Tensor y = conv.forward(image, empty({1, 2, 4, 4}, this->kDType));
  Relu<TypeParam>().forward(y, y);
  const Tensor pooled = MaxPool2D<TypeParam>().forward(y, empty({1, 2, 1, 1}, this->kDType),
                                                       {.kernel_h = 4, .kernel_w = 4});
  EXPECT_THAT(this->values(pooled), ElementsAre(9, 0));
  const Tensor mean = GlobalAveragePool2D<TypeParam>().forward(image, empty({1, 1}, this->kDType));
  EXPECT_THAT(this->values(mean), ElementsAre(1));
  LayerNorm<TypeParam> norm(0.0);
  norm.set_gamma(ones({2}, this->kDType));
  const Tensor row = from_values<TypeParam>({1, 2}, {-3, 5});
  EXPECT_THAT(this->values(norm.forward(row, row)), ElementsAre(-1, 1));
}

TYPED_TEST(Operators, TransposesAreBoolsNamesOrValues) {
  const Tensor b = this->matrix(2, {1, 2, 3, 4, 5, 6}), a = this->matrix(1, {1, 10, 100});
  for (const TransLike trans : {TransLike(true), TransLike("trans"), TransLike("T"),
                                TransLike(std::string("conj_trans")), TransLike(Trans::kTrans)}) {
    Gemm<TypeParam> gemm(false, trans);
    gemm.set_weight(b);
    EXPECT_THAT(this->values(gemm.forward(a, zeros({1, 2}, this->kDType))), ElementsAre(321, 654));
    Gemv<TypeParam> gemv(trans);
    gemv.set_weight(b);
    const Tensor x = ones({2}, this->kDType);
    EXPECT_THAT(this->values(gemv.forward(x, zeros({3}, this->kDType))), ElementsAre(5, 7, 9));
    const Tensor product =
        MatMul<TypeParam>("none", trans).forward(a, b, zeros({1, 2}, this->kDType));
    EXPECT_THAT(this->values(product), ElementsAre(321, 654));
  }
  EXPECT_THAT([] { Gemm<TypeParam>("nein"); },
              ThrowsMessage<ExecutionError>(
                  HasSubstr("'nein' is unknown; known are 'none', 'trans', 'conj_trans'")));
}

TYPED_TEST(Operators, AMatrixServesTheWholeBatch) {
  const Tensor a = from_values<TypeParam>({2, 1, 2}, {1, 2, 3, 4});
  BatchMatMul<TypeParam> product(false, "trans");
  product.set_weight(this->matrix(1, {10, 1}));
  EXPECT_THAT(this->values(product.forward(a, zeros({2, 1, 1}, this->kDType))),
              ElementsAre(12, 34));
  EXPECT_THAT(
      [&] {
        product.forward(a, ones({3, 1, 2}, this->kDType), a);
      },
      ThrowsMessage<ShapeError>(
          AllOf(HasSubstr("equal leading axes"), HasSubstr("serves the whole batch"))));
}

TYPED_TEST(Operators, LayerNormWithoutGammaIsOverTheLastDimensionOrThoseOfBeta) {
  LayerNorm<TypeParam> norm(0.0);
  const Tensor x = from_values<TypeParam>({2, 2}, {-3, 5, 10, 14});
  EXPECT_THAT(this->values(norm.forward(x, zeros({2, 2}, this->kDType))),
              ElementsAre(-1, 1, -1, 1));
  norm.set_beta(full({2}, 10.0, this->kDType));
  EXPECT_THAT(this->values(norm.forward(x, zeros({2, 2}, this->kDType))),
              ElementsAre(9, 11, 9, 11));
  const Tensor scalar = zeros({}, this->kDType);
  EXPECT_THAT([&] { LayerNorm<TypeParam>().forward(scalar, scalar); },
              ThrowsMessage<ShapeError>(HasSubstr("needed is at least 1 dimension")));
}

TYPED_TEST(Operators, OptionsThatMakeNoSenseAreRefusedAtConstruction) {
  const auto pool = [](Pool2DOptions options) {
    return [options] { MaxPool2D<TypeParam>{options}; };
  };
  EXPECT_THAT(pool({.kernel_h = 0}), ThrowsMessage<ShapeError>(HasSubstr("kernel_h is 0, needed")));
  EXPECT_THAT(pool({.stride_w = 0}), ThrowsMessage<ShapeError>(HasSubstr("stride_w is 0, needed")));
  EXPECT_THAT(pool({.pad_h = -1}), ThrowsMessage<ShapeError>(HasSubstr("pad_h is -1, needed")));
  EXPECT_THAT(pool({.kernel_w = 3, .pad_w = 2}),
              ThrowsMessage<ShapeError>(HasSubstr("pad_w is 2, allowed is at most half")));
  EXPECT_NO_THROW(pool({.kernel_w = 3, .pad_w = 1})());
  const auto conv = [](Convolution2DOptions options) {
    return [options] { Convolution2D<TypeParam>{options}; };
  };
  constexpr int64_t kMany = int64_t{1} << 31, kMost = kMany - 1;
  EXPECT_THAT(conv({kMany, 1, 1, 1}),
              ThrowsMessage<ShapeError>(HasSubstr("in_channels is 2147483648, needed is 1 to")));
  EXPECT_THAT(conv({kMost, kMost, 3, 3}),
              ThrowsMessage<ShapeError>(HasSubstr("bytes of the weight")));
}

TYPED_TEST(Operators, CopiesShareWeightsAndStatistics) {
  BatchNorm<TypeParam> norm(0.0, 1.0);
  const BatchNorm<TypeParam> copy = norm;
  norm.train(true);
  const Tensor x = this->matrix(2, {1, 3});
  EXPECT_THAT(this->values(copy.forward(x, zeros({2, 1}, this->kDType))), ElementsAre(-1, 1));
  EXPECT_THAT(this->values(norm.running_mean()), ElementsAre(2));
}

TYPED_TEST(Operators, ErrorsNameTheOperatorAndAreRemembered) {
  Gemm<TypeParam> gemm;
  const Tensor c = zeros({2, 2}, this->kDType);
  EXPECT_EQ(gemm.last_error(), "");
  EXPECT_THAT([&] { gemm.forward(c, c); },
              ThrowsMessage<ExecutionError>(
                  AllOf(HasSubstr(gemm.name()), HasSubstr("call set_weight first"))));
  EXPECT_THAT(gemm.last_error(), HasSubstr("call set_weight first"));
  gemm.set_weight(eye(2, 2, 0, this->kDType));
  EXPECT_THAT(
      [&] {
        gemm.forward(zeros({2, 3}, this->kDType), c);
      },
      ThrowsMessage<ShapeError>(HasSubstr(gemm.name() + ": ")));
  EXPECT_THAT(
      [&] {
        gemm.forward(zeros({2, 2}, DType::kInt32), c);
      },
      ThrowsMessage<DTypeError>(HasSubstr("A has dtype int32")));
  EXPECT_THAT([&] { gemm.forward(c, Tensor()); },
              ThrowsMessage<ExecutionError>(HasSubstr("C is an undefined tensor")));
  EXPECT_THROW(gemm.forward(c, c), ExecutionError);  // the output is the input
}

TYPED_TEST(Operators, AFailedTrainingStepLeavesNoStatisticsBehind) {
  BatchNorm<TypeParam> norm;
  norm.train(true);
  norm.set_gamma(ones({2}, this->kDType));
  const Tensor x = ones({4, 3}, this->kDType);
  EXPECT_THROW(norm.forward(x, x), ShapeError);
  EXPECT_FALSE(norm.running_mean().is_defined());
}

BatchNorm<float>* disturbed = nullptr;
int disturbances = 0;

/// Called amid a pass, as handlers of signals are, on its thread: the first time a statistic is
/// set, and a training step is asked for.
bool disturb() {
  if (disturbances++ > 0) return false;
  disturbed->set_running_mean(full({2}, 7.0));
  if (disturbed->is_training()) {
    const Tensor x = ones({4, 2});
    EXPECT_THAT([&] { disturbed->forward(x, x); },
                ThrowsMessage<ExecutionError>(HasSubstr("called again")));
  }
  return false;
}

TEST(OperatorThreads, DISABLED_ANormalisationIsDisturbed) {
  backend::set_thread_count(1);
  BatchNorm<float> norm(1e-5, 1.0);
  disturbed = &norm;
  set_interrupt_check(&disturb);
  const Tensor x = ones({16, 2, 1000, 1000}), y = empty(x.shape());
  for (const bool is_training : {false, true}) {
    norm.set_running_mean(zeros({2}));
    norm.set_running_var(ones({2}));
    norm.train(is_training);
    for (disturbances = 0; disturbances == 0;) norm.forward(x, y);
    EXPECT_EQ(*norm.running_mean().data<float>(), 7.0F) << "it was set amid the pass";
    EXPECT_EQ(*norm.running_var().data<float>(), is_training ? 0.0F : 1.0F);
  }
  set_interrupt_check(nullptr);
}

TEST(OperatorThreads, StatisticsAreSetAmidAPassOfTheSameThread) {
  EXPECT_EQ(
      test::run_in_process("OperatorThreads.DISABLED_ANormalisationIsDisturbed", "timeout 60"), 0);
}

TEST(OperatorThreads, StatisticsAreSetAmongPassesThatOverlap) {
  BatchNorm<float> norm;
  const Tensor x = ones({32, 4, 64, 64});
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const Tensor y = empty(x.shape());
      while (!is_over) norm.forward(x, y);
    });
  }
  std::future<void> setting = std::async(std::launch::async, [&] {
    for (int i = 0; i < 20; ++i) {
      norm.set_running_mean(zeros({4}));
      norm.running_mean();
    }
  });
  EXPECT_EQ(setting.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(OperatorThreads, OneOperatorServesManyThreadsWhileItsWeightsChange) {
  Gemm<float> gemm;
  gemm.set_weight(eye(8, 8));
  BatchNorm<float> norm;
  norm.set_gamma(ones({8}));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = full({4, 8}, t + 1.0), y = empty({4, 8});
      for (int i = 0; i < 50; ++i) {
        gemm.forward(x, y);
        const float value = *y.data<float>();  // by one weight or the other, never by a mixture
        wrong += value != static_cast<float>(t + 1) && value != static_cast<float>(8 * (t + 1));
        if (t == 0) gemm.set_weight(i % 2 == 0 ? ones({8, 8}) : eye(8, 8));
        norm.train(t == 1 && i % 2 == 0);
        norm.forward(x, y);
        EXPECT_THROW(gemm.forward(y, y), ExecutionError);  // the last error is shared as well
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(norm.running_mean().is_defined());
  EXPECT_THAT(gemm.last_error(), HasSubstr("shares memory"));
}

}  // namespace
}  // namespace cuop
