#include "cuop/dist/algo/pipelined.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/dist/plan/pipeline_plan.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

TEST(Pipeline, RunsEveryStageOfEveryChunkInOrder) {
  for (const bool is_on : {false, true}) {
    for (const int64_t chunks : {0, 1, 2, 5}) {
      for (const int64_t ahead : {1, 2, 9}) {
        std::vector<int> brought, worked, taken;
        const auto add = [](std::vector<int>& to) {
          return [&to](int64_t chunk) { to.push_back(static_cast<int>(chunk)); };
        };
        const auto work = [&](int64_t chunk) {
          EXPECT_LT(chunk, static_cast<int64_t>(brought.size()));
          worked.push_back(static_cast<int>(chunk));
        };
        const auto take = [&](int64_t chunk) {
          EXPECT_LT(chunk, static_cast<int64_t>(worked.size()));
          taken.push_back(static_cast<int>(chunk));
        };
        // Without overlap on the host: what several threads would write here is looked at.
        const Overlap overlap{is_on && chunks < 2, ahead};
        run_pipeline(kCpu, chunks, {add(brought), work, take}, overlap, {});
        std::vector<int> all;
        for (int64_t chunk = 0; chunk < chunks; ++chunk) all.push_back(static_cast<int>(chunk));
        EXPECT_EQ(brought, all);
        EXPECT_EQ(worked, all);
        EXPECT_EQ(taken, all);
      }
    }
  }
}

/// While a chunk is worked on the next one is brought: neither could end without the other.
TEST(Pipeline, OverlapsOnTheHost) {
  std::atomic<int> brought = 0, begun = 0;
  const auto wait_for = [](const std::atomic<int>& count, int wanted) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (count < wanted && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_GE(count, wanted);
  };
  constexpr int kChunks = 4;
  run_pipeline(kCpu, kChunks,
               {[&](int64_t chunk) {
                  if (chunk > 0) wait_for(begun, static_cast<int>(chunk));
                  ++brought;
                },
                [&](int64_t chunk) {
                  ++begun;
                  if (chunk + 1 < kChunks) wait_for(brought, static_cast<int>(chunk) + 2);
                },
                [](int64_t) {}},
               {}, {});
  EXPECT_EQ(brought, kChunks);
}

TEST(Pipeline, ErrorsOfWorkReachTheCaller) {
  const auto fails_at = [](int64_t failing) {
    run_pipeline(kCpu, 3,
                 {[](int64_t) {},
                  [failing](int64_t chunk) {
                    if (chunk == failing) throw ShapeError("no");
                  },
                  [](int64_t) {}},
                 {}, {});
  };
  for (const int64_t chunk : {0, 1, 2}) EXPECT_THROW(fails_at(chunk), ShapeError);
}

TEST(PipelinePlan, WeighsChunksAgainstWhatEachCosts) {
  EXPECT_DOUBLE_EQ(overlapped_seconds(3.0, 2.0, 1, 0.1), 5.1);
  EXPECT_DOUBLE_EQ(overlapped_seconds(3.0, 2.0, 4, 0.1), 3.0 + 0.5 + 0.4);
  EXPECT_EQ(best_chunks(3.0, 2.0, 2.0, 64), 1);
  const int64_t best = best_chunks(3.0, 2.0, 0.02, 64);
  EXPECT_EQ(best, 10);
  EXPECT_EQ(best_chunks(3.0, 2.0, 0.0, 7), 7);
  EXPECT_EQ(best_chunks(3.0, 0.0, 0.1, 64), 1);
}

TEST(PipelinePlan, ARootsOwnArithmeticIsBesideTheMoves) {
  Machine machine;
  machine.overlap = 1;
  machine.latency = machine.message_overhead = 0;
  const auto seconds = [&](double root, double moves, std::optional<double> others) {
    Plan plan{"op", "batch", "", 4};
    plan.steps.resize(2);
    plan.steps[0].seconds = moves;
    plan.steps[1].seconds = root;
    overlap_moves(plan, machine, {0}, 1, 4, {}, others);
    return plan.seconds();
  };
  EXPECT_DOUBLE_EQ(seconds(3.0, 2.0, std::nullopt), 3.0 + 2.0 / 4);
  EXPECT_DOUBLE_EQ(seconds(3.0, 2.0, 1.0), 3.0);
  EXPECT_DOUBLE_EQ(seconds(3.0, 4.0, 1.0), 4.0 + 1.0 / 4);
}

