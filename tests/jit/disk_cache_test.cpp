#include "cuop/jit/disk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace {
/// What happens just before this process's next call of flock.
std::function<void()> before_flock;
}  // namespace

/// Stands before the system's, for the library as well.
extern "C" int flock(int file, int operation) noexcept {
  if (before_flock) std::exchange(before_flock, nullptr)();
  return static_cast<int>(syscall(SYS_flock, file, operation));
}

namespace cuop::jit {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using Binary = DiskCache::Binary;

constexpr int64_t kLarge = int64_t{1} << 30;

std::string key_of(int number) { return sha256_hex(cat("kernel ", number)); }
/// What the pretended compiler makes of a kernel: a few kilobytes that only this number gives.
std::string image_of(int number) {
  std::string image;
  for (int i = 0; i < 100; ++i) image += sha256_hex(cat(number, " ", i));
  return image;
}

class DiskCacheTest : public ::testing::Test {
 protected:
  DiskCache cache(int64_t max_bytes = kLarge) const { return {directory_.string(), max_bytes}; }
  fs::path file_of(int number) const { return directory_ / cat(key_of(number), ".kernel"); }
  fs::path lock_of(int number) const { return directory_ / cat(key_of(number), ".lock"); }
  /// The folder as a cache makes it.
  void make_directory() const {
    fs::create_directory(directory_);
    fs::permissions(directory_, fs::perms::owner_all);
  }
  /// Locks an entry as another process does that makes it; answers the file, to be closed.
  int held_lock_of(int number) const {
    make_directory();
    const int held = open(lock_of(number).c_str(), O_CREAT | O_RDWR, 0600);
    EXPECT_EQ(flock(held, LOCK_EX), 0);
    return held;
  }
  /// Asks for a kernel, whose image must be right; how many were made for that.
  static int made_for(DiskCache& cache, int number) {
    int made = 0;
    const auto make = [&] {
      ++made;
      return Binary{image_of(number), 1.5};
    };
    const Binary got = cache.load_or_make(key_of(number), cat("kernel_", number), 10.0, make);
    EXPECT_EQ(got.image, image_of(number));
    return made;
  }

  /// Runs `body` in a process of its own; answers its id.
  template <class Body>
  static pid_t spawn(Body&& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    body();
    _exit(0);
  }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path(), directory_ = root_ / "cache";
};

TEST_F(DiskCacheTest, KeepsAnEntryForTheNextProcess) {
  DiskCache first = cache();
  EXPECT_EQ(made_for(first, 1), 1);
  DiskCache second = cache();
  EXPECT_EQ(made_for(second, 1), 0);
  EXPECT_EQ(first.statistics().misses, 1);
  EXPECT_EQ(second.statistics().hits, 1);
  EXPECT_EQ(second.load(key_of(1))->made_in_ms, 1.5);
  EXPECT_EQ(second.load(key_of(2)), std::nullopt);
  const auto entries = second.entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "kernel_1");
  EXPECT_EQ(entries[0].key, key_of(1));
  EXPECT_EQ(entries[0].bytes, static_cast<int64_t>(fs::file_size(file_of(1))));
  EXPECT_EQ(fs::status(directory_).permissions() & fs::perms::all, fs::perms::owner_all);
}

TEST_F(DiskCacheTest, ANameIsOneLineWhateverItHolds) {
  DiskCache own = cache();
  own.save(key_of(1), "a\n\"b\"\xff"s + '\0', Binary{image_of(1), 1.5});
  ASSERT_EQ(own.entries().size(), 1u);
  EXPECT_EQ(own.entries()[0].name, "a\\u000a\\\"b\\\"\xef\xbf\xbd\\u0000");
  EXPECT_EQ(own.load(key_of(1))->image, image_of(1));
}

TEST_F(DiskCacheTest, TakesNoEntryThatIsDamagedInAnyByte) {
  DiskCache whole = cache();
  made_for(whole, 1);
  const auto size = static_cast<int64_t>(fs::file_size(file_of(1)));
  std::mt19937 random(7);
  for (int trial = 0; trial < 60; ++trial) {
    const auto place = static_cast<std::streamoff>(random() % static_cast<uint64_t>(size));
    std::fstream file(file_of(1), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(place);
    const char before = static_cast<char>(file.get());
    file.seekp(place);
    file.put(static_cast<char>(before ^ (1 << random() % 8)));
    file.close();
    DiskCache damaged = cache();
    EXPECT_EQ(made_for(damaged, 1), 1) << "byte " << place;
    EXPECT_GE(damaged.statistics().damaged, 1);
  }
  for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{20}, size / 2, size - 1}) {
    fs::resize_file(file_of(1), static_cast<uintmax_t>(length));
    DiskCache cut = cache();
    EXPECT_EQ(made_for(cut, 1), 1) << length;
  }
  // An intact entry under another name answers another question.
  fs::copy_file(file_of(1), file_of(2));
  DiskCache renamed = cache();
  EXPECT_EQ(made_for(renamed, 2), 1);
}

