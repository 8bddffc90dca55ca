#include "cuop/dist/sharding.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

TEST(Mesh, NumbersRanksInRowMajorOrder) {
  const Mesh mesh({2, 3, 5}, {"a", "b", "c"});
  EXPECT_EQ(mesh.size(), 30);
  EXPECT_EQ(mesh.coordinates(23), (Dims{1, 1, 3}));
  for (int rank = 0; rank < mesh.size(); ++rank) {
    EXPECT_EQ(mesh.rank(mesh.coordinates(rank)), rank);
    for (int axis = 0; axis < 3; ++axis) {
      EXPECT_EQ(mesh.coordinate(rank, axis), mesh.coordinates(rank)[axis]);
    }
  }
  EXPECT_EQ(cat(mesh), "Mesh(a=2, b=3, c=5)");
}

TEST(Mesh, CountsAndNumbersTheBlocksOfAxes) {
  const Mesh mesh({2, 3, 5}, {"a", "b", "c"});
  const Spec::Axes none, turned{"c", "a"};
  EXPECT_EQ(mesh.block_count(none), 1);
  EXPECT_EQ(mesh.block_count(turned), 10);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const Dims at = mesh.coordinates(rank);
    EXPECT_EQ(mesh.block_number(rank, none), 0);
    EXPECT_EQ(mesh.block_number(rank, turned), at[2] * 2 + at[0]);
    EXPECT_EQ(mesh.block_number(rank, mesh.names()), rank);
  }
}

TEST(Mesh, LeavesRanksOutsideOfTheGridIdle) {
  const Mesh mesh({2, 3}, {"a", "b"}, 2);
  EXPECT_EQ(mesh.size(), 8);
  EXPECT_FALSE(mesh.is_idle(5));
  EXPECT_TRUE(mesh.is_idle(6));
  EXPECT_EQ(cat(mesh), "Mesh(a=2, b=3, 2 idle)");
  EXPECT_FALSE(mesh == Mesh({2, 3}, {"a", "b"}));
  EXPECT_THROW(mesh.coordinates(6), IndexError);
  EXPECT_THROW(mesh.coordinates(-1), IndexError);
  EXPECT_THROW(Mesh({2}, {"a"}, -1), ShapeError);
  const Sharding rows(mesh, split_dim(2, 0, "b"));
  EXPECT_EQ(rows.owner_box({6, 4}, 5), (Box{{4, 0}, {6, 4}}));
  EXPECT_TRUE(rows.owner_box({6, 4}, 7).empty());
  EXPECT_FALSE(Sharding::replicated(mesh).is_replicated());  // idle ranks have nothing
  EXPECT_EQ(Sharding::on_rank(mesh, 7).owner_box({6, 4}, 7), whole_box({6, 4}));
}

TEST(Mesh, RefusesBadAxes) {
  EXPECT_THROW(Mesh({2, 0}, {"a", "b"}), ShapeError);
  EXPECT_THROW(Mesh({2, 2}, {"a", "a"}), ShapeError);
  EXPECT_THROW(Mesh({2, 2}, {"a"}), ShapeError);
  EXPECT_THROW(Mesh({2}, {""}), ShapeError);
  EXPECT_EQ(test::error_of<ShapeError>([] { Mesh::line(4).axis("x"); }),
            "Mesh: there is no axis \"x\"; the axes are (r)");
  EXPECT_EQ(Mesh({1 << 14, 2}, {"a", "b"}).size(), 1 << 15);
  EXPECT_EQ(test::error_of<ShapeError>([] {
              Mesh({1 << 14, 2}, {"a", "b"}, 1);
            }),
            "Mesh: shape (16384, 2) and 1 idle ranks were given; there can be 32768 ranks in all");
}

TEST(Mesh, FindsTheMostSquareGrid) {
  const auto grid = [](int ranks) {
    const Grid2d found = compute_2d_grid(ranks);
    return std::pair(found.rows, found.cols);
  };
  EXPECT_EQ(grid(1), std::pair(1, 1));
  EXPECT_EQ(grid(7), std::pair(1, 7));
  EXPECT_EQ(grid(12), std::pair(3, 4));
  EXPECT_EQ(grid(64), std::pair(8, 8));
  EXPECT_THROW(compute_2d_grid(0), ShapeError);
}

/// Every index of the tensor must be in exactly `copies` owner boxes.
void expect_covered(const Sharding& sharding, const Shape& shape, int copies) {
  int64_t held = 0;
  const std::vector<Box> boxes = sharding.owner_boxes(shape);
  for (size_t a = 0; a < boxes.size(); ++a) {
    EXPECT_TRUE(whole_box(shape).contains(boxes[a])) << boxes[a];
    held += boxes[a].size();
    for (size_t b = 0; b < a; ++b) {
      EXPECT_TRUE(boxes[a] == boxes[b] || intersect(boxes[a], boxes[b]).empty())
          << boxes[a] << " and " << boxes[b] << " of " << sharding << ' ' << shape;
    }
  }
  EXPECT_EQ(held, element_count(shape) * copies) << sharding << ' ' << shape;
}