TEST(PipelinePlan, StaysOnTheRootWhereThatIsFaster) {
  const Sharding at_root = Sharding::on_rank(Mesh::line(4), 0);
  const auto plan = [&](int64_t m, int64_t k, int64_t chunks, double link) {
    Machine machine;
    machine.link_bandwidth = link;
    return plan_pipelined_matmul({m, 2000, k, DType::kFloat32, at_root, chunks}, machine);
  };
  EXPECT_EQ(plan(10, 10, 0, 4e9).strategy, "root");
  const Plan large = plan(20000, 2000, 0, 4e9);
  EXPECT_EQ(large.strategy, "pipelined");
  EXPECT_GT(large.setting("chunks"), 1);
  EXPECT_EQ(large.candidates.size(), 2u);
  EXPECT_EQ(plan(10, 10, 3, 4e9).setting("chunks"), 3);
  EXPECT_EQ(plan(2, 10, 3, 4e9).setting("chunks"), 2);
  EXPECT_EQ(plan(0, 10, 3, 4e9).setting("chunks"), 1);
}

TEST(Pipelined, ProductsEqualThoseOfOneRank) {
  struct Sizes {
    int64_t m, k, n;
  };
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const auto& [m, k, n] :
           {Sizes{1, 1, 1}, {40, 8, 12}, {23, 13, 11}, {3, 0, 4}, {0, 5, 3}}) {
        const Tensor a = noise({m, k}), b = noise({k, n}, DType::kFloat64, 2);
        const Tensor expected = cuop::matmul(a, b);
        for (const int64_t chunks : {0, 1, 3, 100}) {
          for (const Overlap& overlap : {Overlap{}, Overlap{true, 3}, Overlap{false, 1}}) {
            const std::string what = cat(ranks, " ranks, ", chunks, " chunks, ", m, 'x', k, 'x', n);
            const Tensor c = matmul_pipelined_from_root(comm, on_root(comm, a), on_root(comm, b),
                                                        chunks, overlap);
            expect_rooted(comm, c, expected, 1e-13, what);
          }
        }
      }
      const Tensor halves = noise({9, 4}, DType::kFloat16),
                   singles = noise({4, 6}, DType::kFloat32);
      const Tensor c =
          matmul_pipelined_from_root(comm, on_root(comm, halves), on_root(comm, singles), 2);
      expect_rooted(comm, c, cuop::matmul(halves, singles), 1e-6, "promoted");
    });
  }
}

TEST(Pipelined, SumsHaveTheBitsOfOthers) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{0}, Shape{1}, Shape{7, 11}, Shape{1000}}) {
        for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt32}) {
          const Tensor mine = swap_axes(
              noise(shape, dtype, static_cast<unsigned>(comm->rank()) + 3), 0, shape.ndim() - 1);
          const ReduceKind op = dtype == DType::kInt32 ? ReduceKind::kMax : ReduceKind::kSum;
          const Tensor expected = all_reduce(comm, mine, op);
          for (const int64_t chunks : {1, 2, 5}) {
            const Tensor got = all_reduce_pipelined(comm, mine, op, chunks, {chunks != 2, 2});
            expect_close(got, expected, 0.0, cat(ranks, " ranks, ", chunks, " chunks ", shape));
          }
        }
      }
    });
  }
}

TEST(Pipelined, RefusesWhatDoesNotFitOnEveryRank) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor a = noise({4, 5}), b = noise({6, 3});
    const auto product = [&](const Tensor& right, int64_t chunks) {
      matmul_pipelined_from_root(comm, on_root(comm, a), on_root(comm, right), chunks);
    };
    EXPECT_THAT(test::error_of<Error>([&] { product(b, 2); }), HasSubstr("do not fit"));
    EXPECT_THAT(test::error_of<Error>([&] {
                  product(noise({5, 3}), -1);
                }),
                HasSubstr("-1 chunks were asked for"));
    EXPECT_THAT(test::error_of<Error>([&] { all_reduce_pipelined(comm, a, ReduceKind::kSum, 0); }),
                HasSubstr("0 chunks were asked for"));
    const Tensor own = noise({comm->rank() == 1 ? 3 : 4});
    EXPECT_THROW(all_reduce_pipelined(comm, own, ReduceKind::kSum, 2), Error);
    expect_rooted(
        comm, matmul_pipelined_from_root(comm, on_root(comm, a), on_root(comm, noise({5, 3})), 2),
        cuop::matmul(a, noise({5, 3})), 1e-13, "after errors");
  });
}

}  // namespace
}  // namespace cuop::dist