TEST_F(DiskCacheTest, BelievesNothingThatOthersCanWrite) {
  DiskCache own = cache();
  made_for(own, 1);
  for (const mode_t mode : {0777u, 0770u, 0702u}) {
    ASSERT_EQ(chmod(directory_.c_str(), mode), 0);
    DiskCache open_to_others = cache();
    EXPECT_EQ(made_for(open_to_others, 1), 1) << std::oct << mode;
    EXPECT_THAT(open_to_others.problem(), ::testing::HasSubstr("can be written by other users"));
    EXPECT_TRUE(open_to_others.entries().empty());
    EXPECT_EQ(open_to_others.clear(), 0);
  }
  ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(file_of(1).c_str(), 0666), 0);
  DiskCache writable_file = cache();
  EXPECT_EQ(made_for(writable_file, 1), 1);
  EXPECT_EQ(writable_file.statistics().damaged, 2);  // before and after it got the lock

  fs::rename(file_of(1), root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", file_of(1));
  DiskCache linked = cache();
  EXPECT_EQ(made_for(linked, 1), 1) << "a link may lead to what others wrote";
}

TEST_F(DiskCacheTest, BelievesNoOtherOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  DiskCache own = cache();
  made_for(own, 1);
  ASSERT_EQ(chown(file_of(1).c_str(), 12345, 12345), 0);
  DiskCache foreign_file = cache();
  EXPECT_EQ(made_for(foreign_file, 1), 1);
  ASSERT_EQ(chown(directory_.c_str(), 12345, 12345), 0);
  DiskCache foreign_directory = cache();
  EXPECT_EQ(made_for(foreign_directory, 1), 1);
  EXPECT_THAT(foreign_directory.problem(), ::testing::HasSubstr("another user"));
}

TEST_F(DiskCacheTest, WorksInMemoryWhereNothingCanBeWritten) {
  std::ofstream(directory_) << "a file where the directory should be";
  DiskCache blocked = cache();
  EXPECT_EQ(made_for(blocked, 1), 1);
  EXPECT_EQ(made_for(blocked, 1), 1);
}

TEST_F(DiskCacheTest, RemovesWhatWasNotUsedForTheLongestTime) {
  DiskCache measure = cache();
  made_for(measure, 0);
  const auto bytes = static_cast<int64_t>(fs::file_size(file_of(0)));
  DiskCache small = cache(10 * bytes + bytes / 2);
  for (int i = 0; i < 10; ++i) {
    made_for(small, i);
    // As if long ago: the order must not hang on the clock's steps.
    fs::last_write_time(file_of(i), fs::file_time_type::clock::now() - std::chrono::hours(20 - i));
  }
  made_for(small, 0);  // used again
  made_for(small, 10);
  EXPECT_TRUE(fs::exists(file_of(0)));
  EXPECT_TRUE(fs::exists(file_of(10)));
  EXPECT_FALSE(fs::exists(file_of(1)));
  EXPECT_FALSE(fs::exists(file_of(2)));
  EXPECT_EQ(small.entries().size(), 8u);
  EXPECT_EQ(small.statistics().evicted, 3);
}

