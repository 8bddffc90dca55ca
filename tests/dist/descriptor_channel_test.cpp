// Open files from one process to another, and who is let in.
#include "cuop/dist/comm/descriptor_channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using cuop::test::error_of;
using ::testing::HasSubstr;

std::vector<Descriptor> files(size_t count) {
  std::vector<Descriptor> result;
  for (size_t i = 0; i < count; ++i) result.emplace_back(open("/tmp", O_TMPFILE | O_RDWR, 0600));
  return result;
}
ino_t identity(const Descriptor& file) {
  struct stat state {};
  EXPECT_EQ(fstat(file.get(), &state), 0);
  return state.st_ino;
}
std::vector<std::byte> bytes(size_t count) {
  std::vector<std::byte> result(count);
  for (size_t i = 0; i < count; ++i) result[i] = static_cast<std::byte>(i * 7);
  return result;
}
int64_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd"), end;
  return std::distance(all, end);
}

TEST(DescriptorChannel, FilesAndBytesArriveInOrder) {
  DescriptorChannel here(3), there(1);
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, DescriptorChannel::kMostFiles}) {
    const std::vector<Descriptor> sent = files(count);
    const std::vector<std::byte> text = bytes(count * 100);
    ASSERT_TRUE(there.send(here.place_for(2), text, sent));
    const auto message = here.receive();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->sender, 2);
    EXPECT_EQ(message->bytes, text);
    ASSERT_EQ(message->files.size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ(identity(message->files[i]), identity(sent[i]));
      EXPECT_EQ(fcntl(message->files[i].get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
  }
  EXPECT_FALSE(here.receive());
}

TEST(DescriptorChannel, StrangersAreDroppedWithTheirFiles) {
  DescriptorChannel here(2), stranger(1);
  const std::vector<Descriptor> sent = files(5);
  const int64_t before = open_files();
  ChannelPlace place = here.place_for(0);
  place.token = new_channel_token();
  ASSERT_TRUE(stranger.send(place, bytes(10), sent));
  place.token = {};
  ASSERT_TRUE(stranger.send(place, {}, sent));
  ASSERT_TRUE(stranger.send(here.place_for(1), bytes(4), {}));
  const auto message = here.receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->sender, 1);
  EXPECT_EQ(here.dropped(), 2);
  EXPECT_EQ(open_files(), before);
}

TEST(DescriptorChannel, WhatIsTooLongIsDropped) {
  DescriptorChannel here(1), there(1);
  ASSERT_TRUE(there.send(here.place_for(0), bytes(DescriptorChannel::kMostBytes + 1), {}));
  ASSERT_TRUE(there.send(here.place_for(0), bytes(DescriptorChannel::kMostBytes), {}));
  const auto message = here.receive();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->bytes.size(), DescriptorChannel::kMostBytes);
  EXPECT_EQ(here.dropped(), 1);
}

TEST(DescriptorChannel, AFullReceiverIsToldLater) {
  DescriptorChannel here(1), there(1);
  int sent = 0;
  while (there.send(here.place_for(0), bytes(8), {}) && sent < 1 << 20) ++sent;
  ASSERT_GT(sent, 0);
  ASSERT_LT(sent, 1 << 20);
  ASSERT_TRUE(here.receive());
  EXPECT_TRUE(there.send(here.place_for(0), bytes(8), {}));
  for (int i = 0; i < sent; ++i) EXPECT_TRUE(here.receive());
  EXPECT_FALSE(here.receive());
}

TEST(DescriptorChannel, NobodyThereIsAnError) {
  DescriptorChannel there(1);
  ChannelPlace place;
  {
    const DescriptorChannel here(1);
    place = here.place_for(0);
  }
  EXPECT_THAT(error_of([&] { there.send(place, bytes(8), {}); }), HasSubstr("refused"));
}

TEST(DescriptorChannel, FilesThatAreLostAreSaid) {
  DescriptorChannel here(1), there(1);
  const std::vector<Descriptor> sent = files(8);
  ASSERT_TRUE(there.send(here.place_for(0), bytes(8), sent));
  // No number is left: each of a small limit is taken.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit small{static_cast<rlim_t>(sent.back().get()) + 3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  const std::string error = error_of([&] { here.receive(); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(error, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace cuop::dist
