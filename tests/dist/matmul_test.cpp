#include "cuop/dist/algo/matmul.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;  // NOLINT: the frame of these tests

struct Sizes {
  int64_t m, k, n;
};
constexpr Sizes kSizes[] = {{1, 1, 1}, {5, 3, 2}, {16, 8, 12}, {7, 13, 11}, {3, 0, 4}, {0, 5, 3}};

TEST(DistMatmul, FromTheRootEqualsOneProduct) {
  for (const int ranks : kRanks) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const auto& [m, k, n] : kSizes) {
        const Tensor a = noise({m, k});
        const Tensor b = noise({k, n}, DType::kFloat64, 2);
        const Tensor expected = cuop::matmul(a, b);
        for (const char* strategy : {"", "root", "row", "column", "block_2d", "k_split"}) {
          const std::string what = cat(ranks, " ranks ", strategy, ' ', m, 'x', k, 'x', n);
          const Tensor c =
              matmul_from_root(comm, on_root(comm, a), on_root(comm, b), {.strategy = strategy});
          expect_rooted(comm, c, expected, 1e-13, what);
          if (*strategy != 0) {
            EXPECT_EQ(last_report().plan.strategy, strategy);
          }
        }
      }
    });
  }
}

TEST(DistMatmul, TakesAnyShardingsAndLeavesTheResultWhereItIsWanted) {
  for (const int ranks : {2, 3, 4}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = noise({9, 5});
      const Tensor b = noise({5, 6}, DType::kFloat64, 2);
      const Tensor expected = cuop::matmul(a, b);
      for (const Sharding& sharding_a : matrix_shardings(ranks)) {
        for (const Sharding& sharding_b : matrix_shardings(ranks)) {
          const DistTensor c = matmul(laid_out(comm, a, sharding_a), laid_out(comm, b, sharding_b),
                                      {.output = sharding_b});
          EXPECT_EQ(c.sharding(), sharding_b);
          expect_close(gather_all(c), expected, 1e-13, cat(sharding_a, " @ ", sharding_b));
        }
      }
    });
  }
}

TEST(DistMatmul, KeepsItsPromisesOfBytesAndMemory) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(4), split_dim(2, 0));
    const DistTensor a = laid_out(comm, noise({64, 32}), rows);
    const DistTensor b = laid_out(comm, noise({32, 48}, DType::kFloat64, 2), rows);
    const DistTensor c = matmul(a, b, {.strategy = "row"});
    EXPECT_EQ(last_report().plan.bytes(), 32 * 48 * 8 * 3);  // B to everybody
    // The protocol of the call itself adds a few bytes.
    EXPECT_NEAR(static_cast<double>(last_report().bytes_sent), 32 * 48 * 8 * 3 / 4.0, 1000);
    // A limit that forces panels changes the order of sums, not the product.
    Machine small;
    small.memory = last_report().plan.memory_per_rank - 6000;
    const DistTensor in_panels = matmul(a, b, {.strategy = "row", .machine = small});
    EXPECT_GT(last_report().plan.setting("panels"), 1);
    expect_close(gather_all(in_panels), gather_all(c), 1e-13, "panels");
  });
}

TEST(DistMatmul, PromotesAndRounds) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor a = noise({6, 7}, DType::kFloat32);
    const Tensor b = noise({7, 5}, DType::kFloat64, 2);
    expect_rooted(comm,
                  matmul_from_root(comm, on_root(comm, a), on_root(comm, b), {.strategy = "row"}),
                  cuop::matmul(a, b), 1e-13, "float32 @ float64");
    const Tensor i = cast(counting({6, 7}), DType::kInt32);
    const Tensor j = cast(counting({7, 5}), DType::kInt32);
    expect_rooted(
        comm, matmul_from_root(comm, on_root(comm, i), on_root(comm, j), {.strategy = "k_split"}),
        cuop::matmul(i, j), 0, "int32");
  });
}

TEST(DistMatmul, FailsOnEveryRankAndGoesOn) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor a = on_root(comm, noise({4, 5}));
    EXPECT_THAT(failure_of([&] {
                  matmul_from_root(comm, a, on_root(comm, noise({4, 5})));
                }),
                HasSubstr("matmul: shapes (4, 5) and (4, 5) do not fit"));
    EXPECT_THAT(failure_of([&] { matmul_from_root(comm, a, Tensor()); }),
                HasSubstr("B was not given"));
    const Tensor b = on_root(comm, noise({5, 4}));
    EXPECT_THAT(failure_of([&] { matmul_from_root(comm, a, b, {.strategy = "spiral"}); }),
                HasSubstr("no strategy \"spiral\""));
    EXPECT_THAT(failure_of([&] { matmul_from_root(comm, a, a); }),
                HasSubstr(comm->rank() == 0 ? "do not fit" : "rank 0 of 3 failed"));
    // Rank 2 forces another strategy: every rank names both calls.
    const std::string message = failure_of(
        [&] { matmul_from_root(comm, a, a, {.strategy = comm->rank() == 2 ? "row" : "column"}); });
    EXPECT_FALSE(message.empty());
    const Sharding rows(Mesh::line(3), split_dim(2, 0));
    const DistTensor x = laid_out(comm, noise({4, 4}), rows);
    const DistTensor y = laid_out(comm, noise({5, 4}), rows);
    EXPECT_THAT(failure_of([&] { matmul(x, comm->rank() == 1 ? y : x); }), HasSubstr("(5, 4)"));
    Machine tiny;
    tiny.memory = 10;
    EXPECT_THROW(matmul(x, x, {.machine = tiny}), MemoryError);
    expect_close(gather_all(matmul(x, x)), cuop::matmul(noise({4, 4}), noise({4, 4})), 1e-13,
                 "after the failures");
  });
}

}  // namespace
}  // namespace cuop::dist
