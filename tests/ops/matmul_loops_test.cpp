// Products by plain and by tiled loops, over every layout that reaches them.
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "cuop/backend/execution.h"
#include "cuop/ops/blas/blas.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/random/random.h"

namespace cuop {
namespace {

using backend::ExecutionScope;
using backend::Kernel;
using backend::KernelType;
using backend::with_kernel;

constexpr Kernel kLoops[] = {{KernelType::kSimple},
                             {KernelType::kTiled, 1},
                             {KernelType::kTiled, 5},
                             {KernelType::kTiled, 64}};

/// Random values of a dtype, complex parts included.
Tensor factors(const Shape& shape, DType dtype) {
  const Tensor real = random(shape, DType::kFloat64);
  if (!is_complex(dtype)) return cast(real, dtype);
  const Tensor result = cast(real, DType::kComplex128);
  const Tensor imaginary = random(shape, DType::kFloat64);
  for (int64_t i = 0; i < result.size(); ++i) {
    result.data<std::complex<double>>()[i].imag(imaginary.data<double>()[i]);
  }
  return cast(result, dtype);
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const Tensor x = contiguous(cast(a, DType::kComplex128));
  const Tensor y = contiguous(cast(b, DType::kComplex128));
  double largest = 0.0;
  for (int64_t i = 0; i < x.size(); ++i) {
    largest = std::max(
        largest, std::abs(x.data<std::complex<double>>()[i] - y.data<std::complex<double>>()[i]));
  }
  return largest;
}

TEST(MatmulLoops, AgreeWithTheDefaultKernel) {
  manual_seed(1);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kComplex128}) {
    const double tolerance = dtype == DType::kFloat32 ? 1e-4 : 1e-12;
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        const Tensor a = factors(trans_a ? Shape{3, 17, 11} : Shape{3, 11, 17}, dtype);
        const Tensor b = factors(trans_b ? Shape{13, 17} : Shape{17, 13}, dtype);
        const Tensor start = factors({3, 11, 13}, dtype);
        const MatmulOptions options{trans_a, trans_b, 1.5, -0.5};
        const Tensor expected = clone(start);
        matmul(a, b, options, &expected);
        for (const Kernel& kernel : kLoops) {
          const backend::ExecutionScope scope(backend::with_kernel(kernel));
          const Tensor c = clone(start);
          matmul(a, b, options, &c);
          EXPECT_LE(largest_difference(c, expected), tolerance) << name(kernel) << ' ' << dtype;
          const Tensor columns = swap_axes(clone(swap_axes(start, -1, -2)), -1, -2);
          matmul(a, b, options, &columns);
          EXPECT_LE(largest_difference(columns, expected), tolerance) << name(kernel);
        }
      }
    }
  }
}

TEST(MatmulLoops, BetaZeroDoesNotReadTheOutput) {
  for (const Kernel& kernel : kLoops) {
    const backend::ExecutionScope scope(backend::with_kernel(kernel));
    const Tensor c = full({2, 2}, std::numeric_limits<double>::quiet_NaN(), DType::kFloat64);
    matmul(eye(2, 2, 0, DType::kFloat64), ones({2, 2}, DType::kFloat64), {}, &c);
    EXPECT_EQ(largest_difference(c, ones({2, 2}, DType::kFloat64)), 0.0) << name(kernel);
    const Tensor empty_sum =
        matmul(zeros({2, 0}, DType::kFloat64), zeros({0, 2}, DType::kFloat64), {}, &c);
    EXPECT_EQ(largest_difference(empty_sum, zeros({2, 2}, DType::kFloat64)), 0.0) << name(kernel);
  }
}

TEST(Matmul, SumsOverNothingAreZeroForEveryLayoutOfTheFactors) {
  for (const DType dtype : {DType::kFloat32, DType::kComplex128}) {
    const Tensor a = zeros({101, 0}, dtype), b = zeros({0, 31}, dtype);
    for (const Tensor& x : {a, swap_axes(zeros({0, 101}, dtype), 0, 1)}) {
      for (const Tensor& y : {b, swap_axes(zeros({31, 0}, dtype), 0, 1)}) {
        const Tensor c = full({101, 31}, 7.0, dtype);
        matmul(x, y, {}, &c);
        EXPECT_EQ(largest_difference(c, zeros({101, 31}, dtype)), 0.0);
        fill(c, 2.0);
        matmul(x, y, {.beta = 3.0}, &c);
        EXPECT_EQ(largest_difference(c, full({101, 31}, 6.0, dtype)), 0.0);
      }
    }
  }
}

TEST(GemvLoops, AgreeWithTheDefaultKernel) {
  manual_seed(2);
  for (const DType dtype : {DType::kFloat64, DType::kComplex128}) {
    const Tensor a = factors({9, 14}, dtype);
    for (const Trans trans : {Trans::kNone, Trans::kTrans, Trans::kConjTrans}) {
      const Tensor x = factors({trans == Trans::kNone ? 14 : 9}, dtype);
      const Tensor expected = gemv(a, x, {trans, 2.0});
      for (const Kernel& kernel : kLoops) {
        const backend::ExecutionScope scope(backend::with_kernel(kernel));
        EXPECT_LE(largest_difference(gemv(a, x, {trans, 2.0}), expected), 1e-12) << name(kernel);
      }
    }
  }
}

}  // namespace
}  // namespace cuop
