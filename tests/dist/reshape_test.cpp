#include "cuop/dist/algo/reshape.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/arithmetic.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/reshape_plan.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

const std::vector<std::vector<Shape>> kSameSizes{
    {{12, 5}, {60}, {5, 12}, {3, 4, 5}, {12, 5, 1}, {1, 60}, {2, 1, 30}, {2, 2, 3, 5}, {6, 10}},
    {{7, 3}, {21}, {3, 7}, {21, 1}, {7, 3, 1}, {1, 1, 21}},
    {{1, 1}, {}, {1}, {1, 1, 1}},
    {{0, 4}, {0}, {4, 0}, {2, 0, 3}}};

TEST(DistReshape, HasTheElementsOfOneTensor) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const std::vector<Shape>& shapes : kSameSizes) {
        const Tensor whole = counting(shapes[0]);
        for (const Sharding& sharding : matrix_shardings(ranks)) {
          const DistTensor x = laid_out(comm, whole, sharding);
          for (const Shape& shape : shapes) {
            const std::string what = cat(sharding, ' ', shapes[0], " -> ", shape);
            const StrictScope strict;  // nobody gathers
            const DistTensor y = reshape(x, shape);
            expect_close(gather_all(y), cuop::reshape(whole, shape), 0, what);
            expect_close(gather_all(reshape(y, shapes[0])), whole, 0, what + " and back");
            expect_close(gather_all(reshape(x, shape, {.strategy = "blocks"})),
                         cuop::reshape(whole, shape), 0, what + " in blocks");
          }
        }
      }
    });
  }
}

TEST(DistReshape, KeepsPartsThatAreBoxesOfTheNewShape) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Mesh line = Mesh::line(3);
    const DistTensor x = laid_out(comm, counting({7, 4, 3}), Sharding(line, split_dim(3, 0)));
    const int64_t sent = comm->bytes_sent();
    EXPECT_EQ(reshape(x, {7, 12}).sharding(), Sharding(line, split_dim(2, 0)));
    EXPECT_EQ(reshape(x, {-1}).sharding(),
              Sharding(line, split_dim(1, 0)).with_blocks(0, {36, 24, 24}));
    EXPECT_EQ(reshape(x, {1, 14, 2, 3}).sharding(),
              Sharding(line, split_dim(4, 1)).with_blocks(1, {6, 4, 4}));
    EXPECT_EQ(reshape(x, {7, 12}).local().storage(), x.local().storage());
    const DistTensor columns = laid_out(comm, counting({4, 6}), Sharding(line, split_dim(2, 1)));
    EXPECT_EQ(reshape(columns, {2, 2, 6}).sharding(), Sharding(line, split_dim(3, 2)));
    EXPECT_EQ(comm->bytes_sent(), sent);
    EXPECT_EQ(reshape(columns, {24}).sharding(), Sharding(line, split_dim(1, 0)));
    EXPECT_GT(comm->bytes_sent(), sent);
  });
}

TEST(DistReshape, MovesOnlyWhatIsNotThere) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(2), split_dim(2, 0));
    const DistTensor x = laid_out(comm, counting({5, 4}), rows);
    const DistTensor y = reshape(x, {2, 10});  // rank 0 has 12 of the first 20, and needs 10
    EXPECT_EQ(y.sharding(), rows);
    EXPECT_EQ(last_report().plan.bytes(), 2 * 8);
    expect_close(y.local(), cuop::add(counting({1, 10}), 10.0 * comm->rank()), 0, "rows");
    const Sharding last = Sharding::on_rank(Mesh::line(2), 1);
    const DistTensor there = reshape(x, {20}, {.output = last});
    EXPECT_EQ(there.sharding(), last);
    expect_close(gather_all(there), counting({20}), 0, "wanted on a rank");
  });
}

TEST(DistReshape, PlansWithoutRanks) {
  const Shape from{5, 4}, to{2, 10};
  const auto runs = runs_of({{1, 0}, {2, 10}}, from, to);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].box, (Box{{2, 2}, {3, 4}}));
  EXPECT_EQ(runs[1].box, (Box{{3, 0}, {5, 4}}));
  EXPECT_EQ(runs[1].offset, 2);
  // Columns of the result are a run of every row.
  const auto columns = runs_of({{0, 3}, {2, 5}}, from, to);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].box, (Box{{0, 3}, {1, 4}}));
  EXPECT_EQ(columns[1].box, (Box{{1, 0}, {2, 1}}));
  EXPECT_EQ(columns[2].box, (Box{{3, 1}, {4, 3}}));
  EXPECT_EQ(columns[2].offset, 2);
  // A million rows over 64 ranks: what does not stay is less than a row for each rank.
  const Sharding rows(Mesh::line(64), split_dim(2, 0));
  const Plan plan =
      plan_reshape({{"x", {1000003, 6}, DType::kFloat32, rows}, {3000009, 2}, {}}, {});
  EXPECT_EQ(plan.strategy, "keep");
  EXPECT_EQ(plan.bytes(), 0);
  const Plan moved =
      plan_reshape({{"x", {1000003, 6}, DType::kFloat32, rows}, {2, 3000009}, {}}, {});
  EXPECT_EQ(moved.strategy, "blocks");
  EXPECT_LT(moved.bytes(), 4 * 6 * 1000003);
}

TEST(DistReshape, SaysWhatIsWrong) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, counting({4, 3}), Sharding(Mesh::line(2), split_dim(2, 0)));
    for (const Shape& shape : {Shape{5}, Shape{-1, 5}, Shape{-1, -1}, Shape{-2, 6}}) {
      const std::string expected = failure_of([&] { cuop::reshape(counting({4, 3}), shape); });
      EXPECT_EQ(failure_of([&] { reshape(x, shape); }), expected);
      EXPECT_THAT(expected, HasSubstr("reshape"));
    }
    EXPECT_THROW(reshape(DistTensor(), {1}), ExecutionError);
    EXPECT_THROW(reshape(x, {12}, {.strategy = "row"}), ExecutionError);
    const DistTensor y = laid_out(comm, counting({3, 4}), Sharding(Mesh::line(2), split_dim(2, 1)));
    const Shape other = comm->rank() == 0 ? Shape{12} : Shape{2, 6};
    EXPECT_THROW(reshape(y, other), CommunicationError);
  });
}

}  // namespace
}  // namespace cuop::dist
