#include "cuop/ops/blas/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/blas/matrix_operands_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::values;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

template <class... T, class Visit>
void visit_all(TypeList<T...>, Visit visit) {
  (visit(dtype_of<T>), ...);
}
std::vector<double> real_numbers(const Tensor& t) {
  return values<double>(cast(t, DType::kFloat64));
}

TEST(Blas, DotAnswersInTheKindOfItsDtype) {
  const Tensor x = from_values<int64_t>({2}, {100, -3});
  EXPECT_EQ(std::get<int64_t>(dot(x, x)), 10009);
  EXPECT_EQ(std::get<int64_t>(dot(cast(x, DType::kInt8), cast(x, DType::kInt8))), 25);
  EXPECT_EQ(std::get<uint64_t>(dot(cast(x, DType::kUInt8), cast(x, DType::kUInt8))), 25U);
  const Tensor large = from_values<uint64_t>({1}, {uint64_t{1} << 63});
  EXPECT_EQ(std::get<uint64_t>(dot(large, ones({1}, DType::kUInt64))), uint64_t{1} << 63);
  EXPECT_EQ(std::get<double>(dot(cast(x, DType::kFloat16), cast(x, DType::kFloat16))), 10009.0);
  const Tensor z = from_values<std::complex<double>>({1}, {{1, 2}});
  EXPECT_EQ(std::get<std::complex<double>>(dot(z, z, true)), std::complex<double>(5, 0));
}

TEST(Blas, LongIntegerSumsDoNotDependOnThreads) {
  const Tensor x = arange(0, 200000, 1, DType::kInt32);
  uint32_t whole = 0;
  for (uint32_t i = 0; i < 200000; ++i) whole += i * i;
  for (const int threads : {1, 2, 5}) {
    backend::set_thread_count(threads);
    EXPECT_EQ(std::get<int64_t>(dot(x, x)), static_cast<int32_t>(whole));
  }
  backend::set_thread_count(0);
}

TEST(Blas, AVectorOfOneElementMayHaveAnyStride) {
  const Tensor a = ones({1, 3}), x = ones({3});
  for (const int64_t stride : {0, 7, -2}) {
    const Tensor y = zeros({1}).with_layout({{1}, {stride}});
    EXPECT_THAT(values<float>(gemv(a, x, {}, &y)), ElementsAre(3)) << stride;
    EXPECT_THAT(values<float>(gemv(ones({3, 1}), y)), ElementsAre(3, 3, 3)) << stride;
  }
}

/// 1 + 2^-11 is 1 in float16, so adding 2^-11 twice changes 1 only where the sum is wider.
TEST(Blas, SixteenBitFloatsAreRoundedOnce) {
  const double tiny = 0x1p-11, sum = 1 + 2 * tiny;
  const auto half = [](const Shape& shape, std::span<const double> given) {
    return cast(from_values<double>(shape, given), DType::kFloat16);
  };
  const double terms[] = {1, tiny}, corner[] = {tiny, 1, 1, tiny}, start[] = {tiny};
  const Tensor one = ones({2}, DType::kFloat16);
  Tensor y = half({1}, start);
  EXPECT_THAT(real_numbers(gemv(half({1, 2}, terms), one, {.beta = 1}, &y)), ElementsAre(sum));
  const Tensor column = ones({2, 1}, DType::kFloat16);
  Tensor c = cast(from_values<double>({2, 1}, {tiny, tiny}), DType::kFloat16);
  EXPECT_THAT(real_numbers(symm(half({2, 2}, corner), column, {.beta = 1}, &c)),
              ElementsAre(sum, sum));
  // x0 = 1, x1 = -tiny, x2 = 1 - (-tiny) - (-tiny): two subtractions, one rounding.
  const Tensor a =
      cast(from_values<double>({3, 3}, {1, 0, 0, tiny, 1, 0, -tiny, 1, 1}), DType::kFloat16);
  const Tensor b = cast(from_values<double>({3, 1}, {1, 0, 1}), DType::kFloat16);
  EXPECT_THAT(real_numbers(trsm(a, b)), ElementsAre(1, -tiny, sum));
}

