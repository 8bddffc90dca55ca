// The BLAS operations of a GPU against those of the CPU.
#include "cuop/ops/blas/blas.h"

#include "cuop/backend/cuda/libraries.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/gpu/gpu_values.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::epsilon;
using test::expect_same;
using test::Guarded;
using test::random_tensor;

template <class... T>
std::vector<DType> dtypes_of(TypeList<T...>) {
  return {dtype_of<T>...};
}

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

/// What runs by kernels of our own, and what needs cuBLAS.
class GpuVectors : public GpuTest {};
class GpuIntegerProducts : public GpuTest {};
class GpuBlas : public GpuTest {};

TEST_F(GpuVectors, ScalAndAxpyRoundAsOnTheCpu) {
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

TEST_F(GpuVectors, DotAnswersAsTheCpu) {
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

/// Rows behind each other, or columns.
Tensor laid(const Tensor& t, bool is_turned) {
  return is_turned ? transpose(contiguous(transpose(t))) : t;
}

bool has_cublas() { return backend::cuda_library(backend::CudaLibrary::kCublas).is_loaded(); }

TEST_F(GpuVectors, GemvAnswersAsTheCpu) {
  for (const DType dtype : {DType::kInt8, DType::kUInt16, DType::kInt32, DType::kUInt64,
                            DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64,
                            DType::kComplex64, DType::kComplex128}) {
    for (const auto& [m, n] : {std::array<int64_t, 2>{1, 1},
                               {3, 0},
                               {7, 5},
                               {130, 64},
                               {2, 5000},
                               {5000, 3},
                               {3, 20000}}) {
      for (int form = 0; form < 12; ++form) {
        const Tensor a = random_tensor({m, n}, dtype, 1);
        const Tensor there = laid(gpu(a), form % 2 != 0);
        GemvOptions options;
        options.trans = static_cast<Trans>(form / 2 % 3);
        options.alpha = coefficient(dtype);
        options.beta = form / 6 != 0 ? Scalar(2) : Scalar(0);
        const bool is_plain = options.trans == Trans::kNone;
        const int64_t rows = is_plain ? m : n, columns = is_plain ? n : m;
        const bool is_strided = form % 4 == 1;
        const Tensor x =
            is_strided ? strided(columns, dtype, 2, kCpu) : random_tensor({columns}, dtype, 2);
        const Tensor x_there = is_strided ? strided(columns, dtype, 2, kGpu) : gpu(x);
        const Tensor y = random_tensor({rows}, dtype, 3);
        const Guarded out({rows}, dtype, kGpu);
        copy_into(out.tensor(), gpu(y));
        gemv(a, x, options, &y);
        gemv(there, x_there, options, &out.tensor());
        const std::string what = cat(dtype, ' ', m, " x ", n, " form ", form);
        const double ulps = 4 + std::sqrt(static_cast<double>(columns));
        expect_close(out.tensor(), y, ulps * epsilon(dtype), what);
        out.expect_intact(what);
      }
    }
  }
}

TEST_F(GpuIntegerProducts, MatmulWrapsAsOnTheCpu) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64}) {
    for (const auto& [m, k, n] : {std::array<int64_t, 3>{1, 1, 1},
                                  {37, 0, 5},
                                  {1, 700, 53},
                                  {37, 7, 1},
                                  {65, 127, 66},
                                  {300, 40, 700}}) {
      const Tensor a = random_tensor({m, k}, dtype, 1);
      const Tensor b = random_tensor({n, k}, dtype, 2);
      const Tensor wanted = matmul(a, transpose(b)), c = random_tensor({m, n}, dtype, 3);
      const std::string what = cat(dtype, ' ', m, ' ', k, ' ', n);
      expect_same(matmul(gpu(a), transpose(gpu(b))), wanted, 0, what);
      const Guarded out({m, n}, dtype, kGpu);
      copy_into(out.tensor(), gpu(c));
      MatmulOptions options;
      options.alpha = 1;
      options.beta = is_bool(dtype) ? 1 : 5;
      matmul(a, transpose(b), options, &c);
      matmul(gpu(a), transpose(gpu(b)), options, &out.tensor());
      expect_same(out.tensor(), c, 0, what);
      out.expect_intact(what);
    }
  }
}

