#include "cuop/dist/comm/packet_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/dist/comm/blame.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/comm/split.h"

namespace cuop::dist {

namespace {

/// What two wires between ranks 0 and 1 of one process have in common. Chunks lie still until they
/// are let go, as if the network were slow.
struct Cable {
  std::mutex mutex;
  std::map<std::pair<int, Channel>, std::deque<Buffer>> packets;  // to a rank
  std::map<std::pair<int, int>, std::deque<Buffer>> chunks;       // to a rank with a tag
  bool is_slow = false;
  bool is_one_host = false;
  int withdrawn = 0;  // receives that were given up with nothing for them
};

class FakeParcel final : public Parcel {
 public:
  FakeParcel(Cable& cable, std::pair<int, int> place, Buffer buffer, bool is_receive)
      : cable_(cable), place_(place), buffer_(std::move(buffer)), is_receive_(is_receive) {}
  ~FakeParcel() override {
    if (is_receive_ && !is_done_) ++cable_.withdrawn;
  }
  FakeParcel(const FakeParcel&) = delete;
  FakeParcel& operator=(const FakeParcel&) = delete;
  bool test() override {
    const std::lock_guard lock(cable_.mutex);
    auto& waiting = cable_.chunks[place_];
    if (!is_receive_) return !cable_.is_slow;
    if (is_done_) return true;
    if (cable_.is_slow || waiting.empty()) return false;
    buffer_ = std::move(waiting.front());
    waiting.pop_front();
    return is_done_ = true;
  }
  Buffer take() override { return std::move(buffer_); }

 private:
  Cable& cable_;
  std::pair<int, int> place_;
  Buffer buffer_;
  bool is_receive_;
  bool is_done_ = false;
};

Buffer copy_of(const Buffer& buffer) {
  Buffer copy(buffer.bytes);
  std::copy_n(buffer.data.get(), buffer.bytes, copy.data.get());
  return copy;
}

class FakeWire final : public PacketWire {
 public:
  FakeWire(Cable& cable, int rank) : cable_(cable), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return 2; }
  int host_of(int rank) const override { return cable_.is_one_host ? 0 : rank; }
  std::unique_ptr<Parcel> send_packet(int dst, Channel channel, Buffer content) override {
    const std::lock_guard lock(cable_.mutex);
    cable_.packets[{dst, channel}].push_back(std::move(content));
    return std::make_unique<FakeParcel>(done_, std::pair(0, 0), Buffer(), false);
  }
  std::optional<Packet> poll_packet(Channel channel) override {
    const std::lock_guard lock(cable_.mutex);
    auto& waiting = cable_.packets[{rank_, channel}];
    if (waiting.empty()) return std::nullopt;
    Packet packet{1 - rank_, std::move(waiting.front())};
    waiting.pop_front();
    return packet;
  }
  std::unique_ptr<Parcel> send_chunk(int dst, int tag, Buffer content) override {
    const std::lock_guard lock(cable_.mutex);
    cable_.chunks[{dst, tag}].push_back(copy_of(content));
    return std::make_unique<FakeParcel>(cable_, std::pair(dst, tag), std::move(content), false);
  }
  std::unique_ptr<Parcel> receive_chunk(int, int tag, Buffer space) override {
    return std::make_unique<FakeParcel>(cable_, std::pair(rank_, tag), std::move(space), true);
  }
  void idle(int) override {}