TEST_F(DiskCacheTest, TravelsInOneFile) {
  DiskCache from = cache();
  for (int i = 0; i < 5; ++i) made_for(from, i);
  const std::string archive = (root_ / "kernels").string();
  EXPECT_EQ(from.export_to(archive), 5);
  DiskCache to((root_ / "other" / "cache").string(), kLarge);
  EXPECT_EQ(to.import_from(archive), 5);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(to.load(key_of(i))->image, image_of(i));
  EXPECT_EQ(from.clear(), 5);
  EXPECT_TRUE(from.entries().empty());

  std::string bytes;
  {
    std::ifstream in(archive, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(archive, std::ios::binary) << bytes;
  EXPECT_EQ(from.import_from(archive), 4) << "all but the damaged one";
  std::ofstream(archive, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_THROW(from.import_from(archive), ExecutionError);
  std::ofstream(archive, std::ios::binary) << "something else";
  EXPECT_THROW(from.import_from(archive), ExecutionError);
  EXPECT_THROW(from.export_to((root_ / "no" / "such" / "folder").string()), ExecutionError);
}

TEST_F(DiskCacheTest, TouchesNoFileOfAStranger) {
  DiskCache own = cache();
  made_for(own, 1);
  own.save_text(key_of(1), ".cu", "source");
  const std::pair<std::string, std::string> foreign[] = {
      {"notes.kernel", "cuop kernel 1\n"},
      {key_of(2) + ".kernel", "ELF"},
      {"main.cu", "int main() {}"},
      {key_of(3) + ".cu", "int main() {}"},
      {"run.log", "long"},
      {key_of(4) + ".log", "long"},
      {"half.tmp", ""},
      {key_of(5) + ".kernel.1.1.tmp", "download"},
      {"apt.lock", ""},
      {key_of(6) + ".lock", "4711"}};
  for (const auto& [name, content] : foreign) std::ofstream(directory_ / name) << content;
  std::ofstream(directory_ / cat(key_of(7), ".kernel.12.3.tmp")) << "cuop ker";
  std::ofstream(lock_of(8)) << "";
  const auto remaining = [&] {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  };
  EXPECT_EQ(own.clear(), 1);
  for (const auto& [name, content] : foreign) EXPECT_TRUE(fs::exists(directory_ / name)) << name;
  EXPECT_EQ(remaining(), std::ssize(foreign)) << "all of ours has gone";

  // A cache without room removes its own at once, and looks at nothing else.
  DiskCache small = cache(1);
  small.save_text(key_of(1), ".log", "compiled");
  made_for(small, 1);
  for (const auto& [name, content] : foreign) EXPECT_TRUE(fs::exists(directory_ / name)) << name;
  EXPECT_EQ(remaining(), std::ssize(foreign));
}

TEST_F(DiskCacheTest, LeavesALockThatIsHeld) {
  const int held = held_lock_of(1);
  cache().clear();
  EXPECT_TRUE(fs::exists(lock_of(1)));
  close(held);
  cache().clear();
  EXPECT_FALSE(fs::exists(lock_of(1)));
}

TEST_F(DiskCacheTest, AnArchiveIsCompleteOrNotThere) {
  DiskCache from = cache();
  made_for(from, 1);
  const fs::path archive = root_ / "archive";
  std::ofstream(archive) << "what was there";
  const pid_t child = spawn([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) _exit(2);
    try {
      from.export_to(archive.string());
    } catch (const ExecutionError&) {
      _exit(1);
    }
  });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 1) << "no room for it";
  EXPECT_EQ(fs::file_size(archive), 14u);
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 2);
}

TEST_F(DiskCacheTest, GoesNoWayThatAnotherUserMade) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give files away";
  DiskCache own = cache();
  made_for(own, 1);
  fs::create_directory_symlink(root_, root_ / "link");
  DiskCache linked((root_ / "link" / "cache").string(), kLarge);
  EXPECT_EQ(made_for(linked, 1), 0) << "an own link may be followed";
  ASSERT_EQ(lchown((root_ / "link").c_str(), 12345, 12345), 0);
  EXPECT_EQ(made_for(linked, 1), 1);
  EXPECT_EQ(linked.clear(), 0);
  EXPECT_EQ(own.entries().size(), 1u);
  EXPECT_THAT(linked.problem(), ::testing::HasSubstr("is a link that another user made"));
}

