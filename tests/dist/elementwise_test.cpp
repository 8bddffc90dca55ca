#include "cuop/dist/algo/elementwise.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/arithmetic.h"
#include "cuop/dist/exec/report.h"
#include "cuop/jit/op_table.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

TEST(DistAdd, BroadcastsFromTheRoot) {
  const std::pair<Shape, Shape> shapes[] = {{{5, 3}, {5, 3}}, {{5, 3}, {3}},       {{5, 1}, {1, 4}},
                                            {{2, 3, 4}, {}},  {{0, 3}, {1, 3}},    {{}, {}},
                                            {{7}, {1}},       {{1, 3}, {2, 13, 1}}};
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const auto& [first, second] : shapes) {
        const Tensor a = noise(first, DType::kFloat32);
        const Tensor b = noise(second, DType::kFloat64, 2);
        for (const char* strategy : {"", "root", "row"}) {
          const Tensor sum =
              add_from_root(comm, on_root(comm, a), on_root(comm, b), {.strategy = strategy});
          expect_rooted(comm, sum, cuop::add(a, b), 0, cat(first, " + ", second, ' ', strategy));
        }
      }
    });
  }
}

TEST(DistElementwise, MovesNothingWhereThePartsLieAlike) {
  for (const int ranks : {2, 3, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = noise({6, 5});
      const Tensor b = noise({6, 5}, DType::kFloat64, 2);
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor x = laid_out(comm, a, sharding);
        const DistTensor y = laid_out(comm, b, sharding);
        expect_close(gather_all(multiply(x, y)), cuop::multiply(a, b), 0, cat(sharding));
        EXPECT_EQ(subtract(x, y).sharding(), x.sharding());
        if (sharding.single_rank() < 0) {
          EXPECT_EQ(last_report().plan.bytes(), 0);
        }
        const DistTensor z = laid_out(comm, b, matrix_shardings(ranks)[1]);
        expect_close(gather_all(divide(x, z)), cuop::divide(a, b), 0, cat(sharding));
      }
      const DistTensor ints = laid_out(comm, counting({4}, DType::kInt32),
                                       Sharding(Mesh::line(ranks), split_dim(1, 0)));
      EXPECT_EQ(divide(ints, ints).dtype(), DType::kFloat64);
    });
  }
}

TEST(DistElementwise, NumbersAndFunctionsComputePartsWhereTheyLie) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = noise({6, 5}, DType::kFloat32);
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor x = laid_out(comm, a, sharding);
        const int64_t sent = comm->bytes_sent();
        const DistTensor chain = -(elementwise("relu", 2 * x + 1.5) / 3 - 1);
        const DistTensor bits = x < 0.25;
        const DistTensor chosen = elementwise("clip", 1 - x, -0.5, 0.5);
        EXPECT_EQ(comm->bytes_sent(), sent);
        EXPECT_EQ(chosen.sharding(), sharding);
        using cuop::operator+, cuop::operator-, cuop::operator*, cuop::operator/;
        expect_close(gather_all(chain), -(cuop::relu(2 * a + 1.5) / 3 - 1), 0, cat(sharding));
        expect_close(gather_all(bits), cuop::less(a, 0.25), 0, "less");
        expect_close(gather_all(chosen), cuop::clip(1 - a, -0.5, 0.5), 0, "clip");
        expect_close(gather_all(elementwise("where", bits, x, 0)),
                     cuop::where(cuop::less(a, 0.25), a, 0), 0, "where");
      }
      EXPECT_THAT(failure_of([&] { elementwise("add", 1, 2); }),
                  HasSubstr("add: no distributed tensor was given"));
      EXPECT_THAT(failure_of([&] { elementwise("add", DistTensor(), 2); }),
                  HasSubstr("add: a distributed tensor is undefined"));
      EXPECT_THAT(failure_of([&] { elementwise("nonsense", DistTensor()); }),
                  HasSubstr("no operation 'nonsense'"));
    });
  }
}

TEST(DistElementwise, ChangesPartsInPlace) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const int add = jit::find_op("add");
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor whole = laid_out(comm, noise({6, 5}), sharding);
        const DistTensor x = whole * 1;
        elementwise_in_place(add, x, 2);
        elementwise_in_place(add, x,
                             laid_out(comm, noise({5}), Sharding::on_rank(Mesh::line(ranks), 0)));
        expect_close(gather_all(x), cuop::add(cuop::add(noise({6, 5}), 2), noise({5})), 0,
                     cat(sharding));
        EXPECT_THROW(
            elementwise_in_place(
                add, laid_out(comm, noise({5}), Sharding::on_rank(Mesh::line(ranks), 0)), x),
            ShapeError);
      }
    });
  }
}

TEST(DistTranspose, OfAnyTwoDimensions) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor x = noise({3, 7, 2, 5});
      for (const auto& [dim0, dim1] : {std::pair{0, 1}, {1, -1}, {2, 2}, {-4, 3}}) {
        for (const char* strategy : {"", "root", "row"}) {
          const Tensor swapped =
              transpose_from_root(comm, on_root(comm, x), dim0, dim1, {.strategy = strategy});
          expect_rooted(comm, swapped, swap_axes(x, dim0, dim1), 0, cat(dim0, ", ", dim1));
          // Who writes to the result leaves x as it is, whatever the plan.
          EXPECT_TRUE(comm->rank() != 0 || swapped.storage() != x.storage()) << strategy;
        }
        const DistTensor parts = laid_out(comm, x, Sharding(Mesh::line(ranks), split_dim(4, 1)));
        const DistTensor swapped = transpose(parts, dim0, dim1);
        EXPECT_EQ(last_report().plan.bytes(), 0);
        expect_close(gather_all(swapped), swap_axes(x, dim0, dim1), 0, "sharded");
      }
      EXPECT_THAT(failure_of([&] { transpose_from_root(comm, on_root(comm, x), 0, 4); }),
                  HasSubstr("transpose: axis 4 is out of range for a tensor of 4 dimensions"));
    });
  }
}

TEST(DistAdd, FailsOnEveryRankAndGoesOn) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor a = on_root(comm, noise({4, 5}));
    EXPECT_THAT(failure_of([&] {
                  add_from_root(comm, a, on_root(comm, noise({3, 5})));
                }),
                HasSubstr("add: shapes (4, 5) and (3, 5)"));
    EXPECT_THAT(failure_of([&] { add_from_root(comm, Tensor(), Tensor()); }),
                HasSubstr("a was not given on rank 0"));
    expect_rooted(comm, add_from_root(comm, a, a), cuop::add(noise({4, 5}), noise({4, 5})), 0,
                  "after the failures");
  });
}

}  // namespace
}  // namespace cuop::dist
