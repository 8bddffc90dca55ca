// Products whose zeros are left out, of one rank's blocks and over ranks.
#include <gmock/gmock.h>

#include <limits>

#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"
#include "cuop/ops/sparse/product_path.h"
#include "tests/dist/algo_test.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

/// Noise of which about the part `zeros` is left out.
Tensor with_zeros(const Shape& shape, double zeros, DType dtype, unsigned seed = 1) {
  const Tensor chance = divide(add(noise(shape, DType::kFloat64, seed + 100), 1.0), 2.0);
  return cast(multiply(noise(shape, DType::kFloat64, seed),
                       cast(greater_equal(chance, zeros), DType::kFloat64)),
              dtype);
}

TEST(ProductPath, FollowsTheZeros) {
  const auto choice = [](double a_density, double b_density, int64_t m, int64_t n, int64_t k) {
    const auto kept = [](double density, int64_t size) {
      return static_cast<int64_t>(density * static_cast<double>(size));
    };
    return cheaper_operand({m, n, k, kept(a_density, m * k), kept(b_density, k * n)}, kCpu);
  };
  EXPECT_EQ(choice(1, 1, 2000, 2000, 2000), SparseOperand::kNone);
  EXPECT_EQ(choice(0.5, 1, 2000, 2000, 2000), SparseOperand::kNone);
  EXPECT_EQ(choice(0.01, 1, 2000, 2000, 2000), SparseOperand::kA);
  EXPECT_EQ(choice(1, 0.01, 2000, 2000, 2000), SparseOperand::kB);
  EXPECT_EQ(choice(0.001, 0.05, 2000, 2000, 2000), SparseOperand::kA);
  // Too few columns to pay for looking at A, too few rows for B.
  EXPECT_EQ(choice(0, 1, 2000, 10, 2000), SparseOperand::kNone);
  EXPECT_EQ(choice(1, 0, 10, 2000, 2000), SparseOperand::kNone);
}

TEST(ProductPath, AnyWayGivesTheSameProduct) {
  struct Case {
    int64_t m, n, k;
    double a_zeros, b_zeros;
    SparseOperand taken;
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const double size = is_slow() ? 0.1 : 1.0;
    for (const Case& given : {Case{600, 700, 300, 0.99, 0, SparseOperand::kA},
                              Case{700, 600, 300, 0, 0.99, SparseOperand::kB},
                              Case{300, 310, 50, 0.1, 0.2, SparseOperand::kNone},
                              Case{30, 50, 40, 1, 1, SparseOperand::kNone}}) {
      const auto scaled = [&](int64_t n) {
        return static_cast<int64_t>(size * static_cast<double>(n));
      };
      const Case c{scaled(given.m), scaled(given.n), scaled(given.k),
                   given.a_zeros,   given.b_zeros,   given.taken};
      const Tensor a = with_zeros({c.m, c.k}, c.a_zeros, dtype);
      const Tensor b = with_zeros({c.k, c.n}, c.b_zeros, dtype, 2);
      const Tensor expected = cuop::matmul(a, b);
      const double tolerance = dtype == DType::kFloat32 ? 2e-5 : 1e-13;
      for (const ProductPath path :
           {ProductPath::kDense, ProductPath::kSparse, ProductPath::kAuto}) {
        const std::string what = cat(dtype, ' ', c.m, ' ', name(path));
        const Tensor once = full({c.m, c.n}, 7.0, dtype, home());
        const SparseOperand taken = multiply_by_path(a, b, false, path, once);
        expect_close(once, expected, tolerance, what);
        multiply_by_path(a, b, true, path, once);
        expect_close(once, multiply(expected, 2.0), 2 * tolerance, "twice " + what);
        const SparseOperand wanted = path == ProductPath::kDense     ? SparseOperand::kNone
                                     : path == ProductPath::kSparse  ? SparseOperand::kA
                                     : home().is_cpu() && !is_slow() ? c.taken
                                                                     : taken;
        EXPECT_EQ(taken, wanted) << what;
      }
    }
  }
}

TEST(ProductPath, KeepsTheNanThatZerosMakeOfInfinities) {
  const Tensor a = zeros({600, 64}, DType::kFloat64, home());
  const Tensor b =
      full({64, 700}, std::numeric_limits<double>::infinity(), DType::kFloat64, home());
  const Tensor c = zeros({600, 700}, DType::kFloat64, home());
  EXPECT_EQ(multiply_by_path(a, b, false, ProductPath::kAuto, c), SparseOperand::kNone);
  EXPECT_TRUE(std::isnan(values(c)[0]));
  multiply_by_path(a, b, false, ProductPath::kSparse, c);
  EXPECT_EQ(values(c)[0], 0.0);
}

TEST(ProductPath, MultipliesOtherDtypesDensely) {
  const Tensor a = counting({5, 4}, DType::kInt32), b = counting({4, 3}, DType::kInt32);
  const Tensor c = zeros({5, 3}, DType::kInt32, home());
  for (const ProductPath path : {ProductPath::kSparse, ProductPath::kAuto}) {
    EXPECT_EQ(multiply_by_path(a, b, false, path, c), SparseOperand::kNone);
    EXPECT_EQ(values(c), values(cuop::matmul(a, b)));
  }
}

TEST(ProductPath, IsNamed) {
  for (const ProductPath path : {ProductPath::kDense, ProductPath::kSparse, ProductPath::kAuto}) {
    EXPECT_EQ(parse_product_path(name(path), "test"), path);
  }
  EXPECT_THAT(test::error_of<ExecutionError>([] { parse_product_path("csr", "mine"); }),
              HasSubstr("mine: product 'csr' is unknown; known are dense, sparse, auto"));
}

TEST(SparseProductOverRanks, IsThatOfTheDenseMatrices) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = with_zeros({90, 64}, 0.95, DType::kFloat64);
      const Tensor b = with_zeros({64, 300}, 0.3, DType::kFloat64, 2);
      const Tensor expected = cuop::matmul(a, b);
      for (const Wire& wire : {Wire{}, Wire::sparse(0.5, "test")}) {
        for (const ProductPath path : {ProductPath::kSparse, ProductPath::kAuto}) {
          for (const char* strategy : {"", "row", "column", "k_split"}) {
            if (ranks == 1 && std::string(strategy) == "k_split") continue;
            const Tensor c = matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                              {.strategy = strategy}, wire, path);
            expect_rooted(comm, c, expected, 1e-12, cat(ranks, strategy, wire.text(), name(path)));
          }
        }
      }
    });
  }
}

TEST(SparseProductOverRanks, WorksInPanelsUnderAMemoryLimit) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor a = with_zeros({64, 256}, 0.9, DType::kFloat64);
    const Tensor b = with_zeros({256, 64}, 0.9, DType::kFloat64, 2);
    const Sharding rows(Mesh::line(2), split_dim(2, 0));
    Machine machine;
    machine.memory = 200 << 10;
    const DistTensor c = matmul(laid_out(comm, a, rows), laid_out(comm, b, rows),
                                {.strategy = "row", .machine = machine}, {}, ProductPath::kSparse);
    expect_close(gather_all(c), cuop::matmul(a, b), 1e-12, "in panels");
  });
}

}  // namespace
}  // namespace cuop::dist
