#include "cuop/operators/tuned/jit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "cuop/backend/execution.h"
#include "cuop/operators/activations.h"
#include "cuop/operators/products.h"
#include "cuop/operators/tuned/chooser.h"
#include "cuop/operators/tuned/measure.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/tune/permission.h"
#include "tests/current_device_scope.h"
#include "tests/temporary_folder.h"

namespace cuop {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
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
    const bool is_simple = backend::execution_options().kernel.type == KernelType::kSimple;
    fill(target, is_simple ? of_simple : of_tiled);
  };
  return task;
}

const std::vector<Kernel> kBoth(std::begin(kTiledOrSimple), std::end(kTiledOrSimple));

TEST(FastestKernel, AWrongResultCannotWin) {
  const Tensor out = full({1 << 16}, 5.0);
  const auto measured = fastest_kernel(fake_task(out, 1.0F, 2.0F), kBoth, {});
  EXPECT_EQ(kBoth[measured.winner].type, KernelType::kTiled);
  EXPECT_THAT(measured.text(), HasSubstr("simple: another result"));
  EXPECT_EQ(*out.data<float>(), 5.0F);  // measured on outputs of its own
}

TEST(FastestKernel, TheFasterOneWins) {
  Task task = fake_task(zeros({16}), 1.0F, 1.0F);
  task.run = [](const Tensor& target) {
    if (backend::execution_options().kernel.is_default()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    fill(target, 1.0);
  };
  EXPECT_EQ(kBoth[fastest_kernel(task, kBoth, {}).winner].type, KernelType::kSimple);
}

TEST(FastestKernel, HopelessAndFailingCandidatesAreOut) {
  Task task = fake_task(zeros({16}), 1.0F, 1.0F);
  task.cost.flops = 1e12;
  EXPECT_THAT(fastest_kernel(task, kBoth, {}).text(), HasSubstr("simple: not run: too many"));
  task = fake_task(zeros({16}), 1.0F, 1.0F);
  task.run = [](const Tensor& target) {
    if (!backend::execution_options().kernel.is_default()) throw ExecutionError("cannot");
    fill(target, 1.0);
  };
  EXPECT_THAT(fastest_kernel(task, kBoth, {}).text(), HasSubstr("simple: failed: cannot"));
  EXPECT_THAT(fastest_kernel(task, kBoth, {.rounds = 1, .seconds = 0.0}).text(),
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

TEST(ResultsAgree, InEveryDType) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kComplex64, DType::kBool,
                            DType::kInt8, DType::kUInt64}) {
    const Tensor a = ones({2, 3}, dtype), b = ones({3, 2}, dtype);
    const Tensor transposed = b.with_layout({Shape({2, 3}), Strides({1, 2}), b.layout().offset});
    EXPECT_EQ(disagreement(a, transposed), "") << dtype;
    fill(b.with_layout({Shape({1}), Strides({1}), 4}), 0);
    EXPECT_EQ(disagreement(a, transposed), "element 2 is 0, the default's is 1") << dtype;
  }
}

TEST(Jit, TasksWithOtherEffectsAreMeasuredByTheirTrialAndRunOnce) {
  forget_choices();
  JitEngine engine("Fake", {});
  int runs = 0, trials = 0;
  Task task = fake_task(zeros({3}), 2.0F, 2.0F, &runs);
  task.trial = fake_task(task.out, 2.0F, 2.0F, &trials).run;
  engine.warm_up(task);
  EXPECT_EQ(runs, 0);
  EXPECT_GT(trials, 1);
  engine.run(task);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(*task.out.data<float>(), 2.0F);
}

/// Leaves the global configuration as it was; its cache is a directory that goes with the test.
class JitGlobal : public ::testing::Test {
 protected:
  JitGlobal() {
    config_.cache_dir = root_ + "/cache";
    forget_choices();
  }
  ~JitGlobal() override { set_global_jit_config(before_); }
  int64_t count_of(const std::string& ending) const {
    int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(config_.cache_dir)) {
      count += entry.path().native().ends_with(ending) ? 1 : 0;
    }
    return count;
  }

  const GlobalJitConfig before_ = global_jit_config();
  GlobalJitConfig config_ = before_;
  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(JitGlobal, DebugModeFindsAKernelThatDisagrees) {
  config_.enable_debug = true;
  set_global_jit_config(config_);
  JitEngine engine("Fake", {});
  EXPECT_THAT([&] { engine.run(fake_task(zeros({3}), 1.0F, 2.0F)); },
              ThrowsMessage<ExecutionError>(HasSubstr("disagree")));
  EXPECT_NO_THROW(engine.run(fake_task(zeros({4}), 1.0F, 1.0F)));
  EXPECT_EQ(count_of(".log"), 2);  // whether or not the wrapper keeps its choices
  EXPECT_EQ(count_of(".choice.json"), 0);
}

