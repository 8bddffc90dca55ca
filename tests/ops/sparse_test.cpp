#include "cuop/ops/sparse/sparse.h"

#include <gmock/gmock.h>

#include <limits>
#include <random>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::values;
using ::testing::HasSubstr;

/// Normal numbers of which the part `zeros` is left out.
Tensor with_zeros(const Shape& shape, double zeros, DType dtype, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::bernoulli_distribution is_zero(zeros);
  const Tensor result = empty(shape, DType::kFloat64);
  for (int64_t i = 0; i < result.size(); ++i) {
    result.data<double>()[i] = is_zero(random) ? 0.0 : normal(random);
  }
  return cast(result, dtype);
}

/// Plain loops in double precision.
std::vector<double> product_of(const Tensor& a, const Tensor& b) {
  const auto x = values(a), y = values(b);
  const int64_t m = a.shape(0), k = a.shape(1), n = b.shape(1);
  std::vector<double> c(static_cast<size_t>(m * n));
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      for (int64_t j = 0; j < n; ++j) c[at(i * n + j)] += x[at(i * k + l)] * y[at(l * n + j)];
    }
  }
  return c;
}

const std::vector<Shape> kShapes{{0, 0}, {0, 5}, {4, 0},   {1, 1},
                                 {1, 7}, {7, 1}, {13, 17}, {64, 33}};

TEST(Sparse, ThereAndBackInEitherLayout) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : kShapes) {
      for (const double zeros : {0.0, 0.5, 0.97, 1.0}) {
        const Tensor x = with_zeros(shape, zeros, dtype);
        for (const SparseLayout layout : {SparseLayout::kCsr, SparseLayout::kCoo}) {
          const SparseMatrix s = to_sparse(x, layout);
          EXPECT_EQ(s.layout(), layout);
          EXPECT_EQ(s.dtype(), dtype);
          EXPECT_EQ(values(to_dense(s)), values(x)) << shape;
          // What was made of it keeps every promise of a matrix that was given.
          const SparseMatrix again(layout, shape, s.rows(), s.columns(), s.values());
          EXPECT_EQ(again.nonzeros(), s.nonzeros());
          for (const SparseLayout other : {SparseLayout::kCsr, SparseLayout::kCoo}) {
            const SparseMatrix turned = in_layout(s, other);
            EXPECT_EQ(values(turned.rows()), values(to_sparse(x, other).rows()));
          }
        }
      }
    }
  }
}

TEST(Sparse, KeepsNanAndDropsZerosOfEitherSign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = from_values<double>({2, 3}, {-0.0, nan, 0.0, 1.0, -0.0, -2.0});
  const SparseMatrix s = to_sparse(x);
  EXPECT_EQ(values(s.rows()), (std::vector<double>{0, 1, 3}));
  EXPECT_EQ(values(s.columns()), (std::vector<double>{1, 0, 2}));
  EXPECT_TRUE(std::isnan(values(s.values())[0]));
  EXPECT_EQ(s.index_dtype(), DType::kInt32);
}

TEST(Sparse, ReadsAnyStrides) {
  const Tensor x = with_zeros({9, 14}, 0.6, DType::kFloat32);
  const Tensor turned = slice(transpose(x), 0, std::nullopt, std::nullopt, -2);
  EXPECT_EQ(values(to_dense(to_sparse(turned))), values(turned));
}

TEST(SparseProduct, IsThatOfTheDenseMatrix) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double unit = dtype == DType::kFloat32 ? 1.2e-7 : 2.3e-16;
    for (const Shape& shape : kShapes) {
      for (const int64_t columns : {0, 1, 3, 16, 45, 130, 300}) {
        const Tensor a = with_zeros(shape, 0.7, dtype);
        const Tensor b = with_zeros({shape[1], columns}, 0.0, dtype, 2);
        const std::vector<double> expected = product_of(a, b);
        for (const SparseLayout layout : {SparseLayout::kCsr, SparseLayout::kCoo}) {
          const Tensor c = matmul(to_sparse(a, layout), b);
          ASSERT_EQ(c.shape(), (Shape{shape[0], columns}));
          ASSERT_EQ(c.dtype(), dtype);
          const std::vector<double> given = values(c);
          const double bound = 20.0 * unit * static_cast<double>(shape[1] + 1);
          for (size_t i = 0; i < given.size(); ++i) {
            ASSERT_NEAR(given[i], expected[i], bound) << shape << ' ' << columns;
          }
        }
      }
    }
  }
}

