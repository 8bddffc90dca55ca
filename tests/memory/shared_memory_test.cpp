#include "cuop/memory/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host_memory.h"

namespace cuop::memory {
namespace {

/// Ends with the exit status of `work` in a process of its own.
template <class Work>
int in_child(Work&& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SharedMemory, ProcessesSeeWhatOthersWrite) {
  const auto memory = SharedMemory::create(10000);
  auto* bytes = static_cast<char*>(memory->data());
  EXPECT_EQ(bytes[9999], 0);
  bytes[0] = 'a';
  const int status = in_child([&] {
    const auto other = SharedMemory::open(memory->name());
    if (!other) return 1;
    auto* theirs = static_cast<char*>(other->data());
    if (theirs == bytes || theirs[0] != 'a') return 2;
    std::strcpy(theirs + 5000, "from the child");
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_STREQ(bytes + 5000, "from the child");
}

TEST(SharedMemory, NobodyElseMayOpenIt) {
  const auto memory = SharedMemory::create(100);
  struct stat status {};
  const std::string path = cat("/proc/", memory->name().process, "/fd/", memory->name().descriptor);
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST(SharedMemory, AnotherFileIsNotTakenForIt) {
  const auto memory = SharedMemory::create(4096);
  SharedMemoryName name = memory->name();
  EXPECT_NE(SharedMemory::open(name), nullptr);
  name.inode += 1;
  EXPECT_EQ(SharedMemory::open(name), nullptr);
  name = memory->name();
  name.bytes = 8192;
  EXPECT_EQ(SharedMemory::open(name), nullptr);
  name = memory->name();
  name.descriptor = 0;
  EXPECT_EQ(SharedMemory::open(name), nullptr);
  name.process = 1 << 30;
  EXPECT_EQ(SharedMemory::open(name), nullptr);
}

TEST(SharedMemory, ItsSizeStays) {
  const auto memory = SharedMemory::create(4096);
  const int file = static_cast<int>(memory->name().descriptor);
  EXPECT_NE(ftruncate(file, 100), 0);
  EXPECT_NE(ftruncate(file, 100000), 0);
}

TEST(SharedMemory, MoreThanThereIsIsRefused) {
  EXPECT_THROW(SharedMemory::create(host_memory().total + 1), MemoryError);
  EXPECT_NE(SharedMemory::create(0)->data(), nullptr);
}

TEST(SharedMemory, IsGoneWithItsLastProcess) {
  SharedMemoryName name;
  {
    const auto memory = SharedMemory::create(100);
    name = memory->name();
  }
  EXPECT_EQ(SharedMemory::open(name), nullptr);
}

}  // namespace
}  // namespace cuop::memory
