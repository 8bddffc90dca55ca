// Ranks that watch each other: what a page says, who may write it, and when a process counts as
// stopped, left or dead. The other processes are forks that only wait.
#include "cuop/dist/comm/heartbeat.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "tests/dist/socket_ranks.h"
#include "tests/own_process.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using Life = Heartbeat::Life;

constexpr double kNever = std::numeric_limits<double>::infinity();

/// A process with this one's open files, that waits until it is killed, or spins.
class Fork {
 public:
  enum class Does { kWait, kSpin };
  explicit Fork(Does does = Does::kWait) : process_(fork()) {
    while (process_ == 0) {
      if (does == Does::kWait) ::pause();
    }
  }
  ~Fork() { end(); }
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;
  void stop() const { kill(process_, SIGSTOP); }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  /// The page as if the fork had made it.
  PagePlace place_of(const HeartbeatPage& page) const {
    PagePlace place = page.place();
    place.process = process_;
    return place;
  }

 private:
  pid_t process_;
};

TEST(HeartbeatPage, SaysWhichCallsAreUnderWay) {
  HeartbeatPage page = HeartbeatPage::make();
  const HeartbeatPage seen = HeartbeatPage::open(page.place());
  ASSERT_TRUE(seen.is_open());
  EXPECT_TRUE(seen.calls().empty());
  page.beat();
  const int call = page.begin_call("reduce_scatter", 7, 2, 5, true);
  const int other = page.begin_call("a name that is too long", 8, 0, 1, false);
  page.beat();
  page.set_awaited(other, 3);
  ASSERT_EQ(seen.calls().size(), 2);
  const CallNote first = seen.calls()[0], second = seen.calls()[1];
  EXPECT_EQ(first.operation, "reduce_scatter");
  EXPECT_EQ(first.context, 7);
  EXPECT_EQ(first.epoch, 2);
  EXPECT_EQ(first.number, 5);
  EXPECT_TRUE(first.is_collective);
  EXPECT_EQ(first.since, 1);
  EXPECT_EQ(first.awaited, -1);
  EXPECT_EQ(second.operation, "a name that is t");
  EXPECT_FALSE(second.is_collective);
  EXPECT_EQ(second.since, 2);  // progress
  EXPECT_EQ(second.awaited, 3);
  page.end_call(call);
  EXPECT_EQ(seen.calls().size(), 1);
  page.end_call(other);
  EXPECT_TRUE(seen.calls().empty());
  EXPECT_EQ(seen.last_number(), 1);
  EXPECT_FALSE(seen.has_left());
  page.set_left();
  EXPECT_TRUE(seen.has_left());
}

TEST(HeartbeatPage, HasRoomForSeveralThreads) {
  HeartbeatPage page = HeartbeatPage::make();
  for (int i = 0; i < HeartbeatPage::kCalls; ++i) {
    EXPECT_EQ(page.begin_call("send", 0, 0, 0, false), i);
  }
  EXPECT_EQ(page.begin_call("send", 0, 0, 0, false), -1);
  page.end_call(3);
  EXPECT_EQ(page.begin_call("recv", 0, 0, 0, false), 3);
}

// A reader beside the writer sees whole notes or none.
TEST(HeartbeatPage, NotesAreReadWholeOrNotAtAll) {
  HeartbeatPage page = HeartbeatPage::make();
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (int64_t i = 1; !is_over; ++i) {
      const int call = page.begin_call(cat("call ", i % 10), static_cast<uint64_t>(i), i, i, true);
      if (i % 100 == 0) std::this_thread::yield();
      page.end_call(call);
    }
  });
  const HeartbeatPage seen = HeartbeatPage::open(page.place());
  int64_t whole = 0;
  rank_test::comes_true([&] {
    for (int look = 0; look < 1000; ++look) {
      const std::vector<CallNote> notes = seen.calls();
      if (notes.empty()) continue;
      const CallNote& note = notes[0];
      ++whole;
      EXPECT_EQ(note.epoch, note.number);
      EXPECT_EQ(note.context, static_cast<uint64_t>(note.number));
      EXPECT_EQ(note.operation, cat("call ", note.number % 10));
    }
    return whole > 100;
  });
  is_over = true;
  writer.join();
  EXPECT_GT(whole, 100);
}

