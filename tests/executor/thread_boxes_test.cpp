#include "cuop/executor/thread_boxes.h"

#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <future>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/ops/create/create.h"
#include "tests/current_device_scope.h"
#include "tests/error_of.h"
#include "tests/executor/tiled_test.h"

namespace cuop::executor {
namespace {

using namespace dist::rank_test;    // NOLINT: the frame of these tests
using namespace executor::testing;  // NOLINT
using ::testing::HasSubstr;

/// Readers are GPUs, as many as there are, or threads of the host.
Device device_of(int index) {
  if (!kRanksOnGpus) return kCpu;
  return {DeviceType::kCuda, index % backend::device_count(DeviceType::kCuda)};
}

/// One device's reads of an array of the host.
class DeviceReader {
 public:
  DeviceReader(ThreadBoxes& boxes, const Tensor& array, Reader reader)
      : boxes_(boxes),
        array_{array, whole_box(array.shape()), kCpu},
        reader_(reader),
        stream_(device_of(reader.index)) {}

  /// Reads the box, which stays on offer until the next.
  void read(const Box& box) {
    const test::CurrentDeviceScope current(device());
    const StreamScope scope(stream_.get());
    offer_ = nullptr;
    part_ = {};
    const auto bring = [&](const Box& piece, const Tensor& place) {
      if (before_bring) before_bring(piece);
      copy_across(place, view_of(array_, piece));
      brought += place.nbytes();
    };
    offer_ = boxes_.read(0, array_.local.dtype(), box, device(), reader_, bring);
    part_ = offer_->part();
  }
  /// Gives the box back and has other work write to its memory.
  void reuse() {
    const StreamScope scope(stream_.get());
    const Shape shape = part_.box.shape();
    offer_ = nullptr;
    part_ = {};
    full(shape, -1.0, array_.local.dtype(), device());
  }
  void expect_right() const {
    const StreamScope scope(stream_.get());
    const Tensor expected = contiguous(view_of(array_, part_.box));
    expect_close(to_device(part_.local, kCpu), expected, 0, "a box");
  }
  Device device() const { return device_of(reader_.index); }
  int64_t taken() const { return offer_->taken_bytes(); }

  std::function<void(const Box&)> before_bring = {};
  int64_t brought = 0;

 private:
  ThreadBoxes& boxes_;
  Part array_;
  Reader reader_;
  backend::OwnedStream stream_;
  Part part_;
  std::shared_ptr<SharedBox> offer_;
};

class ThreadBoxesTest : public ::testing::Test {
 protected:
  DeviceReader reader(int index, int count) { return {boxes_, array_, {index, count}}; }

  ThreadBoxes boxes_;
  const Tensor array_ = host_noise({701, 300}, DType::kFloat32);
  const Box whole_ = whole_box({701, 300});
};

TEST_F(ThreadBoxesTest, EachByteComesFromTheHostOnce) {
  for (const int count : {2, 3, 4}) {
    std::vector<std::unique_ptr<DeviceReader>> readers;
    for (int i = 0; i < count; ++i) {
      readers.push_back(std::make_unique<DeviceReader>(boxes_, array_, Reader{i, count}));
    }
    for (const Box& box : {whole_, Box{{10, 20}, {690, 250}}, Box{{7, 0}, {8, 300}}}) {
      std::barrier together(count);
      std::vector<std::future<void>> threads;
      for (const auto& each : readers) {
        each->brought = 0;
        threads.push_back(std::async(std::launch::async, [&] {
          together.arrive_and_wait();
          each->read(box);
          together.arrive_and_wait();  // all have what they need of each other
        }));
      }
      for (auto& thread : threads) thread.get();
      int64_t brought = 0;
      for (const auto& each : readers) {
        each->expect_right();
        EXPECT_EQ(each->brought + each->taken(), box.size() * 4) << box;
        brought += each->brought;
      }
      EXPECT_EQ(brought, box.size() * 4) << box;
    }
  }
}

TEST_F(ThreadBoxesTest, WhoIsLateTakesAllThatIsOnOfferAndBringsWhatIsNot) {
  DeviceReader first = reader(0, 2), second = reader(1, 2);
  first.read(whole_);
  EXPECT_EQ(first.brought, array_.nbytes());
  second.read(whole_);
  EXPECT_EQ(second.brought, 0);
  EXPECT_EQ(second.taken(), array_.nbytes());
  second.expect_right();
  const Box other{{0, 0}, {350, 300}};
  first.read(other);
  second.read(whole_);  // which is on offer no more
  EXPECT_EQ(second.brought, array_.nbytes());
  second.expect_right();
}

TEST_F(ThreadBoxesTest, MemoryThatIsGivenBackIsUsedAgainBehindTheOthersCopies) {
  DeviceReader first = reader(0, 2), second = reader(1, 2);
  for (int round = 0; round < 20; ++round) {
    first.read(whole_);
    second.read(whole_);
    first.reuse();
    EXPECT_EQ(second.taken(), array_.nbytes());
    second.expect_right();
    second.reuse();
  }
}

TEST_F(ThreadBoxesTest, APieceUnderWayIsWaitedFor) {
  DeviceReader first = reader(0, 2), second = reader(1, 2);
  std::promise<void> begun, go_on;
  first.before_bring = [&](const Box& piece) {
    if (piece.low[0] > 0) return;
    begun.set_value();
    go_on.get_future().wait();
  };
  auto held = std::async(std::launch::async, [&] { first.read(whole_); });
  begun.get_future().wait();
  auto late = std::async(std::launch::async, [&] { second.read(whole_); });
  EXPECT_EQ(late.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  go_on.set_value();
  held.get();
  late.get();
  EXPECT_EQ(first.brought, second.taken());
  EXPECT_EQ(second.brought, first.taken());
  second.expect_right();
}

TEST_F(ThreadBoxesTest, WhatFailsOnOneDeviceIsBroughtByTheOthers) {
  DeviceReader first = reader(0, 2), second = reader(1, 2);
  std::promise<void> begun, go_on;
  first.before_bring = [&](const Box&) {
    begun.set_value();
    go_on.get_future().wait();
    throw ExecutionError("the array cannot be read");
  };
  auto held = std::async(std::launch::async, [&] { first.read(whole_); });
  begun.get_future().wait();
  auto late = std::async(std::launch::async, [&] { second.read(whole_); });
  EXPECT_EQ(late.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  go_on.set_value();
  EXPECT_THAT(test::error_of<ExecutionError>([&] { held.get(); }), HasSubstr("cannot be read"));
  late.get();
  EXPECT_EQ(second.brought, array_.nbytes());
  second.expect_right();
}

TEST_F(ThreadBoxesTest, WaitingForAnotherDeviceIsInterrupted) {
  DeviceReader first = reader(0, 2), second = reader(1, 2);
  std::promise<void> begun, go_on;
  first.before_bring = [&, is_first = true](const Box&) mutable {
    if (std::exchange(is_first, false)) begun.set_value(), go_on.get_future().wait();
  };
  auto held = std::async(std::launch::async, [&] { first.read(whole_); });
  begun.get_future().wait();
  std::atomic<bool> is_interrupted = false;
  auto late = std::async(std::launch::async, [&] {
    const CancelScope cancelled(is_interrupted);
    second.read(whole_);
  });
  EXPECT_EQ(late.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  is_interrupted = true;
  EXPECT_THROW(late.get(), Interrupted);
  go_on.set_value();
  held.get();
  first.expect_right();
}

}  // namespace
}  // namespace cuop::executor