/// The largest difference of two tensors' elements.
double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = cast(a, DType::kComplex128), y = cast(b, DType::kComplex128);
  double worst = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    worst = std::max(
        worst, std::abs(x.data<std::complex<double>>()[i] - y.data<std::complex<double>>()[i]));
  }
  return worst;
}

/// What a GPU runs is an expression, which the CPU's interpreter runs too.
TEST(Blas, TheGpusLevelOneIsTheCpusArithmetic) {
  visit_all(NumericTypes{}, [](DType dtype) {
    const bool is_whole = is_integer(dtype);
    const Scalar alpha = is_complex(dtype) ? Scalar(std::complex<double>(0.3, -1.7))
                         : is_whole        ? Scalar(3)
                                           : Scalar(0.3);
    for (const int64_t size : {1, 7, 1000, 70001}) {
      const Tensor x = test::random_tensor({size, 2}, dtype, 1), line = select(x, 1, 1);
      const Tensor y = test::random_tensor({size}, dtype, 2);
      const Tensor given = empty({size}, dtype), wanted = empty({size}, dtype);
      for (const Tensor* addend : {static_cast<const Tensor*>(nullptr), &y}) {
        kernels::axpy_cuda(alpha, line, addend, given);
        kernels::axpy_cpu(alpha, line, addend, wanted);
        // g++ 12 fuses the products of complex vectors, but not those left over behind them.
        const double tolerance = is_complex(dtype) ? 32 * test::epsilon(dtype) : 0;
        EXPECT_LE(distance(given, wanted), tolerance) << size << ' ' << dtype;
      }
      for (const bool conjugate : {false, true}) {
        const auto as_complex = [](const auto& value) -> std::complex<double> {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::complex<double>>) {
            return value;
          } else {
            return static_cast<double>(value);
          }
        };
        const DotValue mine = kernels::dot_cuda(line, y, conjugate);
        const DotValue theirs = kernels::dot_cpu(line, y, conjugate);
        ASSERT_EQ(mine.index(), theirs.index()) << dtype;
        const auto difference = std::visit(as_complex, mine) - std::visit(as_complex, theirs);
        const double scale = static_cast<double>(size) * 32;
        EXPECT_LE(std::abs(difference), is_whole ? 0.0 : scale * 0x1p-46) << dtype << ' ' << size;
      }
    }
  });
  const Tensor none = empty({0}, DType::kUInt16);
  EXPECT_EQ(std::get<uint64_t>(kernels::dot_cuda(none, none, false)), 0U);
}

TEST(Blas, GemmTakesTransposesAndConjugates) {
  const Tensor a = from_values<double>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(real_numbers(gemm(a, a, {.trans_b = Trans::kTrans})), ElementsAre(14, 32, 32, 77));
  const Tensor out = ones({3, 3}, DType::kFloat64);
  gemm(a, a, {.trans_a = Trans::kTrans, .alpha = 2, .beta = 1}, &out);
  EXPECT_THAT(real_numbers(out), ElementsAre(35, 45, 55, 45, 59, 73, 55, 73, 91));
  const Tensor z = from_values<std::complex<double>>({1, 1}, {{1, 2}});
  const Tensor square = gemm(z, z, {.trans_a = Trans::kConjTrans});
  EXPECT_EQ(*square.data<std::complex<double>>(), std::complex<double>(5, 0));
  EXPECT_THAT([&] { gemm(ones({2}), a); },
              ThrowsMessage<ShapeError>(HasSubstr("gemm: a has shape (2,); it needs 2 dim")));
  EXPECT_THAT([&] { gemm(a, a); }, ThrowsMessage<ShapeError>(HasSubstr("gemm: a of shape")));
  EXPECT_THAT([&] { gemm(a, a, {.trans_b = Trans::kTrans, .beta = 1}); },
              ThrowsMessage<ExecutionError>(HasSubstr("gemm: beta")));
}

TEST(Blas, MatricesOfIntegersWrap) {
  const Tensor a = cast(from_values<double>({2, 2}, {100, 3, 99, 100}), DType::kInt8);
  const Tensor x = cast(from_values<double>({2}, {2, 1}), DType::kInt8);
  EXPECT_THAT(values<int8_t>(gemv(a, x)), ElementsAre(-53, 42));
  const Tensor b = cast(from_values<double>({2, 1}, {2, 1}), DType::kInt8);
  EXPECT_THAT(values<int8_t>(symm(a, b)), ElementsAre(-53, 106));  // 99 is not read
}

