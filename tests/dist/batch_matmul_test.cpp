#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

struct Operands {
  Shape a, b;
};

const Operands kOperands[] = {
    {{6, 4, 5}, {6, 5, 3}}, {{5, 7, 2}, {2, 9}},       {{1, 3, 4}, {8, 4, 1}},
    {{2, 3, 4, 5}, {5, 2}}, {{3, 1, 4}, {2, 1, 4, 6}}, {{0, 3, 4}, {0, 4, 2}},
    {{3, 0, 4}, {4, 2}},    {{3, 2, 0}, {3, 0, 2}},    {{4, 3}, {5, 3, 2}},
};

TEST(DistBatchMatmul, FromTheRootEqualsOneProduct) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const auto& [a_shape, b_shape] : kOperands) {
        const Tensor a = noise(a_shape), b = noise(b_shape, DType::kFloat64, 2);
        const Tensor expected = cuop::matmul(a, b);
        std::vector<const char*> strategies{"", "root", "batch", "row", "column"};
        if (ranks == 4) strategies.push_back("grid");
        for (const char* strategy : strategies) {
          const Tensor c = batch_matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                                  {.strategy = strategy});
          expect_rooted(comm, c, expected, 1e-13,
                        cat(ranks, " ranks ", strategy, ' ', a_shape, " @ ", b_shape));
          if (*strategy != 0) {
            EXPECT_EQ(last_report().plan.strategy, strategy);
          }
        }
      }
    });
  }
}

TEST(DistBatchMatmul, IsMadeInChunksWhereMovesAreHidden) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const auto& [a_shape, b_shape] : kOperands) {
        const Tensor a = noise(a_shape), b = noise(b_shape, DType::kFloat64, 2);
        const Tensor expected = cuop::matmul(a, b);
        for (const char* strategy : {"batch", "row", "column"}) {
          const std::string what = cat(ranks, " ranks ", strategy, ' ', a_shape, " @ ", b_shape);
          const CallOptions options{.strategy = strategy, .machine = hiding_moves()};
          expect_rooted(comm,
                        batch_matmul_from_root(comm, on_root(comm, a), on_root(comm, b), options),
                        expected, 1e-13, what);
          const Sharding batch(Mesh::line(ranks), split_dim(a.ndim(), 0));
          const DistTensor c = batch_matmul(laid_out(comm, a, batch),
                                            DistTensor::from_root(comm, on_root(comm, b)), options);
          expect_close(gather_all(c), expected, 1e-13, what);
        }
      }
      const Tensor a = noise({16 * ranks + 1, 3, 4}), b = noise({4, 5}, DType::kFloat64, 2);
      const Tensor c = batch_matmul_from_root(comm, on_root(comm, a), on_root(comm, b),
                                              {.strategy = "batch", .machine = hiding_moves()});
      expect_rooted(comm, c, cuop::matmul(a, b), 1e-13, cat(ranks, " ranks"));
      // A plain process uses all of its GPUs.
      EXPECT_EQ(chunks_of(last_report().plan) > 1, last_report().plan.ranks > 1);
    });
  }
}

/// What it keeps does not travel, and it works while it sends.
TEST(DistBatchMatmul, TheRankWithAllOperandsMayKeepMoreThanOthers) {
  for (const int ranks : {2, 3, 4, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = noise({40, 3, 4}), b = noise({40, 4, 5}, DType::kFloat64, 2);
      for (const int root : {0, ranks - 1}) {
        const auto given = [&](const Tensor& x) { return comm->rank() == root ? x : Tensor(); };
        CallOptions options{.strategy = "batch", .machine = hiding_moves()};
        options.machine->link_bandwidth = 1e5;  // of the rank's work
        const Tensor c =
            run_rooted(comm, batch_matmul_operation(), {given(a), given(b)}, options, root);
        const auto made = last_report().plan.outputs[0].sharding.owner_boxes({40, 3, 5});
        for (int rank = 0; rank < ranks; ++rank) {
          if (rank == root) continue;
          EXPECT_GT(made[static_cast<size_t>(root)].size(), made[static_cast<size_t>(rank)].size());
        }
        if (comm->rank() == root) expect_close(c, cuop::matmul(a, b), 1e-13, cat(ranks, " ranks"));
        // Nobody waits for the other where operands lie in parts.
        const Sharding batch(Mesh::line(ranks), split_dim(3, 0));
        batch_matmul(laid_out(comm, a, batch), laid_out(comm, b, batch), options);
        EXPECT_TRUE(last_report().plan.outputs[0].sharding.blocks().empty());
      }
    });
  }
}

TEST(DistBatchMatmul, MovesNothingWhereTheBatchLiesInParts) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Sharding batch(Mesh::line(3), split_dim(3, 0));
    const Tensor a = noise({7, 4, 5}), b = noise({7, 5, 6}, DType::kFloat64, 2);
    const DistTensor c = batch_matmul(laid_out(comm, a, batch), laid_out(comm, b, batch));
    EXPECT_EQ(last_report().plan.bytes(), 0);
    EXPECT_EQ(c.sharding(), batch);
    expect_close(gather_all(c), cuop::matmul(a, b), 1e-13, "in parts");
    // The inner dimension is split: no operand's own layout serves.
    const Sharding inner(Mesh::line(3), split_dim(3, 2));
    const DistTensor d = batch_matmul(laid_out(comm, a, inner), laid_out(comm, b, batch));
    expect_close(gather_all(d), cuop::matmul(a, b), 1e-13, "inner dimension in parts");
  });
}

TEST(DistBatchMatmul, LeavesTheResultWhereItIsWanted) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(4), split_dim(3, 1));
    const Tensor a = noise({2, 6, 5}, DType::kFloat32), b = noise({5, 3}, DType::kFloat64, 2);
    const DistTensor c =
        batch_matmul(laid_out(comm, a, rows),
                     laid_out(comm, b, Sharding::replicated(Mesh::line(4))), {.output = rows});
    EXPECT_EQ(c.sharding(), rows);
    EXPECT_EQ(c.dtype(), DType::kFloat64);
    expect_close(gather_all(c), cuop::matmul(a, b), 1e-13, "float32 @ float64");
  });
}

TEST(DistBatchMatmul, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor a = on_root(comm, noise({2, 3, 4}));
    for (const Shape& wrong : {Shape{2, 3, 4}, Shape{4}, Shape{3, 4, 2}}) {
      EXPECT_NE(failure_of([&] { batch_matmul_from_root(comm, a, on_root(comm, noise(wrong))); }),
                "")
          << wrong;
    }
    EXPECT_THAT(failure_of([&] {
                  const Tensor matrix = on_root(comm, noise({3, 3}));
                  batch_matmul_from_root(comm, matrix, matrix);
                }),
                HasSubstr("one of them with a batch"));
    EXPECT_THAT(failure_of([&] { batch_matmul_from_root(comm, a, Tensor()); }),
                HasSubstr("b was not given"));
    const Tensor b = noise({4, 2}, DType::kFloat64, 2);
    expect_rooted(comm, batch_matmul_from_root(comm, a, on_root(comm, b)),
                  cuop::matmul(noise({2, 3, 4}), b), 1e-13, "after the failures");
  });
}

}  // namespace
}  // namespace cuop::dist
