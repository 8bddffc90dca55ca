#include "cuop/ops/conv/conv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

/// Small whole numbers: every variant must answer the same bits.
Tensor whole_numbers(const Shape& shape, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> values(-3, 3);
  Tensor t = empty(shape, DType::kFloat32);
  for (int64_t i = 0; i < t.size(); ++i) t.data<float>()[i] = static_cast<float>(values(generator));
  return t;
}

std::vector<float> values(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.size()}; }

std::vector<ConvVariant> runnable() {
  std::vector<ConvVariant> variants{ConvVariant::kGemm, ConvVariant::kDirect};
  if (backend::dnn::info().is_available) variants.push_back(ConvVariant::kOneDnn);
  return variants;
}

TEST(Conv, VariantsAndThreadCountsAgree) {
  const Tensor x = whole_numbers({2, 12, 23, 29}, 1), w = whole_numbers({18, 6, 3, 5}, 2);
  const Tensor bias = whole_numbers({18}, 3);
  ConvOptions options{.stride = {2, 1}, .padding = {2}, .dilation = {1, 2}, .groups = 2};
  options.variant = ConvVariant::kDirect;
  const auto expected = values(conv2d(x, w, &bias, options));
  for (const ConvVariant variant : runnable()) {
    options.variant = variant;
    for (const int threads : {1, 2, 5}) {
      backend::set_thread_count(threads);
      EXPECT_EQ(values(conv2d(x, w, &bias, options)), expected) << name(variant) << ' ' << threads;
    }
  }
  backend::set_thread_count(0);
}

TEST(Conv, RanksThatAreThreadsRunSideBySide) {
  const Tensor x = whole_numbers({1, 16, 14, 14}, 1), w = whole_numbers({16, 16, 3, 3}, 2);
  for (const ConvVariant variant : runnable()) {
    const ConvOptions options{.padding = {1}, .variant = variant};
    const auto expected = values(conv2d(x, w, nullptr, options));
    std::atomic<int> good = 0;
    std::vector<std::thread> ranks;
    for (int r = 0; r < 4; ++r) {
      ranks.emplace_back([&] {
        backend::set_thread_count(1);
        for (int i = 0; i < 20; ++i) good += values(conv2d(x, w, nullptr, options)) == expected;
      });
    }
    for (std::thread& rank : ranks) rank.join();
    EXPECT_EQ(good, 80) << name(variant);
  }
}

TEST(Conv, KeptWeightsServeOtherSizesToo) {
  const Tensor w = whole_numbers({32, 16, 3, 3}, 2);
  for (const ConvVariant variant : runnable()) {
    ConvWeightCache cache;
    for (const int64_t size : {14, 9, 14}) {
      const Tensor x = whole_numbers({1, 16, size, size}, 1);
      ConvOptions options{.variant = variant};
      const auto expected = values(conv2d(x, w, nullptr, options));
      options.cache = &cache;
      EXPECT_EQ(values(conv2d(x, w, nullptr, options)), expected) << name(variant) << size;
    }
  }
}

TEST(Conv, PreparedPrimitivesAreRebuiltAfterRelease) {
  if (!backend::dnn::info().is_available) GTEST_SKIP() << backend::dnn::info().reason;
  const Tensor x = whole_numbers({1, 16, 9, 9}, 1), w = whole_numbers({16, 16, 3, 3}, 2);
  const ConvOptions options{.variant = ConvVariant::kOneDnn};
  const auto before = values(conv2d(x, w, nullptr, options));
  EXPECT_GT(backend::dnn::release(), 0);
  EXPECT_EQ(values(conv2d(x, w, nullptr, options)), before);
}

TEST(Conv, OutputShapeIsKnownBeforehand) {
  const ConvOptions options{.stride = {2}, .padding = {1}};
  EXPECT_EQ(conv_output_shape("conv2d", {4, 3, 224, 224}, {64, 3, 7, 7}, options),
            (Shape{4, 64, 110, 110}));
  EXPECT_THROW(conv_output_shape("conv2d", {4, 3, 2, 2}, {64, 3, 7, 7}, options), ShapeError);
}

TEST(Conv, VariantNamesRoundTrip) {
  for (const ConvVariant v :
       {ConvVariant::kAuto, ConvVariant::kOneDnn, ConvVariant::kGemm, ConvVariant::kDirect}) {
    EXPECT_EQ(parse_conv_variant(name(v)), v);
  }
}

TEST(DnnInfo, NamesTheLibraryOrTheReason) {
  EXPECT_NE(backend::dnn::info().is_available, backend::dnn::info().version.empty());
  EXPECT_NE(backend::dnn::info().is_available, !backend::dnn::info().reason.empty());
}

}  // namespace
}  // namespace cuop
