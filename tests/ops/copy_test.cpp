#include "cuop/ops/copy/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop {
namespace {

/// Row-major elements as doubles, read one by one through the layout.
std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> result;
  visit_dtype(RealTypes{}, tensor.dtype(), "elements", [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<int64_t> index(static_cast<size_t>(tensor.ndim()), 0);
    for (int64_t n = 0; n < tensor.size(); ++n) {
      int64_t rest = n, offset = 0;
      for (int i = tensor.ndim() - 1; i >= 0; --i) {
        offset += (rest % tensor.shape(i)) * tensor.strides()[i];
        rest /= tensor.shape(i);
      }
      result.push_back(static_cast<double>(tensor.data<T>()[offset]));
    }
  });
  return result;
}

Tensor counting(const Shape& shape, DType dtype) {
  return reshape(arange(0, element_count(shape), 1, dtype), shape);
}

constexpr DType kSizes[] = {DType::kUInt8, DType::kInt16, DType::kFloat32, DType::kInt64};

TEST(Copy, EveryPermutationOfEveryElementSize) {
  for (DType dtype : kSizes) {
    const Tensor source = counting({5, 3, 17}, dtype);
    std::vector<int64_t> axes{0, 1, 2};
    do {
      const Tensor view = permute(source, axes);
      const Tensor copy = clone(view);
      EXPECT_TRUE(copy.is_contiguous());
      EXPECT_EQ(elements(copy), elements(view));
    } while (std::next_permutation(axes.begin(), axes.end()));
  }
}

TEST(Copy, LargeTransposesGoThroughTiles) {
  for (const Shape& shape : {Shape{301, 203}, Shape{1, 500}, Shape{4, 65, 131}, Shape{2048, 33}}) {
    const Tensor view = transpose(counting(shape, DType::kFloat32));
    EXPECT_EQ(elements(clone(view)), elements(view));
  }
  // More than the caches hold, into what is in order and what is not.
  const Tensor given = cast(counting({601, 523}, DType::kInt32), DType::kComplex128);
  const Tensor wide = zeros({523, 601, 2}, DType::kComplex128);
  for (const Tensor& to : {empty({523, 601}, DType::kComplex128), select(wide, 2, 1)}) {
    copy_into(to, transpose(given));
    const auto* const values = to.data<std::complex<double>>();
    for (int64_t i = 0; i < 523; ++i) {
      for (int64_t j = 0; j < 601; ++j) {
        const auto expected = static_cast<double>(j * 523 + i);
        ASSERT_EQ(values[i * to.strides()[0] + j * to.strides()[1]], expected) << i << ' ' << j;
      }
    }
  }
}

TEST(Copy, TransposesOfEveryElementSizeKeepEachElement) {
  for (const DType dtype : {DType::kUInt8, DType::kInt16, DType::kFloat32, DType::kComplex128}) {
    // Less than a square of a cache line on either side, some and a rest, several strips.
    for (const Shape& shape : {Shape{8, 8}, Shape{9, 67}, Shape{130, 70}, Shape{3, 65, 64}}) {
      const Tensor given = cast(counting(shape, DType::kInt32), dtype);
      std::vector<int64_t> axes(static_cast<size_t>(given.ndim()));
      std::iota(axes.begin(), axes.end(), 0);
      std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
      const Tensor copy = clone(permute(given, axes));
      for (int64_t i = 0; i < copy.size(); ++i) {
        const int64_t columns = copy.shape(copy.ndim() - 1), rows = copy.shape(copy.ndim() - 2);
        const int64_t block = i / (rows * columns), in_block = i % (rows * columns);
        const int64_t from =
            block * rows * columns + in_block % columns * rows + in_block / columns;
        ASSERT_EQ(std::memcmp(static_cast<const char*>(copy.data()) + i * itemsize(dtype),
                              static_cast<const char*>(given.data()) + from * itemsize(dtype),
                              static_cast<size_t>(itemsize(dtype))),
                  0)
            << dtype << ' ' << shape << ' ' << i;
      }
    }
  }
}

TEST(Copy, BroadcastsNegativeStridesAndWindows) {
  const Tensor target = zeros({4, 3, 5}, DType::kFloat64);
  copy_into(target, slice(counting({5}, DType::kInt32), 0, {}, {}, -1));
  for (int64_t i = 0; i < target.size(); ++i) {
    EXPECT_EQ(target.data<double>()[i], static_cast<double>(4 - i % 5));
  }
  const Tensor window = slice(slice(target, 0, 1, 3), 2, 0, 5, 2);
  copy_into(window, full({}, 9, DType::kUInt8));
  for (double value : elements(window)) EXPECT_EQ(value, 9.0);
  EXPECT_EQ(target.data<double>()[0], 4.0);
}

