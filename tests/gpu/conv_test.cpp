// Convolutions of a GPU against those of the CPU.
#include "cuop/ops/conv/conv.h"

#include <gmock/gmock.h>

#include "cuop/core/error.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor gpu(const Tensor& t) { return to_device(t, kGpu); }

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-13;
    case DType::kFloat16:
      return 2e-3;
    case DType::kBFloat16:
      return 1.6e-2;
    default:
      return 1e-5;  // TF32 is off by more than 1e-4
  }
}

class GpuConv : public GpuTest {};

TEST_F(GpuConv, EveryDtypeAgreesWithTheCpu) {
  const struct {
    Shape x, w;
    Dims stride, padding, dilation;
    int64_t groups;
  } cases[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1}, {0}, {1}, 1},
      {{2, 3, 17, 13}, {5, 3, 3, 3}, {1}, {1}, {1}, 1},
      {{3, 8, 20, 20}, {16, 8, 5, 3}, {2, 1}, {2, 0}, {1}, 1},
      {{2, 6, 19, 23}, {6, 1, 3, 3}, {1}, {1}, {2}, 6},
      {{2, 8, 9, 9}, {4, 4, 1, 1}, {1}, {0}, {1}, 2},
      {{1, 64, 14, 14}, {32, 64, 3, 3}, {1}, {1}, {1}, 1},
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    uint32_t seed = 1;
    for (const auto& c : cases) {
      const Tensor x = random_values(c.x, ++seed, dtype), w = random_values(c.w, ++seed, dtype);
      const Tensor bias = random_values({c.w[0]}, ++seed, dtype);
      ConvOptions options;
      options.stride = c.stride;
      options.padding = c.padding;
      options.dilation = c.dilation;
      options.groups = c.groups;
      const Tensor gpu_bias = gpu(bias);
      expect_close(conv2d(gpu(x), gpu(w), nullptr, options), conv2d(x, w, nullptr, options),
                   tolerance_of(dtype));
      expect_close(conv2d(gpu(x), gpu(w), &gpu_bias, options), conv2d(x, w, &bias, options),
                   tolerance_of(dtype));
    }
  }
}

TEST_F(GpuConv, OneAndThreeAxes) {
  const Tensor x1 = random_values({2, 3, 50}, 1, DType::kFloat32);
  const Tensor w1 = random_values({4, 3, 7}, 2, DType::kFloat32);
  ConvOptions options;
  options.stride = {2};
  options.padding = {3};
  expect_close(conv1d(gpu(x1), gpu(w1), nullptr, options), conv1d(x1, w1, nullptr, options), 1e-5);
  const Tensor x3 = random_values({2, 3, 1, 9, 8}, 3, DType::kFloat32);
  const Tensor w3 = random_values({4, 3, 1, 3, 3}, 4, DType::kFloat32);
  options.stride = {4, 1, 1};
  options.padding = {1, 1, 1};
  expect_close(conv3d(gpu(x3), gpu(w3), nullptr, options), conv3d(x3, w3, nullptr, options), 1e-5);
}

TEST_F(GpuConv, WritesIntoWhatItIsGivenAndNothingElse) {
  const Tensor x = random_values({1, 2, 8, 8}, 1, DType::kFloat32);
  const Tensor w = random_values({3, 2, 3, 3}, 2, DType::kFloat32);
  const Tensor around = full({3, 3, 6, 6}, 7, DType::kFloat32, kGpu);
  const Tensor out = slice(around, 0, 1, 2);
  conv2d(gpu(x), gpu(w), nullptr, {}, &out);
  expect_close(out, conv2d(x, w), 1e-5);
  for (const int64_t guard : {0, 2}) {
    EXPECT_THAT(host_values(slice(around, 0, guard, guard + 1)),
                testing::Each(std::complex<double>(7)));
  }
}

TEST_F(GpuConv, WhatCudnnLacksIsSaid) {
  const Tensor x = zeros({1, 1, 4, 4}, DType::kInt32, kGpu);
  EXPECT_THAT([&] { conv2d(x, x); },
              ThrowsMessage<NotImplementedError>(HasSubstr("cuDNN convolves floating dtypes")));
  const Tensor f = zeros({1, 1, 4, 4}, DType::kFloat32, kGpu);
  ConvOptions options;
  options.variant = ConvVariant::kGemm;
  EXPECT_THAT([&] { conv2d(f, f, nullptr, options); },
              ThrowsMessage<ExecutionError>(HasSubstr("which has 'cudnn'")));
  EXPECT_EQ(conv_variant(f, f, {}), ConvVariant::kCudnn);
}

}  // namespace
}  // namespace cuop