TEST(SparseProduct, TakesViewsVectorsAndOtherDtypes) {
  const Tensor a = with_zeros({12, 20}, 0.5, DType::kFloat32),
               b = with_zeros({20, 9}, 0, DType::kFloat64);
  const SparseMatrix s = to_sparse(a);
  const Tensor wide = matmul(s, b);
  EXPECT_EQ(wide.dtype(), DType::kFloat64);
  EXPECT_EQ(values(matmul(s, contiguous(transpose(contiguous(transpose(b)))))), values(wide));
  EXPECT_EQ(values(matmul(s, transpose(contiguous(transpose(b))))), values(wide));
  const Tensor every_other = slice(zeros({40, 9}, DType::kFloat64), 0, 0, 40, 2);
  copy_into(every_other, b);
  EXPECT_EQ(values(matmul(s, every_other)), values(wide));
  const Tensor vector = matmul(s, select(b, 1, 4));
  EXPECT_EQ(vector.shape(), (Shape{12}));
  EXPECT_EQ(values(vector), values(select(wide, 1, 4)));
  const SparseMatrix long_indices(SparseLayout::kCsr, s.shape(), cast(s.rows(), DType::kInt64),
                                  cast(s.columns(), DType::kInt64), s.values());
  EXPECT_EQ(values(matmul(long_indices, b)), values(wide));
  EXPECT_EQ(matmul(s, arange(0, 20, 1, DType::kInt8)).dtype(), DType::kFloat32);
}

TEST(SparseProduct, WritesGivenOutputs) {
  const Tensor b = with_zeros({20, 9}, 0, DType::kFloat64);
  const SparseMatrix s = to_sparse(with_zeros({12, 20}, 0.5, DType::kFloat64));
  const std::vector<double> expected = values(matmul(s, b));
  const Tensor rows = full({12, 9}, 7.0, DType::kFloat64);
  matmul(s, b, &rows);
  EXPECT_EQ(values(rows), expected);
  const Tensor columns = transpose(full({9, 12}, 7.0, DType::kFloat64));
  matmul(s, b, &columns);
  EXPECT_EQ(values(columns), expected);
  const SparseMatrix none = to_sparse(zeros({12, 20}, DType::kFloat64));
  matmul(none, b, &rows);
  EXPECT_EQ(values(rows), std::vector<double>(12 * 9, 0.0));
}

TEST(SparseProduct, HasTheSameBitsOnAnyNumberOfThreads) {
  const SparseMatrix s = to_sparse(with_zeros({300, 200}, 0.8, DType::kFloat32));
  const Tensor b = with_zeros({200, 77}, 0, DType::kFloat32, 3);
  const std::vector<double> expected = values(matmul(s, b));
  for (const int threads : {1, 2, 5}) {
    backend::set_thread_count(threads);
    EXPECT_EQ(values(matmul(s, b)), expected) << threads;
  }
  backend::set_thread_count(0);
}

TEST(SparseProduct, KeepsNanAndInfinityThatMeetElements) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const SparseMatrix s = to_sparse(from_values<double>({2, 2}, {1.0, 0.0, 0.0, 2.0}));
  const std::vector<double> c = values(matmul(s, from_values<double>({2, 2}, {1, nan, inf, 4})));
  EXPECT_EQ(c[0], 1.0);  // zeros that are not there make no NaN of an infinity
  EXPECT_TRUE(std::isnan(c[1]));
  EXPECT_EQ(c[2], inf);
  EXPECT_EQ(c[3], 8.0);
}

SparseMatrix csr(const Shape& shape, const std::vector<int64_t>& rows,
                 const std::vector<int64_t>& columns) {
  const auto tensor = [](const std::vector<int64_t>& values) {
    return from_values<int64_t>({static_cast<int64_t>(values.size())}, values);
  };
  return SparseMatrix(SparseLayout::kCsr, shape, tensor(rows), tensor(columns),
                      ones({static_cast<int64_t>(columns.size())}, DType::kFloat64));
}
SparseMatrix coo(const Shape& shape, const std::vector<int32_t>& rows,
                 const std::vector<int32_t>& columns) {
  const auto tensor = [](const std::vector<int32_t>& values) {
    return from_values<int32_t>({static_cast<int64_t>(values.size())}, values);
  };
  return SparseMatrix(SparseLayout::kCoo, shape, tensor(rows), tensor(columns),
                      ones({static_cast<int64_t>(columns.size())}, DType::kFloat32));
}