TEST_F(DiskCacheTest, ManyProcessesMakeEachEntryOnce) {
  constexpr int kProcesses = 64, kKeys = 32;
  const std::string tally = (root_ / "tally").string();
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(spawn([&] {
      DiskCache mine = cache();
      std::mt19937 random(static_cast<unsigned>(process));
      std::vector<int> order(kKeys);
      for (int i = 0; i < kKeys; ++i) order[static_cast<size_t>(i)] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (const int number : order) {
        const auto binary = mine.load_or_make(key_of(number), "k", 120.0, [&] {
          const int log = open(tally.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
          if (write(log, "x", 1) != 1) _exit(3);
          close(log);
          usleep(3000);
          return Binary{image_of(number), 3.0};
        });
        if (binary.image != image_of(number)) _exit(1);
      }
      if (mine.statistics().damaged != 0 || mine.statistics().abandoned != 0) _exit(2);
    }));
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(fs::file_size(tally), kKeys);
  for (const auto& entry : fs::directory_iterator(directory_)) {
    EXPECT_EQ(entry.path().extension(), ".kernel") << "left behind";
  }
}

TEST_F(DiskCacheTest, SurvivesProcessesThatAreKilled) {
  constexpr int kTrials = 1000 / test::kCaseStep;  // each fork copies the sanitizer's tables
  std::mt19937 random(11);
  int found = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    int progress[2];
    ASSERT_EQ(pipe(progress), 0);
    const pid_t child = spawn([&] {
      DiskCache mine = cache();
      for (int number = 0;; number = (number + 1) % 8) {
        fs::remove(file_of(number));
        mine.load_or_make(key_of(number), "k", 10.0, [&] { return Binary{image_of(number), 1.0}; });
        if (write(progress[1], "x", 1) != 1) _exit(1);
      }
    });
    close(progress[1]);
    // Killed in the middle of its work: after its first entry, however slow the machine is.
    char stored = 0;
    EXPECT_EQ(read(progress[0], &stored, 1), 1);
    usleep(static_cast<useconds_t>(random() % 2000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(progress[0]);
    DiskCache after = cache();
    for (int number = 0; number < 8; ++number) {
      const auto binary = after.load(key_of(number));
      if (!binary) continue;
      ++found;
      ASSERT_EQ(binary->image, image_of(number)) << "trial " << trial;
    }
    ASSERT_EQ(after.statistics().damaged, 0) << "trial " << trial;
  }
  EXPECT_GE(found, kTrials) << "each of them stored one entry at least";
  // Locks of the dead hold nobody up.
  DiskCache last = cache();
  for (int number = 0; number < 8; ++number) made_for(last, number);
  EXPECT_EQ(last.statistics().abandoned, 0);
}

TEST_F(DiskCacheTest, GivesUpWaitingForAProcessThatStands) {
  const int held = held_lock_of(1);
  DiskCache waiting = cache();
  int made = 0;
  const auto binary = waiting.load_or_make(key_of(1), "k", 0.05, [&] {
    ++made;
    return Binary{image_of(1), 1.0};
  });
  EXPECT_EQ(binary.image, image_of(1));
  EXPECT_EQ(made, 1);
  EXPECT_EQ(waiting.statistics().abandoned, 1);
  close(held);
}

TEST_F(DiskCacheTest, TheWaitForAnotherProcessCanBeInterrupted) {
  const int held = held_lock_of(1);
  DiskCache waiting = cache();
  set_interrupt_check([] { return true; });
  const auto make = [] { return Binary{image_of(1), 1.0}; };
  EXPECT_THROW(waiting.load_or_make(key_of(1), "k", 600.0, make), Interrupted);
  set_interrupt_check(nullptr);
  EXPECT_TRUE(fs::exists(lock_of(1))) << "it is the other one's";
  close(held);
  EXPECT_EQ(made_for(waiting, 1), 1);
  EXPECT_EQ(waiting.statistics().abandoned, 0);
}

TEST_F(DiskCacheTest, WhatCouldNotBeWrittenWholeIsNotThere) {
  const pid_t child = spawn([&] {
    signal(SIGXFSZ, SIG_IGN);  // so that write answers, as on a full disk
    const rlimit limit{1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    DiskCache limited = cache();
    _exit(made_for(limited, 1) == 1 && !HasFailure() ? 0 : 1);
  });
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  for (const auto& left : fs::directory_iterator(directory_)) ADD_FAILURE() << left.path();
  DiskCache later = cache();
  EXPECT_EQ(later.load(key_of(1)), std::nullopt);
  EXPECT_EQ(later.statistics().damaged, 0);
}

TEST_F(DiskCacheTest, ALockOnARemovedFileIsNoLock) {
  // Its owner removes the file and lets go between our open and our lock; a third then makes a file
  // of that name and locks it.
  make_directory();
  const fs::path path = lock_of(1);
  int third = -1;
  before_flock = [&] {
    ASSERT_EQ(unlink(path.c_str()), 0);
    third = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    ASSERT_EQ(flock(third, LOCK_EX | LOCK_NB), 0);
  };
  DiskCache waiting = cache();
  waiting.load_or_make(key_of(1), "kernel", 0.05, [] { return Binary{image_of(1), 1.5}; });
  ASSERT_GE(third, 0);
  EXPECT_EQ(waiting.statistics().abandoned, 1);
  close(third);
}

TEST_F(DiskCacheTest, AnErrorWhileMakingIsTheCallersAndLeavesNothing) {
  DiskCache failing = cache();
  const auto fail = []() -> Binary { throw CompilationError("no"); };
  EXPECT_THROW(failing.load_or_make(key_of(1), "k", 10.0, fail), CompilationError);
  EXPECT_TRUE(failing.entries().empty());
  made_for(failing, 1);
}

TEST_F(DiskCacheTest, ThreadsMakeEachEntryOnce) {
  DiskCache shared = cache();
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int number = 0; number < 6; ++number) {
        const auto binary = shared.load_or_make(key_of(number), "k", 60.0, [&] {
          ++made;
          return Binary{image_of(number), 1.0};
        });
        EXPECT_EQ(binary.image, image_of(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 6);
}

}  // namespace
}  // namespace cuop::jit
