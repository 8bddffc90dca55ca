// The text of the GPU's direct convolution, run on the host beside the CPU's kernels.
#include <gtest/gtest.h>

#include <random>

#include "cuop/ops/conv/conv_kernels.h"
#include "tests/gpu/compare.h"
#include "tests/jit/host_text.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/conv/conv.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

using test::random_tensor;

ConvSizes random_sizes(std::mt19937& random) {
  const auto pick = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint64_t>(most - least + 1));
  };
  ConvSizes s;
  s.batch = pick(1, 3);
  s.groups = pick(1, 3);
  s.in_channels = s.groups * pick(0, 5);
  s.out_channels = s.groups * pick(1, 10);
  for (size_t i = 0; i < 3; ++i) {
    s.kernel[i] = pick(1, 4);
    s.dilation[i] = pick(1, 3);
    s.stride[i] = pick(1, 3);
    s.padding[i] = pick(0, 3);
    const int64_t reach = s.dilation[i] * (s.kernel[i] - 1) + 1;
    s.in[i] = std::max<int64_t>(1, reach + pick(0, 6) - 2 * s.padding[i]);
    s.out[i] = (s.in[i] + 2 * s.padding[i] - reach) / s.stride[i] + 1;
  }
  return s;
}

template <class T, class Index>
void run_conv_text(const DirectConvPlan& plan) {
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(plan.arguments.tiles, 2));
  test::run_together(blocks, jit::kConvThreads, [&] {
    if (plan.own == 1) {
      jit::convolve_direct<T, 1, Index>(plan.arguments);
    } else {
      jit::convolve_direct<T, sizeof(T) == 16 ? 4 : 8, Index>(plan.arguments);
    }
  });
}

template <class T>
void expect_cpu_convolutions(unsigned seed, double ulps) {
  std::mt19937 random(seed);
  const DType dtype = dtype_of<T>, computed = compute_dtype(dtype);
  for (int round = 0; round < 6; ++round) {
    const ConvSizes s = random_sizes(random);
    const auto shape = [](int64_t first, int64_t second, const ConvSizes::Axes& axes) {
      return Shape{first, second, axes[0], axes[1], axes[2]};
    };
    Conv conv;
    conv.sizes = s;
    conv.x = random_tensor(shape(s.batch, s.in_channels, s.in), dtype, round);
    conv.w = random_tensor(shape(s.out_channels, s.group_in(), s.kernel), dtype, round + 1);
    if (round % 2 == 0) conv.bias = random_tensor({s.out_channels}, dtype, round + 2);
    conv.y = full(shape(s.batch, s.out_channels, s.out), 77, dtype);
    if (round >= 2 && !is_complex(dtype)) conv.activation = ConvActivation::kRelu;
    const DirectConvPlan plan = plan_direct_conv(conv);
    EXPECT_FALSE(plan.is_wide);
    if (round < 3) {
      run_conv_text<T, int32_t>(plan);
    } else {
      run_conv_text<T, int64_t>(plan);
    }
    Conv wanted = conv;
    wanted.x = cast(conv.x, computed);
    wanted.w = cast(conv.w, computed);
    if (conv.bias.is_defined()) wanted.bias = cast(conv.bias, computed);
    wanted.y = empty(conv.y.shape(), computed);
    conv_cpu(wanted, is_complex(dtype) ? ConvVariant::kGemm : ConvVariant::kDirect);
    // Sums of other orders: the last places count from the largest sums, not from each.
    const Tensor a = cast(conv.y, DType::kComplex128);
    const Tensor b = cast(cast(wanted.y, dtype), DType::kComplex128);
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < a.size(); ++i) {
      const auto mine = a.data<std::complex<double>>()[i],
                 theirs = b.data<std::complex<double>>()[i];
      worst = std::max(worst, std::abs(mine - theirs));
      largest = std::max(largest, std::abs(theirs));
    }
    EXPECT_LE(worst, ulps * test::epsilon(dtype) * largest) << dtype << ", round " << round;
  }
}

TEST(ConvText, DirectConvolutionsAreTheCpus) {
  expect_cpu_convolutions<int8_t>(1, 0);
  expect_cpu_convolutions<uint16_t>(2, 0);
  expect_cpu_convolutions<int32_t>(3, 0);
  expect_cpu_convolutions<uint64_t>(4, 0);
  expect_cpu_convolutions<Half>(5, 2);
  expect_cpu_convolutions<BFloat16>(6, 2);
  expect_cpu_convolutions<float>(7, 8);
  expect_cpu_convolutions<double>(8, 8);
  expect_cpu_convolutions<std::complex<float>>(9, 16);
  expect_cpu_convolutions<std::complex<double>>(10, 16);
}

TEST(ConvText, HugePaddingNeedsWideIndices) {
  Conv conv;
  ConvSizes& s = conv.sizes;
  s.batch = s.in_channels = s.out_channels = 1;
  s.padding = {0, 100000, 100000};
  s.stride = {1, 200001, 200001};
  s.in = {1, 3, 3};
  conv.x = conv.w = conv.y = zeros({1}, DType::kInt32);
  EXPECT_TRUE(plan_direct_conv(conv).is_wide);
}

}  // namespace
}  // namespace cuop::kernels
