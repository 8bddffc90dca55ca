#include "cuop/operators/jit/jit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include "cuop/operators/activations.h"
#include "cuop/operators/products.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A task whose kernels write `values[kernel]` into their output and take no time worth measuring.
Task fake_task(const Tensor& out, float of_simple, float of_tiled, int* runs = nullptr) {
  Task task;
  task.sizes = {out.size()};
  task.cost = {1.0, out.nbytes()};
  task.kernels = kTiledOrSimple;
  task.out = out;
  task.run = [=](const Tensor& target) {
    if (runs != nullptr) ++*runs;
    const bool is_simple = backend::asked_kernel().type == KernelType::kSimple;
    fill(target, is_simple ? of_simple : of_tiled);
  };
  return task;
}

const std::vector<Kernel> kBoth(std::begin(kTiledOrSimple), std::end(kTiledOrSimple));

TEST(FastestKernel, AWrongResultCannotWin) {
  const Tensor out = full({1 << 16}, 5.0);
  const Measured measured = fastest_kernel(fake_task(out, 1.0F, 2.0F), kBoth, {});
  EXPECT_EQ(measured.kernel.type, KernelType::kTiled);
  EXPECT_THAT(measured.text, HasSubstr("simple: another result"));
  EXPECT_EQ(*out.data<float>(), 5.0F);  // measured on outputs of its own
}

TEST(FastestKernel, TheFasterOneWins) {
  Task task = fake_task(zeros({16}), 1.0F, 1.0F);
  task.run = [](const Tensor& target) {
    if (backend::asked_kernel().is_default()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    fill(target, 1.0);
  };
  EXPECT_EQ(fastest_kernel(task, kBoth, {}).kernel.type, KernelType::kSimple);
}

TEST(FastestKernel, HopelessAndFailingCandidatesAreOut) {
  Task task = fake_task(zeros({16}), 1.0F, 1.0F);
  task.cost.flops = 1e12;
  EXPECT_THAT(fastest_kernel(task, kBoth, {}).text, HasSubstr("simple: not run: too many"));
  task = fake_task(zeros({16}), 1.0F, 1.0F);
  task.run = [](const Tensor& target) {
    if (!backend::asked_kernel().is_default()) throw ExecutionError("cannot");
    fill(target, 1.0);
  };
  EXPECT_THAT(fastest_kernel(task, kBoth, {}).text, HasSubstr("simple: cannot"));
  EXPECT_THAT(fastest_kernel(task, kBoth, {.rounds = 1, .seconds = 0.0}).text,
              HasSubstr("not run: out of time"));
}

TEST(ResultsAgree, UpToRoundingAndWithNaN) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor a = from_values<float>({3}, {1.0F, kNaN, kInf});
  EXPECT_TRUE(results_agree(a, from_values<float>({3}, {1.0001F, kNaN, kInf})));
  EXPECT_FALSE(results_agree(a, from_values<float>({3}, {1.1F, kNaN, kInf})));
  EXPECT_FALSE(results_agree(a, from_values<float>({3}, {1.0F, 0.0F, kInf})));
  EXPECT_FALSE(results_agree(a, from_values<float>({3}, {1.0F, kNaN, -kInf})));
}

TEST(Jit, TasksThatChangeMoreThanTheirOutputRunOnceAndUnmeasured) {
  forget_choices();
  JitEngine engine("Fake", DType::kFloat32, false);
  int runs = 0;
  Task task = fake_task(zeros({3}), 1.0F, 2.0F, &runs);
  task.is_repeatable = false;
  engine.run(task);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(*task.out.data<float>(), 2.0F);
}

TEST(Jit, DebugModeFindsAKernelThatDisagrees) {
  const GlobalJitConfig before = global_jit_config();
  GlobalJitConfig config = before;
  config.enable_debug = true;
  set_global_jit_config(config);
  forget_choices();
  JitEngine engine("Fake", DType::kFloat32, false);
  EXPECT_THAT([&] { engine.run(fake_task(zeros({3}), 1.0F, 2.0F)); },
              ThrowsMessage<ExecutionError>(HasSubstr("disagree")));
  EXPECT_NO_THROW(engine.run(fake_task(zeros({4}), 1.0F, 1.0F)));
  set_global_jit_config(before);
}

TEST(ChooseKernel, NoMoreThreadsMeasureAtOnceThanAllowed) {
  forget_choices();
  std::atomic<int> inside = 0, most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Task task = fake_task(zeros({100 + t}), 1.0F, 1.0F);
      task.run = [&](const Tensor& target) {
        most = std::max<int>(most, ++inside);
        fill(target, 1.0);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --inside;
      };
      ChoiceRequest request;
      request.task = &task;
      request.who = "Fake";
      request.candidates = kBoth;
      request.is_measured = true;
      request.most_makers = 1;
      EXPECT_EQ(choose_kernel(request).source, ChosenKernel::Source::kMade);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

TEST(Jit, WrapsTheOperatorWithItsConstructorAndSetters) {
  forget_choices();
  Jit<Gemm<float>> gemm(false, true);
  EXPECT_EQ(gemm.name(), "JITGemmFloat");
  gemm.set_weight(eye(2, 2));
  const Tensor c = zeros({1, 2});
  gemm.forward(from_values<float>({1, 2}, {3, 4}), c);
  EXPECT_EQ(c.data<float>()[1], 4.0F);
  EXPECT_EQ(gemm.statistics().compilations, 1);
  EXPECT_GT(gemm.profile().gflops, 0.0);
  JitConfig config;
  config.tile_size = 16;
  EXPECT_NO_THROW(gemm.set_jit_config(config));
  EXPECT_THAT([&] { Jit<Relu<double>>().set_jit_config(config); },
              ThrowsMessage<CompilationError>(HasSubstr("JITReluDouble: tile_size is 16")));
}

TEST(JitConfig, OnTheGpuItsFieldsAreAllowedWithinReason) {
  const Device gpu{DeviceType::kCuda, 0};
  JitConfig config;
  config.kernel_type = KernelType::kTensorCore;
  config.tile_size = 64;
  config.block_size = 256;
  config.num_stages = 3;
  config.max_registers = 128;
  EXPECT_NO_THROW(check_jit_config("op", config, gpu, true));
  config.max_registers = 32;
  EXPECT_THAT([&] { check_jit_config("op", config, gpu, true); },
              ThrowsMessage<CompilationError>(HasSubstr("needs about 40 registers")));
}

}  // namespace
}  // namespace cuop