TEST(Copy, ConvertsAsAstype) {
  const Tensor source = from_values<float>({5}, {1.9f, -1.9f, 300.0f, 0.0f, NAN});
  EXPECT_EQ(elements(cast(source, DType::kInt32))[0], 1.0);
  EXPECT_EQ(elements(cast(source, DType::kInt32))[1], -1.0);
  EXPECT_EQ(elements(cast(source, DType::kUInt8))[2], 44.0);
  EXPECT_EQ(elements(cast(source, DType::kBool)), (std::vector<double>{1, 1, 1, 0, 1}));
}

TEST(Copy, TransposesAreConvertedElementByElement) {
  // Parts of a tile, tiles and a rest, into what is in order and what is not.
  for (const Shape& shape : {Shape{8, 9}, Shape{70, 600}, Shape{601, 65}, Shape{3, 65, 130}}) {
    for (const DType from : {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kInt64}) {
      for (const DType to : {DType::kInt8, DType::kFloat32, DType::kFloat64}) {
        if (from == to) continue;
        // Up to 100, which all of them hold.
        const Tensor given = cast(remainder(counting(shape, DType::kInt32), 101), from);
        std::vector<int64_t> axes(static_cast<size_t>(given.ndim()));
        std::iota(axes.begin(), axes.end(), 0);
        std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
        const Tensor view = permute(given, axes);
        EXPECT_EQ(elements(cast(view, to)), elements(view)) << from << ' ' << to << ' ' << shape;
        Shape wide = view.shape();
        wide.push_back(2);
        const Tensor spaced = select(zeros(wide, to), view.ndim(), 1);
        copy_into(spaced, view);
        EXPECT_EQ(elements(spaced), elements(view)) << from << ' ' << to << ' ' << shape;
      }
    }
  }
}

TEST(Copy, OverlappingViewsAreCopiedAsIfThroughATemporary) {
  const Tensor line = counting({10}, DType::kInt64);
  copy_into(slice(line, 0, 1, 10), slice(line, 0, 0, 9));
  EXPECT_EQ(elements(line), (std::vector<double>{0, 0, 1, 2, 3, 4, 5, 6, 7, 8}));
  copy_into(line, slice(line, 0, {}, {}, -1));
  EXPECT_EQ(elements(line), (std::vector<double>{8, 7, 6, 5, 4, 3, 2, 1, 0, 0}));
}

TEST(Copy, GoesToANewTensorOrToOut) {
  const Tensor line = counting({4}, DType::kInt64);
  const Tensor reversed = slice(line, 0, {}, {}, -1);
  const Tensor fresh = copy(reversed);
  EXPECT_TRUE(fresh.is_contiguous() && fresh.storage() != line.storage());
  EXPECT_EQ(elements(copy(reversed, &line)), (std::vector<double>{3, 2, 1, 0}));
  EXPECT_EQ(elements(line), (std::vector<double>{3, 2, 1, 0}));
  const Tensor narrow = zeros({4}, DType::kInt32);
  EXPECT_THROW(copy(line, &narrow), DTypeError);
}

TEST(Copy, RefusesBadTargets) {
  EXPECT_THROW(copy_into(zeros({3}), zeros({2})), ShapeError);
  EXPECT_THROW(copy_into(broadcast_to(zeros({1}), Shape{4}), zeros({4})), ExecutionError);
  float cell = 0;
  const Tensor fixed =
      from_memory(&cell, contiguous_layout({1}), DType::kFloat32, kCpu, nullptr, true);
  EXPECT_THROW(fill(fixed, 1), ExecutionError);
  EXPECT_EQ(cell, 0.0f);
}

TEST(Create, SizesThatCannotBe) {
  EXPECT_THROW(empty({-1}), ShapeError);
  EXPECT_THROW(empty({int64_t{1} << 61, 4}, DType::kFloat64), ShapeError);
  EXPECT_THROW(empty({int64_t{1} << 60}, DType::kComplex128), ShapeError);
  EXPECT_THROW(empty({int64_t{1} << 45}), MemoryError);
  EXPECT_EQ(zeros({0, 5}).size(), 0);
  EXPECT_THROW(empty({1}, DType::kFloat32, Device{DeviceType::kCuda, kMaxDevices - 1}),
               DeviceError);
}

/// All powers of a base from it to the last one.
std::vector<double> powers(double base, double first, double last, int64_t count) {
  const Tensor x = logspace(first, last, count, base, DType::kFloat64);
  return {x.data<double>(), x.data<double>() + count};
}

