// Numbers that a dtype cannot hold, and conversions of whole tensors, which cut instead.
#include "tests/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/error.h"
#include "cuop/core/to_integer.h"
#include "cuop/jit/cpu/block_kernels.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"
#include "tests/jit/levels.h"

namespace cuop {
namespace {

using test::error_of;
using test::values;
using testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr uint64_t kLarge = uint64_t{1} << 63;

TEST(Values, NumbersThatDoNotFitAreRefusedByName) {
  EXPECT_EQ(error_of<OverflowError>([] { full({2}, 300, DType::kInt8); }),
            "full: the number 300 does not fit dtype int8, which holds -128 to 127");
  EXPECT_EQ(error_of<OverflowError>([] { fill(zeros({2}, DType::kUInt8), -1); }),
            "fill: the number -1 does not fit dtype uint8, which holds 0 to 255");
  EXPECT_EQ(error_of<OverflowError>([] {
              const std::pair<int64_t, int64_t> one[] = {{1, 1}};
              pad(zeros({2}, DType::kInt16), one, PadMode::kConstant, 1e5);
            }),
            "pad: the number 100000 does not fit dtype int16, which holds -32768 to 32767");
  EXPECT_EQ(error_of<OverflowError>([] { arange(0, 129, 1, DType::kInt8); }),
            "arange: the number 128 does not fit dtype int8, which holds -128 to 127");
  EXPECT_EQ(error_of<OverflowError>([] { linspace(0, -1, 3, DType::kUInt32); }),
            "linspace: the number -1 does not fit dtype uint32, which holds 0 to 4294967295");
  EXPECT_EQ(error_of<OverflowError>([] { logspace(0, 3, 4, 10, DType::kUInt8); }),
            "logspace: the number 1000 does not fit dtype uint8, which holds 0 to 255");
  EXPECT_EQ(error_of<OverflowError>([] { logspace(0, 2, 3, -10, DType::kUInt8); }),
            "logspace: the number -10 does not fit dtype uint8, which holds 0 to 255");
  EXPECT_EQ(error_of<OverflowError>([] { add(zeros({2}, DType::kInt8), 200); }),
            "add: the number 200 does not fit dtype int8, which holds -128 to 127");
  for (const double bad : {kNan, kInf, -kInf, 0x1p63, 1e30}) {
    EXPECT_THROW(full({}, bad, DType::kInt64), OverflowError) << bad;
    EXPECT_THROW(full({}, bad, DType::kInt32), OverflowError) << bad;
  }
  EXPECT_THROW(full({}, std::complex<double>(1, 1), DType::kFloat32), DTypeError);
}

TEST(Values, TheLimitsOfEveryIntegerDTypeFit) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    visit_dtype(IntegerTypes{}, dtype, "test", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
      const auto low_wide = static_cast<int64_t>(low);
      const auto high_wide = static_cast<uint64_t>(high);
      EXPECT_EQ(*full({}, low_wide, dtype).template data<T>(), low);
      EXPECT_EQ(*full({}, high_wide, dtype).template data<T>(), high);
      if constexpr (!std::is_same_v<T, uint64_t>) {
        EXPECT_THROW(full({}, high_wide + 1, dtype), OverflowError);
      }
      if constexpr (!std::is_same_v<T, int64_t>) {
        EXPECT_THROW(full({}, low_wide - 1, dtype), OverflowError);
      }
      // Fractions are cut off before the limits are asked.
      if constexpr (sizeof(T) < 8) {
        const double edge = static_cast<double>(high) + 0.5, below = static_cast<double>(low) - 0.5;
        EXPECT_EQ(*full({}, edge, dtype).template data<T>(), high);
        EXPECT_EQ(*full({}, below, dtype).template data<T>(), low);
        EXPECT_THROW(full({}, edge + 0.5, dtype), OverflowError);
      }
    });
  }
}

TEST(Values, LargeNumbersAreUint64) {
  EXPECT_EQ(*full({}, kLarge + 1, DType::kUInt64).data<uint64_t>(), kLarge + 1);
  EXPECT_EQ(*full({}, 0x1p63, DType::kUInt64).data<uint64_t>(), kLarge);
  EXPECT_EQ(*full({}, kLarge, DType::kFloat32).data<float>(), 0x1p63f);
  EXPECT_EQ(Scalar(kLarge).natural_dtype(), DType::kUInt64);
  EXPECT_EQ(Scalar(uint64_t{7}).natural_dtype(), DType::kInt64);
  const Tensor wide = full({3}, kLarge, DType::kUInt64);
  EXPECT_THAT(values<uint64_t>(add(wide, kLarge - 1)),
              ElementsAre(2 * kLarge - 1, 2 * kLarge - 1, 2 * kLarge - 1));
  EXPECT_THROW(add(zeros({3}, DType::kInt64), Scalar(kLarge)), OverflowError);
}

