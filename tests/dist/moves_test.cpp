// Moves are replayed on plain arrays: after all pieces are delivered each rank must hold exactly
// what it needs, whatever the shardings, ranks and sizes.
#include "cuop/dist/moves.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "cuop/core/text.h"
#include "cuop/dist/sharding.h"
#include "tests/dist/rank_tensors.h"

namespace cuop::dist {
namespace {

using Cells = std::map<std::vector<int64_t>, int>;  ///< how often each index was delivered

void add_cells(const Box& box, Cells& cells) {
  const Shape shape = box.shape();
  for (int64_t i = 0; i < box.size(); ++i) {
    std::vector<int64_t> index(static_cast<size_t>(box.ndim()));
    int64_t rest = i;
    for (int axis = box.ndim() - 1; axis >= 0; --axis) {
      index[static_cast<size_t>(axis)] = box.low[axis] + rest % shape[axis];
      rest /= shape[axis];
    }
    ++cells[index];
  }
}

/// Checks one redistribution and answers the elements it moves between ranks.
int64_t check_redistribution(const Sharding& from, const Sharding& to, const Shape& shape) {
  const std::vector<Box> owners = from.owner_boxes(shape);
  const std::vector<Need> needs = needs_of(to.owner_boxes(shape));
  const int ranks = from.mesh().size();
  std::vector<RankMoves> moves;
  for (int rank = 0; rank < ranks; ++rank) moves.push_back(plan_moves(rank, owners, needs));

  int64_t moved = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const RankMoves& mine = moves[static_cast<size_t>(rank)];
    Cells got;
    for (const Piece& piece : mine.kept) add_cells(piece.box, got);
    for (const Piece& piece : mine.receives) add_cells(piece.box, got);
    Cells wanted;
    add_cells(to.owner_box(shape, rank), wanted);
    EXPECT_EQ(got, wanted) << from << " -> " << to << ' ' << shape << " rank " << rank;
    for (const Piece& piece : mine.sends) {
      EXPECT_TRUE(owners[static_cast<size_t>(rank)].contains(piece.box));
      moved += piece.box.size();
    }
    // What one side sends to a peer, the peer expects in the same order.
    for (int peer = 0; peer < ranks; ++peer) {
      std::vector<Box> sent, expected;
      for (const Piece& piece : mine.sends) {
        if (piece.peer == peer) sent.push_back(piece.box);
      }
      for (const Piece& piece : moves[static_cast<size_t>(peer)].receives) {
        if (piece.peer == rank) expected.push_back(piece.box);
      }
      EXPECT_EQ(sent, expected);
    }
  }
  EXPECT_EQ(plan_traffic(owners, needs).total(), moved);
  for (const RankMoves& mine : moves) EXPECT_EQ(mine.is_local, moved == 0);
  return moved;
}

TEST(Moves, RedistributeAnythingToAnything) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const Shape& shape : {Shape{0, 3}, Shape{1, 1}, Shape{3, 5}, Shape{7, 2}, Shape{8, 9}}) {
      for (const Sharding& from : rank_test::matrix_shardings(ranks)) {
        for (const Sharding& to : rank_test::matrix_shardings(ranks)) {
          const int64_t moved = check_redistribution(from, to, shape);
          if (same_owners(from, to, shape) || from.is_replicated()) {
            EXPECT_EQ(moved, 0);
          }
        }
      }
    }
  }
}

TEST(Moves, HaveTheVolumeOfAnAllToAll) {
  const Shape shape{12, 12};
  const Mesh line = Mesh::line(4);
  EXPECT_EQ(check_redistribution({line, split_dim(2, 0)}, {line, split_dim(2, 1)}, shape),
            144 * 3 / 4);
  const std::vector<Box> owners = Sharding(line, split_dim(2, 0)).owner_boxes(shape);
  const Traffic traffic =
      plan_traffic(owners, needs_of(Sharding(line, split_dim(2, 1)).owner_boxes(shape)));
  EXPECT_EQ(traffic.link(0, 3), 9);
  EXPECT_EQ(traffic.link(2, 2), 0);
  EXPECT_EQ(traffic.busiest(), 27);
  EXPECT_EQ(traffic.most_messages(), 3);
}

