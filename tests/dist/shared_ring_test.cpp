#include "cuop/dist/comm/shared_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "cuop/dist/comm/communicator.h"
#include "cuop/memory/shared_memory.h"
#include "cuop/ops/create/create.h"
#include "tests/dist/socket_ranks.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using cuop::test::error_of;

constexpr int64_t kSlot = 1000;  // not of whole cache lines

/// Both ends of a ring, over one piece of memory that is mapped twice.
class SharedRingTest : public testing::Test {
 protected:
  std::shared_ptr<memory::SharedMemory> memory =
      memory::SharedMemory::create(SharedRing::memory_bytes(kSlot));
  std::shared_ptr<memory::SharedMemory> mapped = memory::SharedMemory::open(memory->name());
  SharedRing sender{memory->data(), kSlot}, receiver{mapped->data(), kSlot};

  void send(char value) {
    std::byte* const slot = sender.free_slot();
    ASSERT_NE(slot, nullptr);
    std::memset(slot, value, kSlot);
    sender.fill({.call = value, .bytes = 10 * value, .content = 7});
  }
  void expect(char value) {
    const std::byte* const slot = receiver.filled_slot();
    ASSERT_NE(slot, nullptr);
    EXPECT_EQ(std::vector<char>(kSlot, value),
              std::vector<char>(reinterpret_cast<const char*>(slot),
                                reinterpret_cast<const char*>(slot) + kSlot));
    EXPECT_EQ(receiver.note().call, value);
    EXPECT_EQ(receiver.note().bytes, 10 * value);
    EXPECT_EQ(receiver.note().content, 7U);
    receiver.empty();
  }
};

TEST_F(SharedRingTest, HandsSlotsOverInOrder) {
  EXPECT_EQ(receiver.filled_slot(), nullptr);
  char sent = 0, received = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i <= round % SharedRing::kSlots; ++i) send(sent++);
    while (received < sent) expect(received++);
    EXPECT_EQ(receiver.filled_slot(), nullptr);
  }
}

TEST_F(SharedRingTest, IsFullUntilASlotIsEmptied) {
  for (char i = 0; i < SharedRing::kSlots; ++i) send(i);
  EXPECT_EQ(sender.free_slot(), nullptr);
  expect(0);
  send(9);
  EXPECT_EQ(sender.free_slot(), nullptr);
}

TEST_F(SharedRingTest, IsOneOfTwoThreads) {
  constexpr int kCount = 20'000;
  std::thread other([&] {
    for (int i = 0; i < kCount;) {
      auto* const slot = reinterpret_cast<int*>(sender.free_slot());
      if (slot == nullptr) {
        std::this_thread::yield();
        continue;
      }
      slot[0] = slot[kSlot / 4 - 1] = i;
      sender.fill({.call = i++});
    }
  });
  int wrong = 0;
  for (int i = 0; i < kCount;) {
    const auto* const slot = reinterpret_cast<const int*>(receiver.filled_slot());
    if (slot == nullptr) {
      std::this_thread::yield();
      continue;
    }
    wrong += slot[0] == i && slot[kSlot / 4 - 1] == i && receiver.note().call == i ? 0 : 1;
    receiver.empty();
    ++i;
  }
  other.join();
  EXPECT_EQ(wrong, 0);
}

/// As many bytes of another shape would land in the wrong places.
TEST(SharedExchange, RefusesTensorsOfAnotherShape) {
  rank_test::run_socket_ranks(2, [](const std::shared_ptr<Communicator>& comm) {
    const Shape shape = comm->rank() == 0 ? Shape{2, 6} : Shape{3, 4};
    const std::vector<Patch> sends{{1, zeros(shape, DType::kFloat32)}};
    const std::vector<Patch> receives{{0, zeros(shape, DType::kFloat32)}};
    const std::string error = error_of([&] {
      comm->exchange(comm->rank() == 0 ? sends : std::vector<Patch>{},
                     comm->rank() == 1 ? receives : std::vector<Patch>{});
      for (;;) comm->barrier();
    });
    EXPECT_NE(error.find("other shapes or dtypes in these 48 bytes"), std::string::npos) << error;
    comm->recover();
    comm->barrier();
  });
}

}  // namespace
}  // namespace cuop::dist