TEST(Create, PowersThatAreDoublesAreExact) {
  for (const double base : {2.0, 3.0, 7.0, 10.0, -10.0, 0.5}) {
    const std::vector<double> given = powers(base, 0, 15, 16);
    double wanted = 1.0;
    for (size_t i = 0; i < 16; ++i, wanted *= base) EXPECT_EQ(given[i], wanted) << base << ' ' << i;
  }
  const Tensor whole = logspace(0, 18, 19, 10, DType::kInt64);
  uint64_t wanted = 1;  // the power behind the last is beyond int64
  for (int64_t i = 0; i < 19; ++i, wanted *= 10) {
    EXPECT_EQ(whole.data<int64_t>()[i], static_cast<int64_t>(wanted));
  }
}

TEST(Create, PowersAreTheLibrarysToTheLastPlaceOrTwo) {
  for (const double base : {10.0, 1.0191, 0.001, 1e300, 5e-310}) {
    const std::vector<double> given = powers(base, -1.1, 0.97, 1001);
    for (size_t i = 0; i < given.size(); ++i) {
      const double wanted = std::pow(base, -1.1 + static_cast<double>(i) * (2.07 / 1000.0));
      if (!(wanted > 1e-300) || std::isinf(wanted)) continue;
      EXPECT_NEAR(given[i] / wanted, 1.0, 1e-12) << base << ' ' << i;  // of exponents' rounding
    }
  }
  for (const double base : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, double{NAN}, 1.0, -1.0, -2.5, 1e300}) {
    for (const double exponent : {0.0, 1.0, 2.0, -3.0, 2.5, -2.5, 800.0, -800.0}) {
      const double given = powers(base, exponent, exponent, 1)[0],
                   wanted = std::pow(base, exponent);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(given)) << base << ' ' << exponent;
      } else if (wanted == 0.0 || std::isinf(wanted)) {
        EXPECT_EQ(given, wanted) << base << ' ' << exponent;
        EXPECT_EQ(std::signbit(given), std::signbit(wanted)) << base << ' ' << exponent;
      } else {
        EXPECT_DOUBLE_EQ(given, wanted) << base << ' ' << exponent;
      }
    }
  }
}

TEST(Create, Sequences) {
  EXPECT_EQ(elements(arange(5, 0, -2, DType::kInt16)), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(elements(arange(0.0, 1.0, 0.25, DType::kFloat32)),
            (std::vector<double>{0, 0.25, 0.5, 0.75}));
  EXPECT_THROW(arange(0, 1, 0, DType::kInt32), ExecutionError);
  EXPECT_EQ(elements(linspace(0, 1, 3)), (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(elements(eye(2, 3, 1)), (std::vector<double>{0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(elements(eye(3, 2, -2)), (std::vector<double>{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(elements(eye(2, 2, 5)), (std::vector<double>{0, 0, 0, 0}));
}

TEST(Output, IsCheckedBeforeItIsUsed) {
  const Tensor good = zeros({2, 3});
  EXPECT_EQ(prepare_output("op", &good, {2, 3}, DType::kFloat32, kCpu).data(), good.data());
  EXPECT_THROW(prepare_output("op", &good, {3, 2}, DType::kFloat32, kCpu), ShapeError);
  EXPECT_THROW(prepare_output("op", &good, {2, 3}, DType::kFloat64, kCpu), DTypeError);
  const Tensor stretched = broadcast_to(zeros({1, 3}), Shape{2, 3});
  EXPECT_THROW(prepare_output("op", &stretched, {2, 3}, DType::kFloat32, kCpu), ExecutionError);
  EXPECT_THROW(check_no_overlap("op", good, good, "x"), ExecutionError);
  EXPECT_NO_THROW(check_same_or_no_overlap("op", good, good, "x"));
  EXPECT_THROW(check_same_or_no_overlap("op", slice(good, 1, 0, 2), slice(good, 1, 1, 3), "x"),
               ExecutionError);
}

TEST(View, Errors) {
  const Tensor t = counting({3, 4}, DType::kFloat32);
  EXPECT_THROW(view(transpose(t), {12}), ShapeError);
  EXPECT_THROW(select(t, 0, 3), IndexError);
  EXPECT_THROW(select(t, 2, 0), ShapeError);
  const std::array<int64_t, 1> axis{0};
  EXPECT_THROW(squeeze(t, axis), ShapeError);
  const Tensor single = reshape(t, {1, 3, 1, 4});
  EXPECT_EQ(squeeze(single).shape(), (Shape{3, 4}));
  EXPECT_EQ(squeeze(single, std::span<const int64_t>()).shape(), single.shape());
  EXPECT_EQ(squeeze(single, axis).shape(), (Shape{3, 1, 4}));
  EXPECT_THROW(slice(t, 0, 0, 1, 0), ExecutionError);
  EXPECT_EQ(slice(t, 0, 5, 9).shape(), (Shape{0, 4}));
  EXPECT_EQ(flatten(t, 1).shape(), (Shape{3, 4}));
  EXPECT_EQ(flatten(zeros({})).shape(), (Shape{1}));
}

}  // namespace
}  // namespace cuop
