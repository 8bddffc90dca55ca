// Convolutions of float32 by parts of the elements on matrix units: as accurate as sums in float32,
// and with its range.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <random>

#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/library_use.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/limited.h"
#include "cuop/operators/tuned/chooser.h"
#include "cuop/ops/conv/conv.h"
#include "cuop/ops/conv/split_conv_internal.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/tune/library_tuning.h"
#include "tests/gpu/conv_values.h"
#include "tests/gpu/matrix_units_test.h"
#include "tests/own_cache.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor convolved(const Tensor& x, const Tensor& w, const Tensor* bias, const ConvOptions& options) {
  switch (x.ndim()) {
    case 3:
      return conv1d(x, w, bias, options);
    case 4:
      return conv2d(x, w, bias, options);
    default:
      return conv3d(x, w, bias, options);
  }
}

/// Host tensors.
struct SplitConvProblem {
  Tensor x, w, bias;
  ConvOptions options;

  SplitConvProblem(const Shape& x_shape, const Shape& w_shape, const ConvOptions& given = {},
                   uint32_t seed = 1)
      : x(random_values(x_shape, seed, kSingle)),
        w(random_values(w_shape, seed + 1, kSingle)),
        options(given) {}

  /// Strides, padding and dilation of all kinds, few channels.
  explicit SplitConvProblem(uint32_t seed) {
    std::mt19937 generator(seed);
    const auto pick = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(generator);
    };
    const int spatial = static_cast<int>(pick(1, 3));
    Shape x_shape{pick(1, 4), pick(1, 40)}, w_shape{pick(1, 9), x_shape[1]};
    for (int i = 0; i < spatial; ++i) {
      options.stride.push_back(pick(1, 3));
      options.padding.push_back(pick(0, 5));
      options.dilation.push_back(pick(1, 3));
      w_shape.push_back(pick(1, spatial == 3 ? 3 : 5));
      x_shape.push_back(pick(1, 14) + options.dilation.back() * (w_shape.back() - 1));
    }
    if (pick(0, 1) == 1) options.activation = ConvActivation::kRelu;
    x = random_values(x_shape, seed + 1, kSingle);
    w = random_values(w_shape, seed + 2, kSingle);
    if (pick(0, 1) == 1) bias = random_values({w_shape[0]}, seed + 3, kSingle);
  }

  const Tensor* bias_or_null() const { return bias.is_defined() ? &bias : nullptr; }
};

class GpuSplitConv : public MatrixUnitsTest {
 protected:
  static kernels::ConvSizes sizes_of(const SplitConvProblem& p) {
    kernels::ConvSizes s;
    s.batch = p.x.shape(0);
    s.in_channels = p.x.shape(1);
    s.out_channels = p.w.shape(0);
    s.spatial = p.x.ndim() - 2;
    const Shape y = conv_output_shape("test", p.x.shape(), p.w.shape(), p.options);
    for (int i = 0; i < s.spatial; ++i) {
      const auto axis = static_cast<size_t>(3 - s.spatial + i);
      const auto option = [&](const Dims& given, int64_t fallback) {
        return given.empty() ? fallback : given[given.ndim() == 1 ? 0 : i];
      };
      s.in[axis] = p.x.shape(i + 2);
      s.kernel[axis] = p.w.shape(i + 2);
      s.out[axis] = y[i + 2];
      s.stride[axis] = option(p.options.stride, 1);
      s.padding[axis] = option(p.options.padding, 0);
      s.dilation[axis] = option(p.options.dilation, 1);
    }
    return s;
  }

  /// Into NaN, which must not be read.
  static Tensor by_parts(const SplitConvProblem& p, kernels::SplitConvTileShape tile,
                         int64_t most_blocks = 1000) {
    kernels::Conv conv;
    conv.sizes = sizes_of(p);
    conv.x = gpu(p.x);
    conv.w = gpu(p.w);
    if (p.bias.is_defined()) conv.bias = gpu(p.bias);
    conv.activation = p.options.activation;
    conv.y =
        full(conv_output_shape("test", p.x.shape(), p.w.shape(), p.options), NAN, kSingle, kGpu);
    kernels::split_conv_cuda(conv, kernels::plan_split_conv(conv.sizes, tile, 132), most_blocks);
    return conv.y;
  }