TEST(HeartbeatPage, CanOnlyBeReadByOthersOfTheSameUser) {
  HeartbeatPage page = HeartbeatPage::make();
  const int file = static_cast<int>(page.place().descriptor);
  struct stat status {};
  ASSERT_EQ(fstat(file, &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600);
  EXPECT_EQ(status.st_nlink, 0);  // it has no name in any directory
  EXPECT_NE(ftruncate(file, 0), 0);
  const std::string path = cat("/proc/self/fd/", file);
  const Descriptor again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (again.is_open()) {
    EXPECT_EQ(mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
    EXPECT_LT(write(again.get(), "x", 1), 0);
  }
  page.beat();
  EXPECT_EQ(page.beats(), 1);
}

TEST(HeartbeatPage, OfAnotherPlaceIsNotBelieved) {
  const HeartbeatPage page = HeartbeatPage::make(), other = HeartbeatPage::make();
  PagePlace place = page.place();
  EXPECT_FALSE(HeartbeatPage::open({}).is_open());
  place.token[1] ^= 1;
  EXPECT_FALSE(HeartbeatPage::open(place).is_open());
  place = page.place();
  place.descriptor = other.place().descriptor;
  EXPECT_FALSE(HeartbeatPage::open(place).is_open());
  place = page.place();
  place.host ^= 1;
  EXPECT_FALSE(HeartbeatPage::open(place).is_open());
  // No page at all: a file of some other length, a pipe.
  place = page.place();
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  place.descriptor = null.get();
  EXPECT_FALSE(HeartbeatPage::open(place).is_open());
  const Descriptor short_one(memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  place.descriptor = short_one.get();
  EXPECT_FALSE(HeartbeatPage::open(place).is_open());
}

TEST(Heartbeat, BeatsWithoutAnybodysDoing) {
  Heartbeat first(1000.0), second(1000.0);
  const std::vector<PagePlace> places{first.place(), second.place()};
  first.watch(0, places);
  second.watch(1, places);
  EXPECT_EQ(first.life(1), Life::kBeating);
  EXPECT_TRUE(rank_test::comes_true([&] { return second.own_page().beats() > 3; }));
  EXPECT_EQ(first.life(1), Life::kBeating);
  EXPECT_FALSE(first.has_missing());
}

TEST(Heartbeat, WhoGoesAwayAsItShouldHasLeft) {
  Heartbeat first(1000.0);
  {
    Heartbeat second(1000.0);
    first.watch(0, std::vector<PagePlace>{first.place(), second.place()});
    EXPECT_EQ(first.life(1), Life::kBeating);
  }
  EXPECT_TRUE(rank_test::comes_true([&] { return first.life(1) == Life::kLeft; }));
  EXPECT_FALSE(first.has_missing());
}

TEST(Heartbeat, WhoseProcessIsKilledIsDeadAndItsLastCallIsKnown) {
  HeartbeatPage page = HeartbeatPage::make();
  page.begin_call("all_reduce", 0, 0, 17, true);
  Fork other;
  Heartbeat mine(kNever);
  mine.watch(0, std::vector<PagePlace>{mine.place(), other.place_of(page)});
  EXPECT_EQ(mine.life(1), Life::kBeating);
  other.end();
  EXPECT_TRUE(rank_test::comes_true([&] { return mine.life(1) == Life::kDead; }));
  EXPECT_TRUE(rank_test::comes_true([&] { return mine.has_missing(); }));
  EXPECT_THAT(mine.obituary(1), HasSubstr("has died, in all_reduce (call 17)"));
}

TEST(Heartbeat, WhoseBeatStandsStillIsStoppedUntilItGoesOn) {
  HeartbeatPage page = HeartbeatPage::make();
  const Fork other;  // nothing counts up its page
  Heartbeat mine(0.5), patient(kNever);
  const std::vector<PagePlace> places{mine.place(), other.place_of(page)};
  mine.watch(0, places);
  patient.watch(0, places);
  EXPECT_TRUE(rank_test::comes_true([&] { return mine.life(1) == Life::kStopped; }));
  EXPECT_GT(mine.silence(1), 0.5);
  EXPECT_THAT(mine.obituary(1), HasSubstr("has shown no heartbeat for"));
  EXPECT_TRUE(rank_test::comes_true([&] { return patient.silence(1) > 0.5; }));
  EXPECT_EQ(patient.life(1), Life::kBeating);
  EXPECT_TRUE(rank_test::comes_true([&] {
    page.beat();
    return mine.life(1) == Life::kBeating && !mine.has_missing();
  }));
}

// A busy machine may give a process no time for its heartbeat.
TEST(Heartbeat, WhoOnlyWaitsForAProcessorIsStoppedLater) {
  const HeartbeatPage page = HeartbeatPage::make();
  Fork spinning(Fork::Does::kSpin);
  Heartbeat mine(0.5);
  mine.watch(0, std::vector<PagePlace>{mine.place(), spinning.place_of(page)});
  EXPECT_TRUE(rank_test::comes_true([&] {
    const Life life = mine.life(1);
    EXPECT_TRUE(life == Life::kBeating || mine.silence(1) > 2.0);
    return life == Life::kStopped;
  }));
  EXPECT_GT(mine.silence(1), 2.0);
}

TEST(Heartbeat, WhoIsStoppedWhileItComputesIsNotWaitedForLonger) {
  const HeartbeatPage page = HeartbeatPage::make();
  Fork spinning(Fork::Does::kSpin);
  Heartbeat mine(2.0);
  mine.watch(0, std::vector<PagePlace>{mine.place(), spinning.place_of(page)});
  spinning.stop();
  EXPECT_TRUE(rank_test::comes_true([&] { return mine.life(1) == Life::kStopped; }));
  EXPECT_LT(mine.silence(1), 7.0);  // 8 s for one that only waits for a processor
}

// Others may meet a rank that runs again before they have looked at it.
TEST(Heartbeat, ASignOfLifeCountsAtOnce) {
  HeartbeatPage page = HeartbeatPage::make();
  const Fork other;
  Heartbeat mine(0.5);
  mine.watch(0, std::vector<PagePlace>{mine.place(), other.place_of(page)});
  EXPECT_TRUE(rank_test::comes_true([&] { return mine.life(1) == Life::kStopped; }));
  // Tried again where a busy machine takes its time between these two.
  bool counts = false;
  for (int attempt = 0; attempt < 5 && !counts; ++attempt) {
    page.show_life();
    counts = mine.life(1) == Life::kBeating;
  }
  EXPECT_TRUE(counts);
}

TEST(Heartbeat, OfOtherHostsAreNotWatched) {
  Heartbeat mine(0.5), other(0.5);
  PagePlace elsewhere = other.place();
  elsewhere.host ^= 1;
  mine.watch(0, std::vector<PagePlace>{mine.place(), elsewhere, PagePlace{}});
  EXPECT_EQ(mine.life(1), Life::kUnwatched);
  EXPECT_EQ(mine.life(2), Life::kUnwatched);
  EXPECT_TRUE(mine.calls(1).empty());
  EXPECT_EQ(mine.last_number(1), 0);
}

TEST(Heartbeat, DISABLED_LimitIsInfinite) { EXPECT_EQ(Heartbeat::limit_of_environment(), kNever); }
TEST(Heartbeat, DISABLED_LimitIsTwo) { EXPECT_EQ(Heartbeat::limit_of_environment(), 2.0); }
TEST(Heartbeat, DISABLED_LimitIsRefused) {
  EXPECT_THROW(Heartbeat::limit_of_environment(), ExecutionError);
}

TEST(Heartbeat, TheLimitIsReadFromTheEnvironment) {
  using cuop::test::run_in_process;
  const std::string name = "CUOP_HEARTBEAT_TIMEOUT=", test = "Heartbeat.DISABLED_LimitIs";
  EXPECT_EQ(run_in_process(test + "Infinite", name + "0"), 0);
  EXPECT_EQ(run_in_process(test + "Infinite", name + "inf"), 0);
  EXPECT_EQ(run_in_process(test + "Two", name + "2"), 0);
  for (const char* wrong : {"0.4", "-1", "nan", "soon"}) {
    EXPECT_EQ(run_in_process(test + "Refused", name + wrong), 0) << wrong;
  }
}

}  // namespace
}  // namespace cuop::dist