TEST(Blas, WhatADtypeLacksIsSaid) {
  const Tensor a = ones({2, 2}, DType::kInt32);
  EXPECT_THAT([&] { trsm(a, a); },
              ThrowsMessage<DTypeError>(HasSubstr("trsm: dtype int32 is not supported; supported "
                                                  "are float16, bfloat16, float32")));
  EXPECT_THAT([&] { scal(true, cast(a, DType::kBool)); },
              ThrowsMessage<DTypeError>(HasSubstr("scal: dtype bool")));
  EXPECT_THAT([&] { scal(0.5, a); },
              ThrowsMessage<ExecutionError>(HasSubstr("needs a whole number")));
  EXPECT_THAT([&] { axpy(int64_t{1} << 31, a, a); },
              ThrowsMessage<DTypeError>(HasSubstr("alpha is 2147483648, which does not fit")));
  EXPECT_THAT([&] { gemv(a, ones({2}, DType::kInt32), {.beta = 2}); },
              ThrowsMessage<ExecutionError>(HasSubstr("pass out")));
}

template <class T>
std::vector<T> run_level1(isa::Level level) {
  const auto& loops = std::get<kernels::Level1<T>>(isa::choose(
      level,
      []<class L>(L) -> const kernels::Level1Kernels& { return kernels::level1_kernels<L>(); }));
  std::vector<T> x(77), y(77), out(77);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(0x9e3779b97f4a7c15 * (i + 1));
    y[i] = static_cast<T>(0xbf58476d1ce4e5b9 * (i + 1) >> 7);
  }
  loops.axpy(77, T(213), x.data(), y.data(), out.data());
  out.push_back(static_cast<T>(loops.dot(77, x.data(), y.data(), false)));
  return out;
}

TEST(Level1, IntegersGiveTheSameBitsAtEveryInstructionSet) {
  for (const isa::Level level : {isa::Level::kV3, isa::Level::kV4}) {
    if (!isa::is_supported(level)) continue;
    EXPECT_EQ(run_level1<uint8_t>(level), run_level1<uint8_t>(isa::Level::kBaseline));
    EXPECT_EQ(run_level1<uint16_t>(level), run_level1<uint16_t>(isa::Level::kBaseline));
    EXPECT_EQ(run_level1<uint64_t>(level), run_level1<uint64_t>(isa::Level::kBaseline));
  }
}

// --- calls by columns, as a GPU's library takes them ---------------------------------------------

using ComplexNumber = std::complex<double>;

/// A matrix whose columns follow each other.
struct Columns {
  std::vector<ComplexNumber> values;
  int64_t rows;
  ComplexNumber& at(int64_t i, int64_t j) { return values[static_cast<size_t>(j * rows + i)]; }
};

/// The structured matrix as a whole: the other triangle mirrored, or zero.
Columns whole(const ComplexNumber* a, int64_t lda, int64_t order, Uplo uplo, bool is_mirrored) {
  Columns result{std::vector<ComplexNumber>(static_cast<size_t>(order * order)), order};
  for (int64_t j = 0; j < order; ++j) {
    for (int64_t i = 0; i < order; ++i) {
      const bool is_read = uplo == Uplo::kLower ? i >= j : i <= j;
      if (is_read) result.at(i, j) = a[j * lda + i];
      if (!is_read && is_mirrored) result.at(i, j) = a[i * lda + j];
    }
  }
  return result;
}

void symm_by_columns(const backend::blas::SymmCall<ComplexNumber>& c) {
  const bool is_left = c.side == Side::kLeft;
  Columns a = whole(c.a, c.lda, is_left ? c.m : c.n, c.uplo, true);
  for (int64_t j = 0; j < c.n; ++j) {
    for (int64_t i = 0; i < c.m; ++i) {
      ComplexNumber sum = 0;
      for (int64_t k = 0; k < a.rows; ++k) {
        sum += is_left ? a.at(i, k) * c.b[j * c.ldb + k] : c.b[k * c.ldb + i] * a.at(k, j);
      }
      ComplexNumber& to = c.c[j * c.ldc + i];
      to = c.alpha * sum + (c.beta == 0.0 ? 0.0 : c.beta * to);
    }
  }
}