  /// Each element within a few units of rounding of the terms' magnitudes, and one for every block
  /// of the depth behind the first; float32's least number for each term.
  static void expect_sums(const Tensor& y, const SplitConvProblem& p, const std::string& what) {
    const DType wide = DType::kFloat64;
    ConvOptions options = p.options;
    const Tensor bias = p.bias.is_defined() ? cast(p.bias, wide) : Tensor();
    const Tensor* const given_bias = p.bias.is_defined() ? &bias : nullptr;
    const Tensor wanted = convolved(cast(p.x, wide), cast(p.w, wide), given_bias, options);
    options.activation = ConvActivation::kNone;
    const Tensor size_of_bias = p.bias.is_defined() ? abs(bias) : Tensor();
    const Tensor sizes = convolved(abs(cast(p.x, wide)), abs(cast(p.w, wide)),
                                   p.bias.is_defined() ? &size_of_bias : nullptr, options);
    const double steps = static_cast<double>(p.w.size() / p.w.shape(0)) / 32 +
                         static_cast<double>(p.w.size() / p.w.shape(0) / p.w.shape(1));
    expect_rounded(y, wanted, sizes, 8 + steps, steps * 32, what);
  }

  /// What is not finite is what float32's own sums are.
  static void expect_same_kind(const Tensor& y, const SplitConvProblem& p) {
    const Tensor given = to_device(y, kCpu),
                 wanted = convolved(p.x, p.w, p.bias_or_null(), p.options);
    for (int64_t i = 0; i < given.size(); ++i) {
      const float got = given.data<float>()[i], right = wanted.data<float>()[i];
      if (std::isnan(right)) {
        EXPECT_TRUE(std::isnan(got)) << i << ": " << got;
      } else if (std::isinf(right)) {
        EXPECT_EQ(got, right) << i;
      } else {
        EXPECT_NEAR(got, right, 1e-5 * std::max(1.0F, std::abs(right))) << i;
      }
    }
  }
};

TEST_F(GpuSplitConv, EveryTile) {
  ConvOptions options;
  options.padding = {1};
  const SplitConvProblem p({1, 33, 12, 16}, {70, 33, 2, 2}, options);
  for (const auto tile : kernels::kSplitConvTiles) {
    expect_sums(by_parts(p, tile), p, cat(tile.columns, ", ", tile.row_warpgroups));
  }
}

TEST_F(GpuSplitConv, AnySizes) {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    const SplitConvProblem p(seed * 100);
    const auto tile = kernels::kSplitConvTiles[seed % 4];
    const kernels::ConvSizes sizes = sizes_of(p);
    ASSERT_EQ(kernels::split_conv_obstacle(sizes), "");
    expect_sums(
        by_parts(p, tile), p,
        cat("seed ", seed, ", x ", p.x.shape(), ", w ", p.w.shape(), ", stride ", p.options.stride,
            ", padding ", p.options.padding, ", dilation ", p.options.dilation));
  }
}

TEST_F(GpuSplitConv, BlocksGoOnWithTheirNextTiles) {
  ConvOptions options;
  options.padding = {1};
  const SplitConvProblem p({1, 20, 21, 20}, {130, 20, 2, 2}, options);
  expect_sums(by_parts(p, {64, 2}, 3), p, "three blocks");
}

TEST_F(GpuSplitConv, IsAVariant) {
  SplitConvProblem p({2, 5, 9, 8}, {6, 5, 3, 3});
  p.options.variant = ConvVariant::kSplit;
  p.bias = random_values({6}, 7, kSingle);
  const Tensor bias = gpu(p.bias);
  EXPECT_EQ(conv_variant(gpu(p.x), gpu(p.w), p.options), ConvVariant::kSplit);
  const backend::LibraryWatch watch;
  const Tensor y = conv2d(gpu(p.x), gpu(p.w), &bias, p.options);
  EXPECT_FALSE(watch.has_library());
  EXPECT_TRUE(watch.has_matrix_units());
  EXPECT_STREQ(watch.precision(), "bf16x6");
  p.options.variant = ConvVariant::kAuto;
  expect_sums(y, p, "variant");
  p.options.variant = ConvVariant::kSplit;
  const Tensor shifted = misaligned(full(y.shape(), NAN, kSingle));
  conv2d(misaligned(p.x), misaligned(p.w), &bias, p.options, &shifted);
  p.options.variant = ConvVariant::kAuto;
  expect_sums(shifted, p, "misaligned");
}