TEST_F(GpuIntegerProducts, BatchesBroadcast) {
  const struct {
    Shape a, b;
  } shapes[] = {{{5, 9, 4}, {5, 4, 6}},
                {{5, 9, 4}, {4, 6}},
                {{9, 4}, {5, 4, 6}},
                {{3, 1, 9, 4}, {5, 4, 6}},
                {{2, 3, 9, 4}, {2, 3, 4, 6}},
                {{4}, {5, 4, 6}},
                {{5, 9, 4}, {4}},
                {{3, 1, 1, 700}, {5, 700, 2}},
                {{2, 1, 3, 8}, {1, 4, 8, 1}},
                {{4}, {4}}};
  for (const DType dtype : {DType::kBool, DType::kInt32, DType::kUInt8}) {
    for (const auto& [a_shape, b_shape] : shapes) {
      const Tensor a = random_tensor(a_shape, dtype, 5), b = random_tensor(b_shape, dtype, 6);
      expect_same(matmul(gpu(a), gpu(b)), matmul(a, b), 0, cat(dtype, ' ', a_shape, ' ', b_shape));
      const Tensor wide = random_tensor({2, 1, 7, 33}, dtype, 7);
      const Tensor other = random_tensor({3, 7, 33}, dtype, 8);
      expect_same(vecdot(gpu(wide), gpu(other)), vecdot(wide, other), 0, cat("vecdot ", dtype));
    }
  }
}

void expect_cpu_symm(const std::vector<DType>& dtypes) {
  for (const DType dtype : dtypes) {
    for (const auto& [order, other] : {std::array<int64_t, 2>{1, 1}, {5, 3}, {67, 130}}) {
      for (int form = 0; form < 16; ++form) {
        SymmOptions options;
        options.side = (form & 1) != 0 ? Side::kRight : Side::kLeft;
        options.uplo = (form & 2) != 0 ? Uplo::kUpper : Uplo::kLower;
        options.alpha = coefficient(dtype);
        options.beta = (form & 4) != 0 ? Scalar(2) : Scalar(0);
        const Shape shape = options.side == Side::kLeft ? Shape{order, other} : Shape{other, order};
        const bool is_turned = (form & 8) != 0;
        const Tensor a = random_tensor({order, order}, dtype, 1),
                     b = random_tensor(shape, dtype, 2);
        const Tensor wanted = random_tensor(shape, dtype, 3);
        const Guarded out(shape, dtype, kGpu);
        copy_into(out.tensor(), gpu(wanted));
        symm(a, b, options, &wanted);
        symm(laid(gpu(a), is_turned), laid(gpu(b), is_turned), options, &out.tensor());
        const std::string what = cat(dtype, ' ', shape, " form ", form);
        expect_close(out.tensor(), wanted, 32 * epsilon(dtype), what);
        out.expect_intact(what);
      }
    }
  }
}

TEST_F(GpuIntegerProducts, SymmAnswersAsTheCpu) { expect_cpu_symm(dtypes_of(IntegerTypes{})); }

TEST_F(GpuBlas, SymmAnswersAsTheCpu) {
  if (!has_cublas()) GTEST_SKIP() << "needs cuBLAS";
  expect_cpu_symm(dtypes_of(InexactTypes{}));
}

TEST_F(GpuBlas, TrsmAnswersAsTheCpu) {
  if (!has_cublas()) GTEST_SKIP() << "needs cuBLAS";
  for (const DType dtype : dtypes_of(InexactTypes{})) {
    for (const auto& [order, other] : {std::array<int64_t, 2>{1, 1}, {5, 3}, {67, 130}, {150, 9}}) {
      for (int form = 0; form < 24; ++form) {
        TrsmOptions options;
        options.side = (form & 1) != 0 ? Side::kRight : Side::kLeft;
        options.uplo = (form & 2) != 0 ? Uplo::kUpper : Uplo::kLower;
        options.diag = (form & 4) != 0 ? Diag::kUnit : Diag::kNonUnit;
        options.trans = static_cast<Trans>(form / 8);
        options.alpha = coefficient(dtype);
        const Shape shape = options.side == Side::kLeft ? Shape{order, other} : Shape{other, order};
        // Small beside the diagonal, so that solutions do not grow.
        const Tensor a =
            multiply(random_tensor({order, order}, dtype, 1), 1.0 / static_cast<double>(8 * order));
        fill(a.with_layout({{order}, {order + 1}, 0}), 2);
        const Tensor b = random_tensor(shape, dtype, 2);
        const std::string what = cat(dtype, ' ', shape, " form ", form);
        const Tensor wanted = trsm(a, b, options), there = gpu(b);
        expect_close(trsm(laid(gpu(a), form % 3 == 0), laid(there, form % 2 == 0), options), wanted,
                     32 * epsilon(dtype), what);
        trsm(gpu(a), there, options, &there);  // in place
        expect_close(there, wanted, 32 * epsilon(dtype), what);
        const Guarded out(shape, dtype, kGpu);
        trsm(gpu(a), gpu(b), options, &out.tensor());
        expect_close(out.tensor(), wanted, 32 * epsilon(dtype), what);
        out.expect_intact(what);
      }
    }
  }
}

}  // namespace
}  // namespace cuop
