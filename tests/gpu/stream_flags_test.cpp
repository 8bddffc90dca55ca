// Streams that wait for numbers in the host's memory, and what is told of those that went on
// without what they waited for.
#include "cuop/backend/cuda/stream_flags.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "cuop/backend/cuda/wait_guards.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/dist/comm/fabric_guard.h"
#include "cuop/memory/shared_memory.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "tests/error_of.h"

namespace cuop::backend::cuda {
namespace {

using cuop::test::error_of;
using ::testing::HasSubstr;

constexpr Device kGpu{DeviceType::kCuda, 0};

TEST(Flags, NumbersGoRoundThroughZero) {
  const Flag flag(3);
  EXPECT_TRUE(has_reached(flag, 3));
  EXPECT_TRUE(has_reached(flag, 2));
  EXPECT_TRUE(has_reached(flag, 0xfffffff0));
  EXPECT_FALSE(has_reached(flag, 4));
  EXPECT_FALSE(has_reached(Flag(0xfffffff0), 3));
}

class GpuFlags : public testing::Test {
 protected:
  void SetUp() override {
    if (backend::device_count(DeviceType::kCuda) == 0) GTEST_SKIP() << "needs a CUDA GPU";
    memory_ = memory::SharedMemory::create(4096);
    flags_ = std::make_unique<FlagMemory>(kGpu, memory_->data(), 4096);
    flag_ = new (static_cast<char*>(memory_->data()) + 256) Flag(0xfffffffe);
  }

  std::shared_ptr<memory::SharedMemory> memory_;
  std::unique_ptr<FlagMemory> flags_;
  Flag* flag_ = nullptr;
};

TEST_F(GpuFlags, AStreamGoesOnWhenTheNumberIsReached) {
  Runtime& runtime = backend::runtime(kGpu);
  const OwnedStream waiting(kGpu), writing(kGpu);
  for (const uint32_t number : {0xffffffffu, 0u, 1u}) {
    flags_->await(*flag_, number, waiting.get());
    EXPECT_FALSE(runtime.is_idle(waiting.get()));
    flags_->write(*flag_, number, writing.get());
    runtime.synchronize(waiting.get());
    EXPECT_EQ(flag_->load(), number);
  }
  flags_->await(*flag_, 0xffffffff, waiting.get());  // long ago
  runtime.synchronize(waiting.get());
  flags_->await(*flag_, 2, waiting.get());
  EXPECT_FALSE(runtime.is_idle(waiting.get()));
  *flag_ = 2;  // the host lets it go
  runtime.synchronize(waiting.get());
}

TEST_F(GpuFlags, MemoryThatIsNoneIsRefused) {
  EXPECT_THROW(FlagMemory(kGpu, nullptr, 4096), Error);
}

/// Words in the page of rank 1 of 2, by rank 0.
class GpuGuard : public GpuFlags {
 protected:
  using Page = dist::fabric::FlagPage;

  void SetUp() override {
    GpuFlags::SetUp();
    if (IsSkipped()) return;
    page_ = std::make_unique<Page>(kGpu, memory::SharedMemory::create(Page::bytes(2)));
    page_->set_all(2, 7);
    guard_ = std::make_shared<dist::fabric::Guard>(kGpu, page_->memory(), 1, 2);
    guard_->start(guard_);
  }
  void TearDown() override {
    if (guard_) wait_guards(kGpu).remove(guard_.get());
  }

  void tell(std::string_view text) {
    text.copy(page_->from(0).text, text.size());
    page_->owner().tainted = Page::Word::of(5, 0);
  }
  /// What each wait of the host says; all say the same.
  static std::string told() {
    Runtime& runtime = backend::runtime(kGpu);
    const Stream stream = current_stream(kGpu);
    const auto event = runtime.create_event(false);
    event->record(stream);
    const Tensor x = full({10}, 1.0, DType::kFloat32, kGpu);
    std::string first;
    const std::function<void()> waits[] = {[&] { runtime.synchronize(stream); },
                                           [&] { runtime.synchronize(); },
                                           [&] { event->synchronize(); },
                                           [&] { to_device(x, kCpu); },
                                           [&] {
                                             while (!runtime.is_idle(stream)) {
                                             }
                                           },
                                           [&] {
                                             while (!event->is_done()) {
                                             }
                                           }};
    for (const auto& wait : waits) {
      std::string text;
      try {
        wait();
      } catch (const CommunicationError& error) {
        EXPECT_EQ(error.rank(), 5);
        text = error.what();
      }
      if (&wait == &waits[0]) first = text;
      EXPECT_EQ(text, first) << &wait - &waits[0];
    }
    return first;
  }

  std::unique_ptr<Page> page_;
  std::shared_ptr<dist::fabric::Guard> guard_;
};

TEST_F(GpuGuard, EveryWaitTellsOfAWord) {
  EXPECT_EQ(told(), "");
  tell("gather: rank 0 of 2 failed: exhausted");
  EXPECT_EQ(told(),
            "stream: work on cuda:0 means nothing: rank 1 of 2 cannot go on: gather: rank 0 of 2 "
            "failed: exhausted");
  guard_->forget();
  EXPECT_EQ(told(), "");
}

TEST_F(GpuGuard, TheFirstReasonCounts) {
  guard_->spoil({5, true, "lost rank 0"});
  guard_->spoil({4, true, "lost rank 1"});
  tell("exhausted");
  EXPECT_THAT(told(), HasSubstr("rank 1 of 2 lost rank 0"));
}

/// Of a communicator that is gone what nobody was told is told once.
TEST_F(GpuGuard, WhatNobodyWasToldIsToldOnce) {
  guard_->spoil({5, true, "lost rank 0"});
  guard_->end();
  Runtime& runtime = backend::runtime(kGpu);
  EXPECT_THAT(error_of<CommunicationError>([&] { runtime.synchronize(); }), HasSubstr("lost"));
  runtime.synchronize();
}

TEST_F(GpuGuard, WordsThatMakeNoSenseAreToldAllTheSame) {
  std::memset(page_->from(0).text, 'x', sizeof page_->from(0).text);
  page_->owner().tainted = Page::Word::of(5, 77);
  EXPECT_THAT(told(), HasSubstr("rank 5 failed"));
  page_->owner().tainted = Page::Word::of(5, 0);
  EXPECT_THAT(told(), HasSubstr("xxx"));
}

}  // namespace
}  // namespace cuop::backend::cuda