TEST_F(GpuSplitConv, WhatItCannotDoIsSaid) {
  ConvOptions options;
  options.variant = ConvVariant::kSplit;
  const auto of = [&](const Shape& x, const Shape& w, DType dtype = kSingle) {
    conv2d(zeros(x, dtype, kGpu), zeros(w, dtype, kGpu), nullptr, options);
  };
  EXPECT_THAT(
      [&] {
        of({1, 1, 4, 4}, {1, 1, 2, 2}, DType::kFloat64);
      },
      ThrowsMessage<ExecutionError>(HasSubstr("it is for float32")));
  EXPECT_THAT(
      [&] {
        of({1, 1, 9, 9}, {1, 1, 9, 9});
      },
      ThrowsMessage<ExecutionError>(HasSubstr("at most 64 taps")));
  EXPECT_THAT(
      [&] {
        of({1, 0, 9, 9}, {1, 0, 3, 3});
      },
      ThrowsMessage<ExecutionError>(HasSubstr("x is empty")));
  options.groups = 2;
  EXPECT_THAT(
      [&] {
        of({1, 2, 4, 4}, {2, 1, 2, 2});
      },
      ThrowsMessage<ExecutionError>(HasSubstr("has no groups")));
}

/// float32's whole range, in all images or in one of them.
TEST_F(GpuSplitConv, ElementsOfAnyMagnitude) {
  const std::pair<double, double> factors[] = {{1e37, 1e-30}, {1e-30, 1e37}, {1e-42, 1e30},
                                               {1e18, 1e18},  {1e-36, 1e-5}, {1e-22, 1e-21}};
  for (const auto& [large, small] : factors) {
    SplitConvProblem p({3, 7, 6, 5}, {4, 7, 2, 3});
    p.x = multiply(p.x, large);
    p.w = multiply(p.w, small);
    expect_sums(by_parts(p, {64, 1}), p, cat(large, " * ", small));
    const SplitConvProblem moderate({3, 7, 6, 5}, {4, 7, 2, 3});
    p.w = moderate.w;
    copy_into(slice(p.x, 0, 0, 2), slice(moderate.x, 0, 0, 2));
    expect_sums(by_parts(p, {64, 1}), p, cat(large, " in one image"));
  }
  // Exponents from -38 to 37 within an image: what no power of two serves.
  SplitConvProblem p({2, 5, 9, 7}, {3, 5, 3, 3});
  const Tensor powers = cast(p.x, DType::kFloat64);
  p.x = cast(multiply(exp(multiply(powers, 85.0)), powers), kSingle);
  expect_sums(by_parts(p, {64, 2}), p, "wide");
  for (int64_t i = 0; i < p.x.size(); i += 3) p.x.data<float>()[i] *= i % 2 == 0 ? 1e-38F : 1.0F;
  expect_sums(by_parts(p, {64, 2}), p, "wide, with denormal numbers");
}

TEST_F(GpuSplitConv, InfinitiesAndNan) {
  ConvOptions options;
  options.padding = {1};
  SplitConvProblem p({2, 6, 9, 8}, {5, 6, 3, 3}, options);
  auto* x = p.x.data<float>();
  x[3 * 72 + 10] = kInf;
  x[(6 + 2) * 72 + 40] = -kInf;
  x[(6 + 4) * 72 + 70] = NAN;
  for (const auto tile : kernels::kSplitConvTiles) expect_same_kind(by_parts(p, tile), p);
  // A weight that is infinite meets zeros around x.
  p.w.data<float>()[54 + 7] = kInf;
  p.w.data<float>()[2 * 54 + 7] = NAN;
  expect_same_kind(by_parts(p, {128, 2}), p);
}

TEST_F(GpuSplitConv, SumsOverflowWhereThoseOfFloat32Do) {
  SplitConvProblem p({1, 2, 3, 4}, {2, 2, 1, 1});
  fill(p.x, 3e38);
  fill(p.w, 1.0);
  p.w.data<float>()[2] = -1;  // of channel 1, the sum of which is 0
  expect_same_kind(by_parts(p, {64, 1}), p);
}

TEST_F(GpuSplitConv, NothingIsWrittenBesideTheResult) {
  const SplitConvProblem p({1, 3, 8, 8}, {3, 3, 3, 3});
  const Tensor around = full({3, 3, 6, 6}, 7, kSingle, kGpu);
  const Tensor out = slice(around, 0, 1, 2);
  ConvOptions options;
  options.variant = ConvVariant::kSplit;
  conv2d(gpu(p.x), gpu(p.w), nullptr, options, &out);
  expect_sums(out, p, "between");
  for (const int64_t guard : {0, 2}) {
    EXPECT_THAT(host_values(slice(around, 0, guard, guard + 1)),
                testing::Each(std::complex<double>(7)));
  }
}