 private:
  Cable& cable_;
  Cable done_;
  int rank_;
};

class PacketHubs : public testing::Test {
 protected:
  void look() {
    for (int i = 0; i < 20; ++i) {
      a->poll_control(0);
      b->poll_control(0);
    }
  }
  Cable cable;
  std::shared_ptr<PacketHub> a =
      std::make_shared<PacketHub>(std::make_unique<FakeWire>(cable, 0), "fake");
  std::shared_ptr<PacketHub> b =
      std::make_shared<PacketHub>(std::make_unique<FakeWire>(cable, 1), "fake");
  const MessageKey key{1, 0, 5};
  std::vector<char> data = std::vector<char>(2'000'000, 'd');
  std::vector<char> space = std::vector<char>(2'000'000, ' ');
  int64_t bytes = 2'000'000;
};

TEST_F(PacketHubs, ALongMessageComesWhenItIsAskedFor) {
  const auto sending = a->post_send(data.data(), bytes, 1, key);
  look();
  EXPECT_EQ(sending->moved(), 0);  // nothing is buffered where nobody wants it
  const auto receiving = b->post_recv(space.data(), bytes, 0, key);
  look();
  EXPECT_TRUE(sending->test());
  EXPECT_TRUE(receiving->test());
  EXPECT_EQ(space, data);
}

TEST_F(PacketHubs, AReceiveThatIsGivenUpTakesWhatIsSentAndDropsIt) {
  const auto sending = a->post_send(data.data(), bytes, 1, key);
  auto receiving = b->post_recv(space.data(), bytes, 0, key);
  cable.is_slow = true;
  look();
  receiving.reset();
  cable.is_slow = false;
  look();
  EXPECT_TRUE(sending->test());  // its sender is not kept waiting
  EXPECT_EQ(std::count(space.begin(), space.end(), ' '), bytes);
}

TEST_F(PacketHubs, ASendThatIsGivenUpReadsItsBufferNoMore) {
  auto sending = a->post_send(data.data(), bytes, 1, key);
  const auto receiving = b->post_recv(space.data(), bytes, 0, key);
  cable.is_slow = true;
  look();
  sending.reset();
  std::vector<char>().swap(data);  // a sanitizer would tell
  cable.is_slow = false;
  look();
  EXPECT_THROW(receiving->test(), CommunicationError);
}

class PacketHubsOfOneHost : public PacketHubs {
 protected:
  void SetUp() override { cable.is_one_host = true; }
  /// Rank 1 has read half of the message.
  void begin() {
    sending = a->post_send(data.data(), bytes, 1, key);
    receiving = b->post_recv(space.data(), bytes, 0, key);
    b->poll_control(0);
    EXPECT_GT(receiving->moved(), 0);
    EXPECT_FALSE(receiving->test() && sending->test());
  }
  DeliveryPtr sending, receiving;
};

TEST_F(PacketHubsOfOneHost, ALongMessageIsReadWhereItLies) {
  begin();
  look();
  EXPECT_TRUE(sending->test());
  EXPECT_TRUE(receiving->test());
  EXPECT_EQ(space, data);
  EXPECT_TRUE(cable.chunks.empty());
}

TEST_F(PacketHubsOfOneHost, IsSentWhereReadingIsSwitchedOff) {
  b->set_reads_memory(false);
  sending = a->post_send(data.data(), bytes, 1, key);
  receiving = b->post_recv(space.data(), bytes, 0, key);
  look();
  EXPECT_TRUE(receiving->test());
  EXPECT_EQ(space, data);
  EXPECT_FALSE(cable.chunks.empty());
}

TEST_F(PacketHubsOfOneHost, AReceiveThatIsGivenUpKeepsItsSenderNotWaiting) {
  begin();
  receiving.reset();
  std::vector<char>().swap(space);  // a sanitizer would tell
  look();
  EXPECT_TRUE(sending->test());
}

TEST_F(PacketHubsOfOneHost, ASendThatIsGivenUpEndsItsReceive) {
  begin();
  sending.reset();
  std::vector<char>().swap(data);
  look();
  EXPECT_THROW(receiving->test(), CommunicationError);
  EXPECT_THROW(receiving->test(), CommunicationError);  // and stays so
}

TEST_F(PacketHubsOfOneHost, ASendThatIsGivenUpBeforeItIsReadEndsItsReceive) {
  a->post_send(data.data(), bytes, 1, key).reset();
  receiving = b->post_recv(space.data(), bytes, 0, key);
  look();
  EXPECT_THROW(receiving->test(), CommunicationError);
}

/// Addresses of which nothing is known: another process of that number, no process, no memory.
std::vector<MemoryAddress> wrong_ones(const MemoryAddress& address) {
  std::vector<MemoryAddress> wrong(3, address);
  wrong[0].token[1] ^= 1;
  wrong[1].process = 0x3fffffff;
  wrong[2].token_at = 8;
  return wrong;
}

TEST(PeerMemory, IsReadOfTheProcessThatIsMeantAlone) {
  std::vector<char> data(1000);
  std::iota(data.begin(), data.end(), 0);
  std::vector<char> space(600, ' ');
  const MemoryAddress address = address_of(data.data());
  ASSERT_TRUE(is_readable(address));
  const MemoryRun runs[] = {{700, 300}, {0, 1}, {100, 299}};
  EXPECT_TRUE(read_memory(address, runs, space.data()));
  std::vector<char> expected(data.begin() + 700, data.end());
  expected.push_back(data[0]);
  expected.insert(expected.end(), data.begin() + 100, data.begin() + 399);
  EXPECT_EQ(space, expected);
  for (const MemoryAddress& wrong : wrong_ones(address)) EXPECT_FALSE(is_readable(wrong));
  MemoryAddress other = address;
  other.data = 8;
  EXPECT_FALSE(read_memory(other, runs, space.data()));
}

TEST(PeerMemory, IsWrittenOfTheProcessThatIsMeantAlone) {
  const std::vector<char> data(600, 'd');
  const std::string untouched(1000, ' ');
  std::string space = untouched;
  const MemoryAddress address = address_of(space.data());
  const MemoryRun runs[] = {{400, 599}, {10, 1}};
  ASSERT_TRUE(is_writable(address));
  for (const MemoryAddress& wrong : wrong_ones(address)) {
    EXPECT_FALSE(is_writable(wrong));
    EXPECT_FALSE(write_memory(wrong, runs, data.data()));
  }
  EXPECT_EQ(space, untouched);
  EXPECT_TRUE(write_memory(address, runs, data.data()));
  std::string expected = untouched;
  expected.replace(400, 599, 599, 'd').replace(10, 1, 1, 'd');
  EXPECT_EQ(space, expected);
  MemoryAddress other = address;
  other.data = 8;
  EXPECT_FALSE(write_memory(other, runs, data.data()));
}

TEST_F(PacketHubs, ASendThatIsGivenUpBeforeItIsAskedForEndsItsReceive) {
  a->post_send(data.data(), bytes, 1, key).reset();
  const auto receiving = b->post_recv(space.data(), bytes, 0, key);
  look();
  EXPECT_THROW(receiving->test(), CommunicationError);
  EXPECT_GT(cable.withdrawn, 0);  // nothing is sent for them any more
}

TEST_F(PacketHubs, ControlsPassLongMessagesBy) {
  const auto sending = a->post_send(data.data(), bytes, 1, key);
  const auto receiving = b->post_recv(space.data(), bytes, 0, key);
  cable.is_slow = true;
  look();
  a->send_control(1, 7, {0, ControlKind::kAbort, 3, 0, "why"});
  const auto heard = b->poll_control(7);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->text, "why");
  EXPECT_EQ(heard->epoch, 3);
  EXPECT_FALSE(receiving->test());
}