TEST(Values, ComparingWithLargeNumbersIsExact) {
  const int64_t top = std::numeric_limits<int64_t>::max();
  const Tensor x = from_values<int64_t>({3}, {top, -1, 0});
  EXPECT_THAT(values<bool>(equal(x, Scalar(kLarge))), ElementsAre(false, false, false));
  EXPECT_THAT(values<bool>(less(x, Scalar(kLarge))), ElementsAre(true, true, true));
  EXPECT_THAT(values<bool>(less(Scalar(kLarge), x)), ElementsAre(false, false, false));
  const Tensor small = from_values<uint8_t>({1}, {255});
  EXPECT_THAT(values<bool>(greater(Scalar(kLarge), small)), ElementsAre(true));
}

TEST(Values, SequencesThatNoMemoryHoldsAreRefusedByName) {
  constexpr int64_t kFar = int64_t{1} << 62;
  EXPECT_EQ(error_of<ShapeError>([] { arange(0, kFar, 2, DType::kInt64); }),
            "arange: 2.30584e+18 elements are too many");
  EXPECT_EQ(error_of<ShapeError>([] { arange(0.0, 0x1p61, 1.0, DType::kFloat64); }),
            "arange: 2.30584e+18 elements are too many");
  EXPECT_EQ(error_of<ShapeError>([] { linspace(0, 1, kFar, DType::kFloat32); }),
            "linspace: 4611686018427387904 * 4 does not fit in 64 bits");
}

TEST(Values, ArangeIsExactOverTheWholeRange) {
  const int64_t low = std::numeric_limits<int64_t>::min();
  const int64_t top = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(values<uint64_t>(arange(kLarge - 1, kLarge + 2, 1, DType::kUInt64)),
              ElementsAre(kLarge - 1, kLarge, kLarge + 1));
  EXPECT_THAT(values<int64_t>(arange(low, top, int64_t{1} << 62, DType::kInt64)),
              ElementsAre(low, low / 2, 0, -(low / 2)));
  EXPECT_THAT(values<double>(arange(-1, ~uint64_t{0}, kLarge, DType::kFloat64)),
              ElementsAre(-1.0, 0x1p63));
  EXPECT_THAT(values<int64_t>(arange(2, low, low, DType::kInt64)), ElementsAre(2, low + 2));
  EXPECT_THROW(arange(low, top, 1, DType::kInt64), ShapeError);
  EXPECT_THROW(arange(kLarge, kLarge + 1, 1, DType::kInt64), OverflowError);
  EXPECT_EQ(arange(kLarge, 0, 1, DType::kInt8).size(), 0);
}

TEST(Values, CastExactlyRefusesWhatCastCuts) {
  const Tensor x = from_values<int64_t>({2}, {300, 1});
  EXPECT_THAT(values<int8_t>(cast(x, DType::kInt8)), ElementsAre(44, 1));
  EXPECT_EQ(error_of<OverflowError>([&] { cast_exactly("test", x, DType::kInt8); }),
            "test: the number 300 does not fit dtype int8, which holds -128 to 127");
  EXPECT_THAT(values<int16_t>(cast_exactly("test", x, DType::kInt16)), ElementsAre(300, 1));
  const Tensor floats = from_values<double>({2}, {1.9, kNan});
  EXPECT_THROW(cast_exactly("test", floats, DType::kInt64), OverflowError);
  EXPECT_NO_THROW(cast_exactly("test", floats, DType::kFloat16));
  EXPECT_THROW(cast_exactly("test", full({1}, kLarge, DType::kUInt64), DType::kInt64),
               OverflowError);
}

TEST(Values, DroppingImaginaryPartsIsRefused) {
  const Tensor z = full({2}, std::complex<double>(1, 2), DType::kComplex128);
  EXPECT_THROW(cast(z, DType::kFloat64), DTypeError);
  EXPECT_THROW(copy_into(zeros({2}), z), DTypeError);
  EXPECT_THROW(cast_exactly("test", z, DType::kInt8), DTypeError);
  EXPECT_THAT(values<bool>(cast(z, DType::kBool)), ElementsAre(true, true));
}

/// What to_integer promises, said once more in other words.
template <class To>
To expected(double x) {
  if (!(std::abs(x) < 0x1p65)) x = -0x1p63;
  const bool is_uint64 = std::is_same_v<To, uint64_t>;
  if (x >= (is_uint64 ? 0x1p64 : 0x1p63) || x < -0x1p63) x = -0x1p63;
  const double whole = std::trunc(x);
  return whole < 0 ? static_cast<To>(0 - static_cast<uint64_t>(-whole))
                   : static_cast<To>(static_cast<uint64_t>(whole));
}

