#include "cuop/core/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/core/scalar.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

TEST(DType, PromotionIsCommutativeAndIdempotent) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto a = static_cast<DType>(i);
    EXPECT_EQ(promote(a, a), a);
    for (int j = 0; j < kDTypeCount; ++j) {
      const auto b = static_cast<DType>(j);
      EXPECT_EQ(promote(a, b), promote(b, a)) << a << " with " << b;
    }
  }
}

TEST(DType, PromotesAsTheArrayApiSays) {
  EXPECT_EQ(promote(DType::kInt8, DType::kUInt8), DType::kInt16);
  EXPECT_EQ(promote(DType::kUInt32, DType::kInt64), DType::kInt64);
  EXPECT_EQ(promote(DType::kUInt64, DType::kInt8), DType::kFloat64);
  EXPECT_EQ(promote(DType::kFloat32, DType::kInt64), DType::kFloat64);
  EXPECT_EQ(promote(DType::kFloat16, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(promote(DType::kComplex64, DType::kFloat64), DType::kComplex128);
  EXPECT_EQ(promote(DType::kBool, DType::kUInt16), DType::kUInt16);
}

TEST(DType, NamesParseBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  }
  EXPECT_THROW(parse_dtype("float8"), DTypeError);
}

TEST(DType, VisitorRefusesWhatItsListLacks) {
  const int64_t size = visit_dtype(FloatTypes{}, DType::kFloat64, "fft", [](auto tag) -> int64_t {
    return sizeof(typename decltype(tag)::type);
  });
  EXPECT_EQ(size, 8);
  const auto visit = [] { visit_dtype(FloatTypes{}, DType::kInt8, "fft", [](auto) {}); };
  EXPECT_EQ(test::error_of<DTypeError>(visit),
            "fft: dtype int8 is not supported; supported are float32, float64");
}

TEST(Scalar, DoesNotWidenATensor) {
  EXPECT_EQ(Scalar(2.5).promote_with(DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(Scalar(2).promote_with(DType::kUInt8), DType::kUInt8);
  EXPECT_EQ(Scalar(2.5).promote_with(DType::kInt32), DType::kFloat64);
  EXPECT_EQ(Scalar(std::complex<double>(0, 1)).promote_with(DType::kFloat32), DType::kComplex64);
  EXPECT_EQ(Scalar(std::complex<double>(0, 1)).promote_with(DType::kBool), DType::kComplex128);
  EXPECT_EQ(Scalar(2).promote_with(DType::kBool), DType::kInt64);
  EXPECT_EQ(Scalar(uint64_t{1} << 63).promote_with(DType::kBool), DType::kUInt64);
  EXPECT_THROW(Scalar(1e30).to_int64(), OverflowError);
  EXPECT_THROW(Scalar(uint64_t{1} << 63).to_int64(), OverflowError);
  EXPECT_EQ(Scalar(-1.5).to_bits64(), ~uint64_t{0});
  EXPECT_EQ(Scalar(0x1p63).to_bits64(), uint64_t{1} << 63);
  EXPECT_THROW(Scalar(-0x1p64).to_bits64(), OverflowError);
  EXPECT_THROW(Scalar(std::complex<double>(0, 1)).to_double(), DTypeError);
}

}  // namespace
}  // namespace cuop