TEST_F(PacketHubs, WhoHasEndedIsNotWaitedFor) {
  uint64_t seen = 0;
  const auto before = a->post_send(data.data(), 100, 1, key);
  std::thread end([&] { EXPECT_TRUE(a->part()); });
  const auto first = b->post_recv(space.data(), 100, 0, key);
  while (!first->test()) b->idle(0, seen);  // what was sent before still comes
  const auto second = b->post_recv(space.data(), 100, 0, key);
  EXPECT_THAT(
      [&] {
        while (!second->test()) b->idle(0, seen);
      },
      testing::ThrowsMessage<CommunicationError>(testing::HasSubstr("has ended")));
  EXPECT_TRUE(b->part());
  end.join();
}

TEST(Blame, FollowsWhoWaitsForWhom) {
  const std::vector<Waits> waits = {{1}, {2}, {3}, {}, {}};
  EXPECT_EQ(find_silent(waits, 0, {1}, {0, 1, 2, 3, 4}), 3);
  EXPECT_EQ(find_silent(waits, 0, {4}, {0, 1, 2, 3, 4}), 4);
  EXPECT_EQ(find_silent({{1}, {0}}, 0, {1}, {0, 1}), -1);  // they made different calls
  EXPECT_EQ(find_silent({{1}, {0}, {}}, 0, {1}, {0, 1, 2}), 2);
  EXPECT_EQ(find_silent({{1}, {0}, {}}, 0, {1}, {0, 1}), -1);
  EXPECT_EQ(find_silent({{1}, {0}, {}, {}}, 0, {1}, {0, 1, 2, 3}), -1);
}

/// A failure in the middle of a split leaves ranks that have made it and ranks that have not.
TEST(Split, RanksAgreeOnItsNumber) {
  run_ranks(3, [](const std::shared_ptr<Communicator>& comm) {
    EXPECT_EQ(choose_split_group(*comm, 0, 0, comm->rank() == 1 ? 4 : 3).number, 5);
  });
}

}  // namespace

}  // namespace cuop::dist