void trsm_by_columns(const backend::blas::TrsmCall<ComplexNumber>& c) {
  const bool is_left = c.side == Side::kLeft;
  const int64_t order = is_left ? c.m : c.n;
  Columns a = whole(c.a, c.lda, order, c.uplo, false), op = a;
  for (int64_t i = 0; i < order; ++i) {
    if (c.diag == Diag::kUnit) a.at(i, i) = 1;
    for (int64_t j = 0; j <= i; ++j) {  // X op(A) = B is op(A)^T X^T = B^T
      const bool is_turned = (c.trans != Trans::kNone) != !is_left;
      const auto taken = [&](ComplexNumber v) {
        return c.trans == Trans::kConjTrans ? std::conj(v) : v;
      };
      op.at(i, j) = taken(is_turned ? a.at(j, i) : a.at(i, j));
      op.at(j, i) = taken(is_turned ? a.at(i, j) : a.at(j, i));
    }
  }
  const bool is_lower = order > 1 && op.at(order - 1, 0) != 0.0;
  for (int64_t line = 0; line < (is_left ? c.n : c.m); ++line) {
    const auto element = [&](int64_t k) -> ComplexNumber& {
      return is_left ? c.b[line * c.ldb + k] : c.b[k * c.ldb + line];
    };
    for (int64_t step = 0; step < order; ++step) {
      const int64_t i = is_lower ? step : order - 1 - step;
      ComplexNumber rest = c.alpha * element(i);
      for (int64_t k = is_lower ? 0 : i + 1; k < (is_lower ? i : order); ++k) {
        rest -= op.at(i, k) * element(k);
      }
      element(i) = rest / op.at(i, i);
    }
  }
}

/// Rows behind each other, or columns.
Tensor laid(const Tensor& t, bool is_turned) {
  return is_turned ? transpose(contiguous(transpose(t))) : t;
}

TEST(Blas, CallsByColumnsMeanTheSame) {
  const int64_t order = 5, other = 3;
  for (const Side side : {Side::kLeft, Side::kRight}) {
    const Shape shape = side == Side::kLeft ? Shape{order, other} : Shape{other, order};
    for (int layouts = 0; layouts < 8; ++layouts) {
      const Tensor square = test::random_tensor({order, order}, DType::kComplex128, 1);
      for (int64_t i = 0; i < order; ++i)
        square.data<ComplexNumber>()[i * (order + 1)] += ComplexNumber(9, 1);
      const Tensor a = laid(square, (layouts & 1) != 0);
      const Tensor b = laid(test::random_tensor(shape, DType::kComplex128, 2), (layouts & 2) != 0);
      const auto result = [&] {
        return laid(test::random_tensor(shape, DType::kComplex128, 3), (layouts & 4) != 0);
      };
      for (const Uplo uplo : {Uplo::kLower, Uplo::kUpper}) {
        const Tensor product = result(), wanted_product = result();
        const SymmOptions options{side, uplo, ComplexNumber(2, 1), ComplexNumber(0.5, -1)};
        kernels::symm_by<ComplexNumber>(a, b, options, product, [](const auto& call) {
          symm_by_columns(backend::blas::by_columns(call));
        });
        kernels::symm_cpu(a, b, options, wanted_product);
        EXPECT_LT(distance(product, wanted_product), 1e-12) << layouts;
        for (const Trans trans : {Trans::kNone, Trans::kTrans, Trans::kConjTrans}) {
          for (const Diag diag : {Diag::kNonUnit, Diag::kUnit}) {
            const Tensor solution = result(), wanted_solution = result();
            const TrsmOptions solve{side, uplo, trans, diag, ComplexNumber(1, 2)};
            kernels::trsm_by<ComplexNumber>(a, b, solve, solution, [](const auto& call) {
              trsm_by_columns(backend::blas::by_columns(call));
            });
            kernels::trsm_cpu(a, b, solve, wanted_solution);
            EXPECT_LT(distance(solution, wanted_solution) /
                          distance(wanted_solution, zeros(shape, DType::kComplex128)),
                      1e-12)
                << layouts;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cuop
