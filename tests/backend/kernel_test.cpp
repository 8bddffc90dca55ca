#include <gtest/gtest.h>

#include <thread>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/slot.h"
#include "tests/error_of.h"

namespace cuop::backend {
namespace {

TEST(Kernel, NamesGoBothWays) {
  EXPECT_EQ(name(Kernel{KernelType::kTiled, 64, 256, 3}), "tiled/64/256/3");
  EXPECT_EQ(name(Kernel{KernelType::kTiled, 64, 0, 2, true, false, false}),
            "tiled/64/0/2+bulk-shared-coalesced");
  for (const Kernel& kernel :
       {Kernel{KernelType::kSimple}, Kernel{KernelType::kTiled}, Kernel{KernelType::kTiled, 48},
        Kernel{KernelType::kTensorCore, 64, 128, 3}, Kernel{KernelType::kTiled, 64, 0, 2, true},
        Kernel{KernelType::kSimple, 16, 256, 1, false, false, false},
        Kernel{.shape = {.threads = 128}}, Kernel{.tile = 8, .shape = {.team = 32, .each = 4}},
        Kernel{.type = KernelType::kSimple, .shape = {256, 8, 32, 2}}}) {
    Kernel parsed{KernelType::kAuto, 7};
    EXPECT_TRUE(parse_kernel(name(kernel), parsed));
    EXPECT_EQ(parsed, kernel);
  }
  Kernel untouched;
  for (const char* text :
       {"", "fast", "tiled/", "tiled/0", "tiled/x", "tiled/8x", "/8", "tiled/8/0", "tiled/8/1/1/1",
        "tiled+", "tiled-shared+bulk", "tiled/-8", "tiled/block=", "tiled/block=0", "tiled/block=x",
        "tiled/speed=3", "tiled/team=4/block=128", "tiled/each=4/", "tiled/team=4/8"}) {
    EXPECT_FALSE(parse_kernel(text, untouched)) << text;
  }
  EXPECT_TRUE(untouched.is_default());
  EXPECT_EQ(name(Kernel{.shape = {256, 8, 32, 2}}), "tiled/block=256/access=8/team=32/each=2");
  EXPECT_EQ(parse_kernel_type("tensor_core"), KernelType::kTensorCore);
  EXPECT_THROW(parse_kernel_type("fast"), ExecutionError);
}

TEST(Kernel, AScopeAsksForItsThreadOnly) {
  EXPECT_TRUE(execution_options().kernel.is_default());
  {
    const ExecutionScope scope(with_kernel({KernelType::kTiled, 8}));
    const ExecutionScope inner(with_kernel({KernelType::kSimple}));
    EXPECT_EQ(execution_options().kernel.type, KernelType::kSimple);
    EXPECT_EQ(thread_count(), 1);
    EXPECT_EQ(isa::current(), isa::Level::kBaseline);
    std::thread([] { EXPECT_TRUE(execution_options().kernel.is_default()); }).join();
  }
  EXPECT_TRUE(execution_options().kernel.is_default());
}

TEST(Slot, RunsTheKernelOnRequestWhenTheThreadAsksForAnother) {
  constexpr Slot<int(int)> slot{"op", [](int x) { return x; }, nullptr, [](int x) { return -x; }};
  constexpr Slot<int(int)> without{"op", [](int x) { return x; }};
  EXPECT_EQ(slot(kCpu, 3), 3);
  const ExecutionScope scope(with_kernel({KernelType::kSimple}));
  EXPECT_EQ(slot(kCpu, 3), -3);
  EXPECT_EQ(without(kCpu, 3), 3);
}

TEST(Slot, ADeviceWithoutAKernelIsSaidWithWhatThereIs) {
  constexpr Slot<int(int)> slot{"hum", [](int x) { return x; }};
  const Device gpu{DeviceType::kCuda, 1};
  EXPECT_FALSE(slot.supports(gpu));
  EXPECT_EQ(test::error_of<NotImplementedError>([&] { slot(gpu, 3); }),
            "hum: no kernel for cuda:1; there is one for cpu");
}

}  // namespace
}  // namespace cuop::backend