TEST(Sparse, RefusesWhatIsNoMatrix) {
  const Shape shape{2, 3};
  const auto refusal = [](auto&& make) { return test::error_of<IndexError>(make); };
  EXPECT_THAT(refusal([&] {
                csr(shape, {1, 1, 2}, {0, 1});
              }),
              HasSubstr("sparse_csr: indptr[0] is 1, it must be 0"));
  EXPECT_THAT(refusal([&] {
                csr(shape, {0, 2, 1}, {0, 1});
              }),
              HasSubstr("indptr[2] is 1, it must be from 2 to 2, the number of values"));
  EXPECT_THAT(refusal([&] { csr(shape, {0, 1, 3}, {0, 1}); }), HasSubstr("indptr[2] is 3"));
  EXPECT_THAT(refusal([&] {
                csr(shape, {0, 1, 1}, {0, 1});
              }),
              HasSubstr("indptr[2] is 1, it must be 2, the number of values"));
  EXPECT_THAT(refusal([&] {
                csr(shape, {0, 1, 2}, {0, 3});
              }),
              HasSubstr("indices[1] is 3, it must be from 0 to 2"));
  EXPECT_THAT(refusal([&] { csr(shape, {0, 2, 2}, {1, 1}); }), HasSubstr("columns of a row rise"));
  EXPECT_THAT(refusal([&] { csr(shape, {0, 2, 2}, {-1, 1}); }), HasSubstr("indices[0] is -1"));
  EXPECT_THAT(refusal([&] {
                coo(shape, {0, 2}, {0, 0});
              }),
              HasSubstr("sparse_coo: rows[1] is 2, it must be from 0 to 1"));
  EXPECT_THAT(refusal([&] { coo(shape, {1, 0}, {0, 0}); }), HasSubstr("row-major order"));
  EXPECT_THAT(refusal([&] {
                coo(shape, {0, 0}, {2, 1});
              }),
              HasSubstr("columns[1] is 1, it must be from 3 to 2"));
  EXPECT_NO_THROW(coo(shape, {0, 1}, {2, 1}));
}

TEST(Sparse, RefusesShapesAndDtypes) {
  const Tensor two = zeros({2}, DType::kInt32), values = zeros({2}, DType::kFloat32);
  const auto make = [&](const Shape& shape, const Tensor& rows, const Tensor& columns,
                        const Tensor& of) {
    return [=] { SparseMatrix(SparseLayout::kCoo, shape, rows, columns, of); };
  };
  EXPECT_THAT(test::error_of<ShapeError>(make({2}, two, two, values)), HasSubstr("2 dimensions"));
  EXPECT_THAT(test::error_of<ShapeError>(make({2, 2}, zeros({3}, DType::kInt32), two, values)),
              HasSubstr("sparse_coo: rows (3,), columns (2,) and values (2,)"));
  EXPECT_THAT(test::error_of<DTypeError>(make({2, 2}, two, two, zeros({2}, DType::kInt32))),
              HasSubstr("values are int32; needed is float32 or float64"));
  EXPECT_THAT(test::error_of<DTypeError>(make({2, 2}, zeros({2}, DType::kInt64), two, values)),
              HasSubstr("rows are int64, columns int32; needed is int32 or int64 for both"));
  EXPECT_THAT(test::error_of<DTypeError>([] {
                to_sparse(zeros({2, 2}, DType::kInt32));
              }),
              HasSubstr("to_sparse: values are int32"));
  EXPECT_THAT(test::error_of<ShapeError>([] {
                to_sparse(zeros({2, 2, 2}));
              }),
              HasSubstr("to_sparse: shape (2, 2, 2) was given"));
  EXPECT_THAT(test::error_of<ExecutionError>([] { parse_sparse_layout("csc", "mine"); }),
              HasSubstr("mine: layout 'csc' is unknown; known are csr, coo"));
  const SparseMatrix s = to_sparse(ones({3, 4}));
  EXPECT_THAT(test::error_of<ShapeError>([&] {
                matmul(s, ones({3, 4}));
              }),
              HasSubstr("matmul: a sparse matrix (3, 4) and (3, 4) do not fit"));
  EXPECT_THAT(test::error_of<DTypeError>([&] {
                matmul(s, ones({4, 2}, DType::kComplex64));
              }),
              HasSubstr("promote to float32 or float64"));
}

}  // namespace
}  // namespace cuop
