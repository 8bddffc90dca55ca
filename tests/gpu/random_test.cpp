// Random numbers of a GPU: the bits of the CPU's.
#include "cuop/ops/random/random.h"

#include <cstring>

#include "cuop/core/error.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

class GpuRandom : public GpuTest {};

constexpr int64_t kDrawnSizes[] = {0, 1, 2, 3, 4, 5, 31, 1021, 4096, 100003};

void expect_same_bits(const Tensor& given, const Tensor& wanted, const std::string& what) {
  ASSERT_EQ(given.dtype(), wanted.dtype()) << what;
  ASSERT_EQ(given.shape(), wanted.shape()) << what;
  const Tensor a = contiguous(to_device(given, kCpu)), b = contiguous(wanted);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), static_cast<size_t>(a.nbytes())), 0) << what;
}

/// The same draw on both devices, twice in a row, so that the second begins where the first ended.
template <class Draw>
void expect_same_draws(const std::string& what, DType dtype, Draw draw) {
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
    Generator host(seed), device(seed);
    device.set_counter((uint64_t{1} << 32) - 100);  // the counter's low word overflows on the way
    host.set_counter((uint64_t{1} << 32) - 100);
    for (const int64_t size : kDrawnSizes) {
      const Tensor wanted = draw(Shape{size}, RandomOptions{dtype, kCpu, &host});
      const Tensor given = draw(Shape{size}, RandomOptions{dtype, kGpu, &device});
      EXPECT_EQ(given.device(), kGpu);
      expect_same_bits(given, wanted, cat(what, ' ', dtype, " of ", size, ", seed ", seed));
    }
    EXPECT_EQ(host.counter(), device.counter());
  }
}

TEST_F(GpuRandom, NormalNumbersAreTheCpusBits) {
  for (const DType dtype : kFloats) {
    expect_same_draws("normal", dtype, [](const Shape& shape, const RandomOptions& options) {
      return normal(shape, 0.0, 1.0, options);
    });
    expect_same_draws("normal", dtype, [](const Shape& shape, const RandomOptions& options) {
      return normal(shape, -3.1, 0.7, options);
    });
  }
}

TEST_F(GpuRandom, UniformNumbersAreTheCpusBits) {
  const std::pair<double, double> ranges[] = {{0, 1}, {-1, 1}, {-0.0, 3}, {1000, 1001}, {-8, -7}};
  for (const DType dtype : kFloats) {
    for (const auto& [low, high] : ranges) {
      // In bfloat16 the ends of some are one number.
      if (dtype == DType::kBFloat16 && low == 1000) continue;
      expect_same_draws(
          cat("uniform ", low), dtype,
          [&, low = low, high = high](const Shape& shape, const RandomOptions& options) {
            return uniform(shape, low, high, options);
          });
    }
  }
}

TEST_F(GpuRandom, IntegersAreTheCpusBits) {
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    const int64_t low = is_signed_integer(dtype) ? -128 : 0;
    expect_same_draws("randint", dtype, [&](const Shape& shape, const RandomOptions& options) {
      return randint(low, 100, shape, options);
    });
  }
  expect_same_draws("randint", DType::kInt64, [](const Shape& shape, const RandomOptions& options) {
    return randint(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), shape,
                   options);
  });
}

TEST_F(GpuRandom, WritesOnlyTheOutput) {
  for (const DType dtype : kFloats) {
    for (const int64_t start : {0, 1, 3, 4}) {
      const Tensor whole = full({1100}, 9, dtype, kGpu), expected = full({1100}, 9, dtype);
      const Tensor out = slice(whole, 0, start, start + 1021);
      const Tensor wanted = slice(expected, 0, start, start + 1021);
      Generator host(5), device(5);
      uniform({1021}, 0, 1, {dtype, kGpu, &device, &out});
      uniform({1021}, 0, 1, {dtype, kCpu, &host, &wanted});
      expect_same_bits(whole, expected, cat("guard zone ", dtype, " from ", start));
    }
    const Tensor table = full({37, 64}, 9, dtype, kGpu), expected = full({37, 64}, 9, dtype);
    const Tensor out = slice(table, 1, 1, 60, 3), wanted = slice(expected, 1, 1, 60, 3);
    Generator host(5), device(5);
    normal(out.shape(), 0, 1, {dtype, kGpu, &device, &out});
    normal(wanted.shape(), 0, 1, {dtype, kCpu, &host, &wanted});
    expect_same_bits(table, expected, cat("strided output ", dtype));
  }
}

}  // namespace
}  // namespace cuop