TEST(Sharding, CoversEveryIndexForAnyRanksAndSizes) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const Grid2d grid = compute_2d_grid(ranks);
    const Mesh mesh({grid.rows, grid.cols}, {"a", "b"});
    for (const int64_t rows : {0, 1, 2, 3, 5, 7, 8, 13, 64}) {
      for (const int64_t cols : {0, 1, 4, 11}) {
        const Shape shape{rows, cols};
        expect_covered(Sharding(Mesh::line(ranks), P(Spec::Axes{"r"})), shape, 1);
        expect_covered(Sharding(Mesh::line(ranks), split_dim(2, 1)), shape, 1);
        expect_covered(Sharding(mesh, P(Spec::Axes{"a"}, Spec::Axes{"b"})), shape, 1);
        expect_covered(Sharding(mesh, P(Spec::Axes{}, Spec::Axes{"b", "a"})), shape, 1);
        expect_covered(Sharding(mesh, split_dim(2, 0, "a")), shape, grid.cols);
        expect_covered(Sharding::replicated(mesh), shape, ranks);
        expect_covered(Sharding::on_rank(mesh, ranks - 1), shape, 1);
      }
    }
  }
}

TEST(Sharding, SplitsASecondAxisInsideTheFirst) {
  const Sharding outer(Mesh({2, 2}, {"a", "b"}), split_dim(1, 0, "a"));
  const Sharding both(Mesh({2, 2}, {"a", "b"}), P(Spec::Axes{"a", "b"}));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(outer.owner_box({7}, rank).contains(both.owner_box({7}, rank)));
  }
  EXPECT_EQ(both.owner_box({7}, 1).interval(0), (Interval{2, 4}));
  EXPECT_EQ(both.owner_box({7}, 2).interval(0), (Interval{4, 6}));
}

TEST(Sharding, TakesExplicitBlocks) {
  const Sharding rows = Sharding(Mesh::line(3), split_dim(2, 0)).with_blocks(0, {0, 5, 1});
  EXPECT_TRUE(rows.owner_box({6, 2}, 0).empty());
  EXPECT_EQ(rows.owner_box({6, 2}, 1).interval(0), (Interval{0, 5}));
  EXPECT_EQ(rows.owner_box({6, 2}, 2).interval(0), (Interval{5, 6}));
  EXPECT_EQ(rows.swapped(0, 1, 2).owner_box({2, 6}, 1).interval(1), (Interval{0, 5}));
  EXPECT_THROW(rows.check_fits({7, 2}, "test"), ShapeError);
  EXPECT_THROW(rows.with_blocks(0, {3, 3}), ShapeError);
  EXPECT_THROW(rows.with_blocks(1, {1, 1, 1}), ShapeError);
  EXPECT_THROW(rows.with_blocks(0, {-1, 4, 3}), ShapeError);
}

TEST(Sharding, HoldsAScalarOnOneRank) {
  const Sharding root = Sharding::on_rank(Mesh::line(3), 1);
  EXPECT_EQ(root.owner_box({}, 1).size(), 1);
  EXPECT_TRUE(root.owner_box({}, 0).empty());
  EXPECT_EQ(root.owner_box({}, 0).size(), 0);
}

TEST(Sharding, PrintsAndCompares) {
  const Mesh mesh({2, 2}, {"a", "b"});
  EXPECT_EQ(cat(Sharding(Mesh::line(4), P(Spec::Axes{"r"}, Spec::Axes{}))),
            "P(\"r\", None) on Mesh(r=4)");
  EXPECT_EQ(cat(P(Spec::Axes{"a", "b"})), "P((\"a\", \"b\"))");
  EXPECT_EQ(cat(Sharding::on_rank(mesh, 0)), "on rank 0 of 4");
  EXPECT_EQ(P(Spec::Axes{"a"}, Spec::Axes{}), P(Spec::Axes{"a"}));
  EXPECT_NE(Sharding(mesh, split_dim(2, 0, "a")), Sharding(mesh, split_dim(2, 0, "b")));
  EXPECT_TRUE(same_owners(Sharding(mesh, P(Spec::Axes{"a", "b"})),
                          Sharding(Mesh::line(4), split_dim(1, 0)), {8}));
  EXPECT_THROW(Sharding(mesh, P(Spec::Axes{"a"}, Spec::Axes{"a"})), ShapeError);
  EXPECT_THROW(Sharding(mesh, P(Spec::Axes{"z"})), ShapeError);
  EXPECT_THROW(Sharding(mesh, split_dim(2, 1, "a")).check_fits({3}, "test"), ShapeError);
  EXPECT_THROW(Sharding::on_rank(mesh, 4), ShapeError);
}

}  // namespace
}  // namespace cuop::dist
