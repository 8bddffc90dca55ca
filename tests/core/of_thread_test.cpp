#include "cuop/core/of_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace cuop {
namespace {

std::atomic<int> counted_made = 0, counted_gone = 0;

struct Counted {
  Counted() { ++counted_made; }
  ~Counted() { ++counted_gone; }
  int calls = 0;
};

int count_call() {
  return ++of_thread([] { return new Counted; }).calls;
}

/// Its destructor runs after that of what the thread has counted_made later.
struct CallsAtTheEnd {
  ~CallsAtTheEnd() { last = count_call(); }
  static inline std::atomic<int> last = 0;
};

TEST(OfThread, IsKeptByTheThreadAndGoesWithIt) {
  counted_made = counted_gone = 0;
  std::thread([] {
    EXPECT_EQ(count_call(), 1);
    EXPECT_EQ(count_call(), 2);
  }).join();
  EXPECT_EQ(counted_made, 1);
  EXPECT_EQ(counted_gone, 1);
  std::thread([] { EXPECT_EQ(count_call(), 1); }).join();
  EXPECT_EQ(counted_made, 2);
}

TEST(OfThread, IsMadeAnewForWhatTheThreadDestroysLater) {
  counted_made = counted_gone = 0;
  std::thread([] {
    thread_local CallsAtTheEnd late;
    (void)late;
    for (int i = 1; i < 4; ++i) EXPECT_EQ(count_call(), i);
  }).join();
  EXPECT_EQ(CallsAtTheEnd::last, 1);
  EXPECT_EQ(counted_made, 2);
  EXPECT_EQ(counted_gone, 2);
}

}  // namespace
}  // namespace cuop