TEST_F(JitGlobal, AChoiceForWantOfTimeIsNotKeptOnDisk) {
  for (const double seconds : {1e-9, 30.0}) {
    forget_choices();
    config_.compilation_timeout = seconds;
    set_global_jit_config(config_);
    JitEngine engine("Fake", {});
    engine.enable_persistent_cache(true);
    engine.run(fake_task(zeros({3}), 1.0F, 1.0F));
    EXPECT_EQ(count_of(".choice.json"), seconds > 1.0 ? 1 : 0);
    EXPECT_EQ(engine.statistics().compilations, 1);
    engine.run(fake_task(zeros({3}), 1.0F, 1.0F));
    EXPECT_EQ(engine.statistics().cache_hits, 1);
  }
}

TEST_F(JitGlobal, BestDoesNotTakeOverWhatWasMeasuredInFewerRounds) {
  set_global_jit_config(config_);
  JitConfig config;
  for (const char* level : {"auto", "best"}) {
    JitEngine engine("Fake", {});
    config.optimization_level = level;
    engine.set_config(config);
    engine.run(fake_task(zeros({3}), 1.0F, 1.0F));
    EXPECT_EQ(engine.statistics().compilations, 1) << level;
  }
}

TEST_F(JitGlobal, ACacheDirectoryThatCannotBeIsRefused) {
  std::ofstream(root_ + "/file") << "text";
  for (const char* below : {"/file", "/file/below"}) {
    config_.cache_dir = root_ + below;
    EXPECT_THAT([&] { set_global_jit_config(config_); },
                ThrowsMessage<CompilationError>(HasSubstr("cache_dir " + config_.cache_dir)));
    Jit<Relu<float>> relu;
    relu.set_persistent_cache_directory(config_.cache_dir);  // off: nothing is made
    EXPECT_THROW(relu.enable_persistent_cache(true), ExecutionError);
    Jit<Relu<float>> other;
    other.enable_persistent_cache(true);
    EXPECT_THROW(other.set_persistent_cache_directory(config_.cache_dir), ExecutionError);
  }
  EXPECT_EQ(global_jit_config().cache_dir, before_.cache_dir);
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
      request.options.most_measuring = 1;
      EXPECT_EQ(choose_kernel(request).source, ChosenKernel::Source::kMade);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

TEST(ChooseKernel, AThreadWhoseTurnDoesNotComeInTimeTakesTheDefault) {
  forget_choices();
  std::atomic<bool> is_measuring = false, may_go_on = false;
  std::thread slow([&] {
    Task task = fake_task(zeros({201}), 1.0F, 1.0F);
    task.run = [&](const Tensor& target) {
      is_measuring = true;
      while (!may_go_on) std::this_thread::yield();
      fill(target, 1.0);
    };
    choose_kernel({.task = &task, .who = "Fake", .candidates = kBoth, .is_measured = true});
  });
  while (!is_measuring) std::this_thread::yield();
  int runs = 0;
  const Task task = fake_task(zeros({202}), 1.0F, 1.0F, &runs);
  ChoiceRequest request{.task = &task, .who = "Fake", .candidates = kBoth, .is_measured = true};
  request.options.limits.seconds = 1e-3;
  request.options.most_measuring = 1;
  EXPECT_TRUE(choose_kernel(request).kernel.is_default());
  EXPECT_EQ(runs, 0);
  may_go_on = true;
  slow.join();
}

/// Thaws the tuner again.
struct Frozen {
  Frozen() { tune::set_frozen(true); }
  ~Frozen() { tune::set_frozen(false); }
};

TEST_F(JitGlobal, FrozenItReadsWhatWasStoredAndMeasuresNothing) {
  set_global_jit_config(config_);
  const auto run = [](const std::vector<int64_t>& shape, int* runs) {
    JitEngine engine("Fake", {});
    engine.enable_persistent_cache(true);
    Task task = fake_task(zeros(Shape(shape)), 1.0F, 1.0F, runs);
    task.run = [=, inner = task.run](const Tensor& target) {
      if (backend::execution_options().kernel.is_default()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      inner(target);
    };
    engine.run(task);
    return std::pair(engine.profile().kernel_type, engine.statistics());
  };
  int runs = 0;
  EXPECT_EQ(run({3}, &runs).first, "simple");
  EXPECT_GT(runs, 2);
  forget_choices();
  const Frozen frozen;
  runs = 0;
  const auto [kernel, statistics] = run({3}, &runs);
  EXPECT_EQ(kernel, "simple");
  EXPECT_EQ(statistics.persistent_cache_hits, 1);
  const auto [other, of_other] = run({4}, &runs);
  EXPECT_EQ(other, "tiled");  // the default
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(of_other.compilations, 0);
  EXPECT_EQ(of_other.cache_misses, 1);
  EXPECT_EQ(count_of(".choice.json"), 1);
  tune::set_frozen(false);
  EXPECT_EQ(run({4}, &runs).first, "simple");  // the default was not remembered
}

TEST_F(JitGlobal, WhatWasMeasuredInMoreRoundsServesThoseWhoAskForFewer) {
  set_global_jit_config(config_);
  JitConfig config;
  for (const char* level : {"best", "auto"}) {
    JitEngine engine("Fake", {});
    config.optimization_level = level;
    engine.set_config(config);
    engine.run(fake_task(zeros({3}), 1.0F, 1.0F));
    EXPECT_EQ(engine.statistics().cache_hits, level == std::string("auto") ? 1 : 0);
  }
}

TEST(Jit, AWrapperSharesTheWeightsOfTheOperatorItWraps) {
  forget_choices();
  Gemm<float> gemm("none", Trans::kTrans, 2.0);
  Jit<Gemm<float>> wrapper(gemm);
  EXPECT_EQ(wrapper.name(), "JITGemmFloat");
  EXPECT_EQ(Jit<Gemm<float>>(static_cast<const Gemm<float>&>(wrapper)).name(), "JITGemmFloat");
  const Tensor x = from_values<float>({1, 2}, {3, 4}), y = zeros({1, 1});
  EXPECT_THROW(wrapper.forward(x, y), ExecutionError);
  EXPECT_EQ(gemm.last_error(), "");  // an error is the one's that made it
  gemm.set_weight(from_values<float>({1, 2}, {10, 100}));
  EXPECT_EQ(*wrapper.forward(x, y).data<float>(), 860.0F);
  wrapper.set_weight(from_values<float>({1, 2}, {1, 0}));
  EXPECT_EQ(*gemm.forward(x, y).data<float>(), 6.0F);
}

TEST(Jit, ATileTakesEffectUnlessSomethingElseExcludesIt) {
  const test::CurrentDeviceScope scope(kCpu);  // a GPU's library chooses its tiles
  forget_choices();
  Jit<Gemm<double>> gemm;
  gemm.set_weight(eye(3, 3, 0, DType::kFloat64));
  JitConfig config;
  config.tile_size = 2;
  gemm.set_jit_config(config);
  const Tensor x = ones({3, 3}, DType::kFloat64);
  gemm.forward(x, zeros({3, 3}, DType::kFloat64));
  EXPECT_EQ(gemm.profile().kernel_type, "tiled/2");
  config.optimization_level = "O0";
  gemm.set_jit_config(config);
  gemm.forward(x, zeros({3, 3}, DType::kFloat64));
  EXPECT_EQ(gemm.profile().kernel_type, "simple");
  EXPECT_THAT(gemm.profile().no_effect, ElementsAre(HasSubstr("tile_size=2: no effect on cpu")));
}

TEST(Jit, WhatDescribesAGpuHasNoEffectOnTheCpuAndIsSaidOnce) {
  const test::CurrentDeviceScope scope(kCpu);
  static std::vector<std::string> told;
  told.clear();
  set_no_effect_output([](const std::string& text) { told.push_back(text); });
  JitConfig config;
  config.num_stages = 4;
  config.enable_memory_coalescing = false;
  Jit<Relu<double>> relu;
  relu.set_jit_config(config);
  Jit<Relu<double>>().set_jit_config(config);
  set_no_effect_output(nullptr);
  EXPECT_EQ(relu.jit_config().num_stages, 4);
  relu.forward(from_values<double>({2}, {-1, 2}), zeros({2}, DType::kFloat64));
  EXPECT_THAT(relu.profile().no_effect,
              ElementsAre(HasSubstr("num_stages=4: no effect on cpu (it counts"),
                          HasSubstr("enable_memory_coalescing=False: no effect on cpu")));
  EXPECT_THAT(told, ElementsAre(HasSubstr("JITReluDouble: num_stages=4: no effect on cpu"),
                                HasSubstr("JITReluDouble: enable_memory_coalescing=False")));
  constexpr Device kGpu{DeviceType::kCuda, 0};
  EXPECT_TRUE(fields_without_effect(config, kGpu, {}).empty());
  EXPECT_TRUE(fields_without_effect(JitConfig{}, kCpu, {}).empty());
}

TEST(Jit, WrapsTheOperatorWithItsConstructorAndSetters) {
  const test::CurrentDeviceScope scope(kCpu);
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
  config.tile_size = -1;
  EXPECT_THAT([&] { Jit<Relu<double>>().set_jit_config(config); },
              ThrowsMessage<CompilationError>(HasSubstr("JITReluDouble: tile_size is -1")));
}

}  // namespace
}  // namespace cuop