template <class From>
std::vector<From> awkward() {
  std::vector<From> list;
  for (const double x :
       {0.0,     0.9,     1.5,        127.0,    128.0,         255.9,  256.0,         300.7,
        32768.0, 65536.0, 0x1p31 - 1, 0x1p31,   0x1p31 + 4096, 0x1p32, 0x1p32 + 8192, 1e10,
        0x1p52,  0x1p62,  0x1p63,     0x1.8p63, 0x1p64,        1e30,   kInf,          kNan}) {
    list.push_back(static_cast<From>(x));
    list.push_back(static_cast<From>(-x));
  }
  return list;
}

template <class From, class To>
void check_casts(const char* what) {
  const std::vector<From> x = awkward<From>();
  const Tensor source = from_values<From>({static_cast<int64_t>(x.size())}, std::span(x));
  const std::vector<To> copied = values<To>(cast(source, dtype_of<To>));
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(copied[i], expected<To>(static_cast<double>(x[i]))) << what << ' ' << x[i];
  }
  for (const isa::Level level : test::levels()) {
    const auto kernel = jit::block_table(level).cast(dtype_of<From>, dtype_of<To>);
    for (size_t i = 0; i < x.size(); ++i) {  // alone among ordinary neighbours, and among its kind
      for (const From other : {From(3), x[i]}) {
        std::vector<From> block(static_cast<size_t>(jit::kBlockMultiple), other);
        block[5] = x[i];
        std::vector<To> out(block.size());
        kernel(out.data(), block.data(), nullptr, nullptr, jit::kBlockMultiple);
        EXPECT_EQ(out[5], expected<To>(static_cast<double>(x[i])))
            << what << ' ' << x[i] << " at " << isa::name(level);
        EXPECT_EQ(out[0], expected<To>(static_cast<double>(other)));
      }
    }
  }
}

TEST(Values, FloatsBecomeIntegersAlikeOnEveryPath) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    visit_dtype(IntegerTypes{}, dtype, "test", [&](auto tag) {
      using T = typename decltype(tag)::type;
      check_casts<float, T>(name(dtype));
      check_casts<double, T>(name(dtype));
    });
  }
  EXPECT_EQ(expected<int8_t>(kNan), 0);
  EXPECT_EQ(expected<int32_t>(1e30), 0);
  EXPECT_EQ(expected<int64_t>(kInf), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(expected<uint64_t>(kInf), kLarge);
  EXPECT_EQ(expected<uint64_t>(-1.0), ~uint64_t{0});
}

TEST(Values, ViewsThatNoMemoryCouldHoldAreRefused) {
  const Tensor one = ones({1});
  const int64_t huge = int64_t{1} << 40;
  EXPECT_THROW(broadcast_to(one, Shape{huge, huge}), ShapeError);
  EXPECT_THROW(broadcast_to(one, Shape{int64_t{1} << 61}), ShapeError);
  const Tensor large = broadcast_to(one, Shape{1 << 20, huge});
  EXPECT_EQ(large.nbytes(), int64_t{1} << 62);
  float cell = 1;
  const Layout repeated{{int64_t{1} << 62}, {0}, 0};
  EXPECT_THROW(from_memory(&cell, repeated, DType::kFloat32, kCpu, nullptr), ShapeError);
  const Tensor bytes = broadcast_to(ones({1}, DType::kInt8), Shape{int64_t{1} << 62});
  EXPECT_THROW(exp(bytes), ShapeError);
  EXPECT_THROW(clone(bytes), MemoryError);
}

TEST(Values, PowersOfComplexZero) {
  using C = std::complex<double>;
  const Tensor zero = zeros({1}, DType::kComplex128);
  EXPECT_EQ(values<C>(pow(zero, C(1, 2)))[0], C(0, 0));
  EXPECT_EQ(values<C>(pow(zero, C(0, 0)))[0], C(1, 0));
  EXPECT_TRUE(std::isnan(values<C>(pow(zero, C(-1, 2)))[0].real()));
  EXPECT_TRUE(std::isnan(values<C>(pow(zero, C(0, 2)))[0].imag()));
}

TEST(Values, SignbitTakesIntegers) {
  EXPECT_THAT(values<bool>(signbit(from_values<int8_t>({3}, {-128, 0, 127}))),
              ElementsAre(true, false, false));
  EXPECT_THAT(values<bool>(signbit(from_values<uint64_t>({1}, {~uint64_t{0}}))),
              ElementsAre(false));
  EXPECT_THROW(signbit(zeros({1}, DType::kBool)), DTypeError);
}

}  // namespace
}  // namespace cuop