/// So plans count them.
TEST_F(GpuSplitConv, TakesTheBytesOfItsParts) {
  for (const auto& [batch, channels, out, side] :
       std::vector<std::array<int64_t, 4>>{{1, 1, 1, 3}, {2, 33, 5, 9}, {3, 32, 130, 7}}) {
    const Tensor x = gpu(random_values({batch, channels, side, side}, 1, kSingle));
    const Tensor w = gpu(random_values({out, channels, 3, 3}, 2, kSingle));
    const Tensor y = full({batch, out, side - 2, side - 2}, NAN, kSingle, kGpu);
    kernels::ConvSizes sizes;
    sizes.batch = batch;
    sizes.in_channels = channels;
    sizes.out_channels = out;
    sizes.groups = 1;
    sizes.spatial = 2;
    sizes.in = {1, side, side};
    sizes.kernel = {1, 3, 3};
    sizes.out = {1, side - 2, side - 2};
    sizes.stride = sizes.dilation = {1, 1, 1};
    sizes.padding = {0, 0, 0};
    ConvOptions options;
    options.variant = ConvVariant::kSplit;
    const auto limited = memory::make_limited(kGpu, int64_t{1} << 30);
    {
      const memory::ResourceScope scope(*limited);
      conv2d(x, w, nullptr, options, &y);
    }
    EXPECT_LE(limited->peak(), kernels::split_conv_bytes(sizes, 132)) << channels << ' ' << out;
    EXPECT_GE(limited->peak(), kernels::split_conv_bytes(sizes, 132) * 9 / 10) << channels;
  }
}

TEST_F(GpuSplitConv, WithoutRoomForPartsItIsAnError) {
  const Tensor x = gpu(random_values({4, 64, 32, 32}, 1, kSingle));
  const Tensor w = gpu(random_values({128, 64, 3, 3}, 2, kSingle));
  const Tensor y = full({4, 128, 30, 30}, NAN, kSingle, kGpu);
  ConvOptions options;
  options.variant = ConvVariant::kSplit;
  const auto limited = memory::make_limited(kGpu, 1 << 20);
  const memory::ResourceScope scope(*limited);
  EXPECT_THROW(conv2d(x, w, nullptr, options, &y), MemoryError);
}

/// Too long for a simulated GPU (tests/gpu_tests.cmake): what `conv2d` does by itself.
TEST_F(GpuSplitConv, ServesLargeConvolutions) {
  for (const int64_t stride : {1, 2}) {
    ConvOptions options;
    options.padding = {1};
    options.stride = {stride};
    const SplitConvProblem p({16, 64, 112, 112}, {128 * stride, 64, 3, 3}, options);
    const Tensor x = gpu(p.x), w = gpu(p.w);
    EXPECT_EQ(conv_variant(x, w, options), ConvVariant::kSplit);
    const Tensor served = conv2d(x, w, nullptr, options);
    expect_sums(served, p, cat("stride ", stride));
    // Without room for parts cuDNN convolves.
    const Tensor y = full(served.shape(), NAN, kSingle, kGpu);
    const auto limited = memory::make_limited(kGpu, 1 << 20);
    const memory::ResourceScope scope(*limited);
    expect_sums(conv2d(x, w, nullptr, options, &y), p, cat("without room, stride ", stride));
  }
}

/// As long as that.
TEST_F(GpuSplitConv, IsAmongTheCandidatesOfASearch) {
  if (backend::cuda_library_version(backend::CudaLibrary::kCudnn).empty()) {
    GTEST_SKIP() << "needs cuDNN";
  }
  const test::OwnCache cache;
  forget_choices();
  for (const int64_t channels : {48, 128}) {
    ConvOptions options;
    options.padding = {1};
    const SplitConvProblem p({8, channels, 56, 56}, {channels, channels, 3, 3}, options);
    const Tensor x = gpu(p.x), w = gpu(p.w);
    tune::LibraryTuning tuning(3, 60.0);
    expect_sums(conv2d(x, w, nullptr, options), p, "while it searches");
    EXPECT_THAT(tuning.text(), HasSubstr("parts on matrix units"));
    const bool is_split = tuning.fastest() == "parts on matrix units";
    EXPECT_EQ(conv_variant(x, w, options), is_split ? ConvVariant::kSplit : ConvVariant::kCudnn);
    expect_sums(conv2d(x, w, nullptr, options), p, "by the winner");
  }
  forget_choices();
}

}  // namespace
}  // namespace cuop
