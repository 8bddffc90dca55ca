// The operator objects as C++ users see them; results are tested in depth from Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

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
  const Tensor pooled = MaxPool2D<TypeParam>().forward(y, empty({1, 2, 1, 1}, this->kDType), 4, 4);
  EXPECT_THAT(this->values(pooled), ElementsAre(9, 0));
  const Tensor mean = GlobalAveragePool2D<TypeParam>().forward(image, empty({1, 1}, this->kDType));
  EXPECT_THAT(this->values(mean), ElementsAre(1));
  LayerNorm<TypeParam> norm(0.0);
  norm.set_gamma(ones({2}, this->kDType));
  const Tensor row = from_values<TypeParam>({1, 2}, {-3, 5});
  EXPECT_THAT(this->values(norm.forward(row, row)), ElementsAre(-1, 1));
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
