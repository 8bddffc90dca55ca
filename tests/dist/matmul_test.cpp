#include "cuop/dist/algo/matmul.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

struct MatmulSizes {
  int64_t m, k, n;
};
constexpr MatmulSizes kMatmulSizes[] = {{1, 1, 1},   {5, 3, 2}, {16, 8, 12},
                                        {7, 13, 11}, {3, 0, 4}, {0, 5, 3}};

TEST(DistMatmul, FromTheRootEqualsOneProduct) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const auto& [m, k, n] : kMatmulSizes) {
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

TEST(DistMatmul, IsMadeInChunksWhereMovesAreHidden) {
  const Machine machine = hiding_moves();
  for (const int ranks : {2, 3, 4, 7}) {
    if (is_slow() && ranks != 3) continue;
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      // Rows and columns of blocks are no multiples of anything.
      const int64_t m = 150 * ranks + 1, n = 130 * ranks + 5, k = 3;
      const Tensor a = noise({m, k}, DType::kFloat32), b = noise({k, n}, DType::kFloat32, 2);
      const Tensor expected = cuop::matmul(a, b);
      for (const char* strategy : {"row", "column"}) {
        const std::string what = cat(ranks, " ranks ", strategy);
        const CallOptions options{.strategy = strategy, .machine = machine};
        const Tensor c = matmul_from_root(comm, on_root(comm, a), on_root(comm, b), options);
        expect_rooted(comm, c, expected, 1e-6, what);
        EXPECT_GT(last_report().plan.setting("chunks"), 1) << what;
        EXPECT_THAT(last_report().plan.explain(), HasSubstr("chunks while others move")) << what;
        for (const ProductPath path : {ProductPath::kAuto, ProductPath::kSparse}) {
          const Tensor by_zeros =
              matmul_from_root(comm, on_root(comm, a), on_root(comm, b), options, {}, path);
          EXPECT_GT(last_report().plan.setting("chunks"), 1) << what;
          expect_rooted(comm, by_zeros, expected, 1e-6, cat(what, ", product ", name(path)));
        }
        // Over the ranks, the result where it is made and where it is wanted.
        const Sharding rows(Mesh::line(ranks), split_dim(2, 0)),
            columns(Mesh::line(ranks), split_dim(2, 1));
        for (const Sharding& sharding : {rows, columns}) {
          const DistTensor x = laid_out(comm, a, sharding), y = laid_out(comm, b, sharding);
          const DistTensor here = matmul(x, y, options);
          expect_close(gather_all(here), expected, 1e-6, what);
          CallOptions wanted = options;
          wanted.output = columns;
          const DistTensor there = matmul(x, y, wanted);
          EXPECT_EQ(there.sharding(), columns);
          expect_close(gather_all(there), expected, 1e-6, what);
        }
      }
    });
  }
}

TEST(DistMatmul, PlansOverlapByWhatItHides) {
  Machine machine = Machine::gpu(132, 1980000, 3201000, 6144);
  machine.link_bandwidth = 3.6e11;
  const Sharding at_root = Sharding::on_rank(Mesh::line(4), 0);
  const auto plan_of = [&](double overlap, int64_t n) {
    machine.overlap = overlap;
    return plan_matmul({n, n, n, DType::kFloat32, at_root, at_root, at_root}, machine, "row");
  };
  const Plan none = plan_of(0, 8192), all = plan_of(1, 8192), half = plan_of(0.5, 8192);
  EXPECT_EQ(none.setting("chunks"), 1);
  EXPECT_GT(all.setting("chunks"), 1);
  EXPECT_EQ(chunked_input(all), 1u);  // B, which all need
  EXPECT_LT(all.seconds(), half.seconds());
  EXPECT_LT(half.seconds(), none.seconds());
  EXPECT_EQ(all.seconds(false), none.seconds(false));  // arithmetic is what it was
  EXPECT_EQ(all.bytes(), none.bytes());
  EXPECT_EQ(plan_of(1, 512).setting("chunks"), 1);  // too short
}

TEST(DistMatmul, ChunksOfBlocksAreWholeLinesAndMissNothing) {
  const std::vector<Box> blocks{{{3, 0}, {203, 5}}, {{203, 0}, {203, 5}}, {{0, 0}, {40, 5}}};
  for (size_t i = 0; i < blocks.size(); ++i) {
    int64_t next = blocks[i].low[0];
    for (int64_t chunk = 0; chunk < 3; ++chunk) {
      const Interval rows = chunk_of(blocks, 0, 3, chunk, 64)[i].interval(0);
      if (blocks[i].empty()) continue;
      EXPECT_EQ(rows.low, next);
      next = rows.high;
      const bool is_whole = (rows.low - blocks[i].low[0]) % 64 == 0;
      EXPECT_TRUE(is_whole || rows.length() == 0);
    }
    EXPECT_EQ(next, blocks[i].high[0]);
  }
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
