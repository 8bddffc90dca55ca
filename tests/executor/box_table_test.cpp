#include "cuop/executor/box_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace cuop::executor {
namespace {

using State = BoxTable::State;

class BoxTableTest : public ::testing::Test {
 protected:
  static constexpr BoxTableSize kSize{3, 4};
  const std::shared_ptr<memory::SharedMemory> memory_ =
      memory::SharedMemory::create(BoxTable::bytes(kSize));
  BoxTable table_{memory_, kSize};
  const Box box_{{2, 0, 5}, {9, 1, 7}};
};

TEST_F(BoxTableTest, ABoxIsFoundWhileItIsOnOffer) {
  EXPECT_FALSE(table_.find(2, 3, box_, 5, 4));
  table_.offer(2, 3, box_, 5);
  const auto found = table_.find(2, 3, box_, 5, 4);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->state, State::kAbsent);
  EXPECT_EQ(found->version, table_.version(2, 3));
  table_.set(2, 3, 4, State::kComing);
  EXPECT_EQ(table_.find(2, 3, box_, 5, 4)->state, State::kComing);
  EXPECT_EQ(table_.find(2, 3, box_, 5, 3)->state, State::kAbsent);
  table_.set(2, 3, 4, State::kThere);
  EXPECT_EQ(table_.find(2, 3, box_, 5, 4)->state, State::kThere);
  EXPECT_EQ(table_.version(2, 3), found->version);
  table_.withdraw(2, 3);
  EXPECT_FALSE(table_.find(2, 3, box_, 5, 4));
  EXPECT_NE(table_.version(2, 3), found->version);
  table_.withdraw(2, 3);
  table_.offer(2, 3, box_, 5);  // of which nothing is there yet
  EXPECT_EQ(table_.find(2, 3, box_, 5, 4)->state, State::kAbsent);
  EXPECT_NE(table_.version(2, 3), found->version);
}

TEST_F(BoxTableTest, OtherBoxesSlotsAndRanksAreOthers) {
  table_.offer(1, 2, box_, 5);
  EXPECT_FALSE(table_.find(1, 2, box_, 4, 0));
  EXPECT_FALSE(table_.find(1, 1, box_, 5, 0));
  EXPECT_FALSE(table_.find(0, 2, box_, 5, 0));
  EXPECT_FALSE(table_.find(1, 2, Box{{2, 0}, {9, 1}}, 5, 0));
  EXPECT_FALSE(table_.find(1, 2, Box{{2, 0, 5}, {9, 1, 8}}, 5, 0));
  EXPECT_FALSE(table_.find(1, 2, Box{{1, 0, 5}, {9, 1, 7}}, 5, 0));
  table_.offer(1, 2, Box{{2, 0}, {9, 1}}, 5);
  EXPECT_FALSE(table_.find(1, 2, box_, 5, 0));
  EXPECT_TRUE(table_.find(1, 2, Box{{2, 0}, {9, 1}}, 5, 0));
}

TEST_F(BoxTableTest, WhoWaitsSeesThatARankGoesOn) {
  const uint64_t before = table_.moves(1);
  table_.offer(1, 0, box_, 2);
  const uint64_t offered = table_.moves(1);
  EXPECT_NE(offered, before);
  table_.set(1, 0, 1, State::kComing);
  EXPECT_NE(table_.moves(1), offered);
  EXPECT_EQ(table_.moves(0), 0U);
}

TEST_F(BoxTableTest, OtherProcessesReadTheSame) {
  const auto again = memory::SharedMemory::open(memory_->name());
  if (!again) GTEST_SKIP() << "NO SHARED MEMORY: it cannot be opened by its name here";
  const BoxTable theirs(again, kSize);
  table_.offer(0, 1, box_, 3);
  table_.set(0, 1, 2, State::kThere);
  ASSERT_TRUE(theirs.find(0, 1, box_, 3, 2));
  EXPECT_EQ(theirs.find(0, 1, box_, 3, 2)->state, State::kThere);
}

// What is found is of the box that was asked for, and copied where the version is still the same.
TEST_F(BoxTableTest, ABoxThatChangesMeanwhileIsFoundOut) {
  std::atomic<int64_t> content = -1;  // of the slot: the box that it is filled with
  std::atomic<bool> is_over = false;
  const auto numbered = [](int64_t n) { return Box{{n, n, n}, {n + 1, n + 1, n + 1}}; };
  std::thread owner([&] {
    for (int64_t round = 0; round < 20000; ++round) {
      table_.offer(0, 0, numbered(round % 2), 1);
      content = -1;
      content = round % 2;
      table_.set(0, 0, 0, State::kThere);
      if (round % 64 == 0) std::this_thread::yield();
    }
    is_over = true;
  });
  int64_t wrong = 0;
  while (!is_over) {
    for (const int64_t wanted : {0, 1}) {
      const auto found = table_.find(0, 0, numbered(wanted), 1, 0);
      if (!found || found->state != State::kThere) continue;
      const int64_t copied = content;
      if (table_.version(0, 0) != found->version) continue;
      wrong += copied != wanted ? 1 : 0;
    }
  }
  owner.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cuop::executor