TEST(Moves, SpreadReplicasOverTheirHolders) {
  // Rows are held twice (axis b), and rank 2 and 3 need row block 0: they ask different holders.
  const Mesh mesh({2, 2}, {"a", "b"});
  const std::vector<Box> owners = Sharding(mesh, split_dim(1, 0, "a")).owner_boxes({8});
  const Traffic traffic =
      plan_traffic(owners, needs_of(Sharding::replicated(mesh).owner_boxes({8})));
  EXPECT_EQ(traffic.total(), 4 * 4);
  EXPECT_EQ(traffic.busiest(), 4);
}

TEST(Moves, TakeAHaloFromSeveralRanks) {
  // One row a rank, a halo of two rows: it comes from two ranks on each side.
  const std::vector<Box> owners = Sharding(Mesh::line(5), split_dim(1, 0)).owner_boxes({5});
  const std::vector<Need> needs{{2, Box{{0}, {2}}}, {2, Box{{3}, {5}}}};
  const RankMoves middle = plan_moves(2, owners, needs);
  ASSERT_EQ(middle.receives.size(), 4u);
  EXPECT_EQ(middle.receives[3].peer, 4);
  EXPECT_EQ(middle.receives[3].need, 1);
  EXPECT_TRUE(middle.sends.empty());
  EXPECT_EQ(plan_moves(0, owners, needs).sends.size(), 1u);
}

TEST(Moves, CollectEveryPartialResult) {
  // Three ranks hold partial sums of the same box; each combines a part of it.
  const std::vector<Box> owners(3, whole_box({6}));
  const std::vector<Need> needs =
      needs_of(Sharding(Mesh::line(3), split_dim(1, 0)).owner_boxes({6}));
  const RankMoves mine = plan_moves(1, owners, needs, Sources::kAll);
  EXPECT_EQ(mine.receives.size(), 2u);
  EXPECT_EQ(mine.kept.size(), 1u);
  int64_t sent = 0;
  for (const Piece& piece : mine.sends) sent += piece.box.size();
  EXPECT_EQ(sent, 4);
  EXPECT_EQ(plan_traffic(owners, needs, Sources::kAll).total(), 12);
}

TEST(Moves, ReplicasMayLieOnAnyRanks) {
  // Ranks 3 and 5 hold the whole; the others ask them, and nobody asks a rank that has nothing.
  std::vector<Box> owners(7, Box{{0}, {0}});
  owners[3] = owners[5] = whole_box({6});
  std::vector<Need> needs;
  for (int rank = 0; rank < 7; ++rank) needs.push_back({rank, whole_box({6})});
  const Traffic traffic = plan_traffic(owners, needs);
  EXPECT_EQ(traffic.sent_by(3) + traffic.sent_by(5), 5 * 6);
  EXPECT_EQ(traffic.total(), 5 * 6);
  EXPECT_GT(traffic.sent_by(3), 0);
  EXPECT_GT(traffic.sent_by(5), 0);
  for (int rank = 0; rank < 7; ++rank) {
    const RankMoves mine = plan_moves(rank, owners, needs);
    if (rank == 3 || rank == 5) {
      EXPECT_TRUE(mine.receives.empty()) << rank;
      EXPECT_EQ(mine.kept.size(), 1u) << rank;
      continue;
    }
    ASSERT_EQ(mine.receives.size(), 1u) << rank;
    EXPECT_TRUE(mine.receives[0].peer == 3 || mine.receives[0].peer == 5) << rank;
    EXPECT_TRUE(mine.sends.empty()) << rank;
  }
}

}  // namespace
}  // namespace cuop::dist
