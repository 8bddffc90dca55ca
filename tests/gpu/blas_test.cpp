// The BLAS operations of a GPU against those of the CPU.
#include "cuop/ops/blas/blas.h"

#include "cuop/ops/dtype_lists.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::expect_same;
using test::Guarded;
using test::random_tensor;

template <class... T>
std::vector<DType> dtypes_of(TypeList<T...>) {
  return {dtype_of<T>...};
}

Tensor gpu(const Tensor& t) { return to_device(t, kGpu); }

Scalar coefficient(DType dtype) {
  if (is_complex(dtype)) return std::complex<double>(0.5, -1.75);
  return is_integer(dtype) ? Scalar(3) : Scalar(0.3);
}

/// Elements of every second column, backwards.
Tensor strided(int64_t size, DType dtype, int seed, Device device) {
  const Tensor whole = to_device(random_tensor({size, 2}, dtype, seed), device);
  return whole.with_layout({{size}, {-2}, size > 0 ? 2 * size - 1 : 0});
}

std::complex<double> number(const DotValue& value) {
  return std::visit(
      [](auto part) -> std::complex<double> {
        if constexpr (std::is_integral_v<decltype(part)>) {
          return static_cast<double>(part);
        } else {
          return part;
        }
      },
      value);
}

class GpuBlas : public GpuTest {};

TEST_F(GpuBlas, ScalAndAxpyRoundAsOnTheCpu) {
  for (const DType dtype : dtypes_of(NumericTypes{})) {
    const Scalar alpha = coefficient(dtype);
    const double ulps = is_complex(dtype) ? 64 : 0;  // the CPU fuses some products of complex ones
    for (const int64_t size : {0, 1, 5, 1021}) {
      const Tensor x = strided(size, dtype, 1, kCpu), there = strided(size, dtype, 1, kGpu);
      const Tensor y = random_tensor({size}, dtype, 2), y_there = gpu(y);
      const std::string what = cat(dtype, ' ', size);
      const Guarded scaled({size}, dtype, kGpu), added({size}, dtype, kGpu);
      scal(alpha, there, &scaled.tensor());
      axpy(alpha, there, y_there, &added.tensor());
      expect_same(scaled.tensor(), scal(alpha, x), ulps, "scal " + what);
      expect_same(added.tensor(), axpy(alpha, x, y), ulps, "axpy " + what);
      axpy(alpha, there, y_there, &y_there);  // in place
      expect_same(y_there, axpy(alpha, x, y), ulps, "axpy in place " + what);
      scaled.expect_intact(what);
      added.expect_intact(what);
    }
  }
}

TEST_F(GpuBlas, DotAnswersAsTheCpu) {
  for (const DType dtype : dtypes_of(NumericTypes{})) {
    for (const int64_t size : {0, 1, 7, 4099}) {
      const Tensor x = strided(size, dtype, 3, kCpu), there = strided(size, dtype, 3, kGpu);
      const Tensor y = random_tensor({size}, dtype, 4);
      for (const bool conjugate : {false, true}) {
        const DotValue mine = dot(there, gpu(y), conjugate), theirs = dot(x, y, conjugate);
        ASSERT_EQ(mine.index(), theirs.index());
        EXPECT_LE(std::abs(number(mine) - number(theirs)), is_integer(dtype) ? 0 : 1e-9)
            << dtype << size;
      }
    }
  }
}

}  // namespace
}  // namespace cuop
