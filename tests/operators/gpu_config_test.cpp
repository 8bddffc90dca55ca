// What a JitConfig asks of the kernels of a GPU, and what none of them can give: no GPU is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/operators/tuned/config_check.h"
#include "cuop/operators/tuned/demands.h"
#include "cuop/operators/tuned/product_kernels.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;

constexpr Device kSomeGpu{DeviceType::kCuda, 0};
constexpr KernelTraits kRow{false, GpuKernels::kOwn, DType::kFloat32};
constexpr KernelTraits kProduct{true, GpuKernels::kCublasLt, DType::kFloat32};
constexpr KernelTraits kDoubleProduct{true, GpuKernels::kCublasLt, DType::kFloat64};
constexpr KernelTraits kConvolution{false, GpuKernels::kCudnn, DType::kFloat32};
constexpr KernelTraits kDoubleConvolution{false, GpuKernels::kCudnn, DType::kFloat64};

/// The error of a configuration whose fields `change` sets, "" for none.
template <class Change>
std::string refusal_on_gpu(const KernelTraits& traits, Change&& change) {
  JitConfig config;
  change(config);
  try {
    check_jit_config("op", config, kSomeGpu, traits);
  } catch (const CompilationError& error) {
    return error.what();
  }
  return "";
}

TEST(JitConfigOnAGpu, FieldsThatTakeEffectAreAllowed) {
  for (const KernelTraits& traits :
       {kRow, kProduct, kDoubleProduct, kConvolution, kDoubleConvolution}) {
    EXPECT_EQ(refusal_on_gpu(traits, [](JitConfig&) {}), "");
    for (const char* level : {"O1", "O2", "O3", "auto", "fast", "best"}) {
      EXPECT_EQ(refusal_on_gpu(traits, [&](JitConfig& c) { c.optimization_level = level; }), "");
    }
  }
  EXPECT_EQ(refusal_on_gpu(kRow, [](JitConfig& c) { c.kernel_type = KernelType::kTiled; }), "");
  for (const KernelTraits& traits : {kRow, kConvolution, kDoubleConvolution}) {
    EXPECT_EQ(refusal_on_gpu(traits,
                             [](JitConfig& c) {
                               c.kernel_type = KernelType::kSimple;
                               c.max_registers = 32;
                               c.block_size = 512;
                               c.enable_loop_unroll = false;
                               c.enable_tensor_core = false;
                             }),
              "");
    EXPECT_EQ(refusal_on_gpu(traits, [](JitConfig& c) { c.optimization_level = "O0"; }), "");
  }
  for (const KernelTraits& traits : {kRow, kProduct, kDoubleProduct, kConvolution}) {
    EXPECT_EQ(refusal_on_gpu(traits, [](JitConfig& c) { c.enable_tensor_core = false; }), "");
  }
}

/// Every field of a product's configuration is met by a kernel of our own.
TEST(JitConfigOnAGpu, ProductsHonourEveryField) {
  using C = JitConfig;
  const std::function<void(C&)> changes[] = {
      [](C& c) { c.kernel_type = KernelType::kSimple, c.tile_size = 16; },
      [](C& c) { c.kernel_type = KernelType::kTiled, c.tile_size = 32, c.block_size = 256; },
      [](C& c) { c.kernel_type = KernelType::kTensorCore, c.tile_size = 64; },
      [](C& c) { c.optimization_level = "O0", c.tile_size = 8; },
      [](C& c) { c.block_size = 128; },
      [](C& c) { c.num_stages = 4; },
      [](C& c) { c.enable_tma = true; },
      [](C& c) { c.max_registers = 255; },
      [](C& c) { c.enable_loop_unroll = false; },
      [](C& c) { c.enable_shared_memory_opt = false; },
      [](C& c) { c.enable_memory_coalescing = false; }};
  for (const KernelTraits& traits : {kProduct, kDoubleProduct}) {
    for (const auto& change : changes) {
      EXPECT_EQ(refusal_on_gpu(traits, change), "");
      C config;
      change(config);
      // The library's kernels cannot be told any of this.
      for (const Kernel& kernel : product_kernels(config, traits.dtype, 100, {})) {
        EXPECT_FALSE(kernel.is_default());
      }
    }
    const std::vector<Kernel> open = product_kernels({}, traits.dtype, 100, {});
    EXPECT_GE(open.size(), 5U);
    EXPECT_TRUE(open.front().is_default());
  }
  const auto names = [](const C& config, int64_t edge) {
    std::vector<std::string> all;
    for (const Kernel& kernel : product_kernels(config, DType::kFloat32, edge, {})) {
      all.push_back(name(kernel));
    }
    return all;
  };
  using ::testing::ElementsAre;
  C config;
  config.enable_tensor_core = false;
  EXPECT_THAT(names(config, 100),
              ElementsAre("tiled", "tiled/64/256/3", "tiled/128/256/3", "simple/16/256/1"));
  config.enable_tma = true;
  config.num_stages = 2;
  EXPECT_THAT(names(config, 5), ElementsAre("tiled/32/64/2+bulk"));
  config = {};
  config.enable_shared_memory_opt = config.enable_memory_coalescing = false;
  EXPECT_THAT(names(config, 5000), ElementsAre("simple/16/256/1-shared-coalesced"));
  config = {};
  config.kernel_type = KernelType::kTensorCore;
  EXPECT_THAT(names(config, 5000), ElementsAre("tensor_core/128/256/3", "tensor_core/64/128/3"));
}

TEST(JitConfigOnAGpu, ProductsThatNoKernelCanComputeAreRefusedWithTheReason) {
  using C = JitConfig;
  const auto expect = [](void (*change)(C&), const char* why) {
    EXPECT_THAT(refusal_on_gpu(kProduct, change), HasSubstr(why));
  };
  expect([](C& c) { c.tile_size = 64, c.max_registers = 32; }, "op: a 64-wide tile on 256 threads");
  expect([](C& c) { c.kernel_type = KernelType::kTiled, c.max_registers = 32, c.block_size = 64; },
         "op: on cuda:0: a 64-wide 'tiled' tile of float32 on 64 threads needs about");
  expect(
      [](C& c) { c.tile_size = 48; },
      "op: on cuda:0: tile_size is 48, allowed for a 'tiled' product on a GPU are powers of two");
  expect([](C& c) { c.kernel_type = KernelType::kTiled, c.block_size = 96; }, "block_size is 96");
  for (const KernelType type :
       {KernelType::kAuto, KernelType::kSimple, KernelType::kTiled, KernelType::kTensorCore}) {
    for (const int64_t threads : {1, 2, 3, 16, 31, 33, 1000}) {
      EXPECT_THAT(
          refusal_on_gpu(kProduct, [&](C& c) { c.kernel_type = type, c.block_size = threads; }),
          HasSubstr(cat("block_size is ", threads, ", allowed for a product on a GPU are powers")));
    }
  }
  expect([](C& c) { c.kernel_type = KernelType::kSimple, c.num_stages = 3; }, "num_stages is 3");
  expect([](C& c) { c.kernel_type = KernelType::kSimple, c.enable_tma = true; },
         "a 'simple' product copies element by element");
  expect([](C& c) { c.kernel_type = KernelType::kTiled, c.enable_shared_memory_opt = false; },
         "enable_shared_memory_opt is False, but a 'tiled' product");
  expect([](C& c) { c.max_registers = 16; }, "gives a thread at least 24");
  expect([](C& c) { c.kernel_type = KernelType::kTensorCore, c.optimization_level = "O0"; },
         "'O0' is the simple kernel, kernel_type asks for 'tensor_core'");
  // Of older GPUs.
  const auto on = [](int capability, const C& config) -> std::string {
    try {
      check_jit_config("op", config, kSomeGpu, kProduct,
                       {.capability = capability, .shared_bytes = 99 << 10});
    } catch (const CompilationError& error) {
      return error.what();
    }
    return "";
  };
  C config;
  EXPECT_EQ(on(75, config), "");
  config.enable_tma = true;
  EXPECT_THAT(on(80, config), HasSubstr("enable_tma needs a GPU with bulk copies (compute "
                                        "capability 9.0 or later); this one has 8.0"));
  config = {};
  config.kernel_type = KernelType::kTiled;
  EXPECT_EQ(on(80, config), "");
  EXPECT_THAT(on(75, config),
              HasSubstr("a 'tiled' product copies ahead of its work, which needs a "
                        "GPU of compute capability 8.0 or later; this one has 7.5"));
  config.num_stages = 8;
  config.tile_size = 128;
  EXPECT_THAT(on(80, config),
              HasSubstr("8 stages of 128-wide panels of float32 need up to 163840"));
}

TEST(JitConfigOnAGpu, WhatNoKernelHasIsRefusedWithTheReason) {
  const auto expect = [](const KernelTraits& traits, void (*change)(JitConfig&), const char* why) {
    EXPECT_THAT(refusal_on_gpu(traits, change), HasSubstr(why));
  };
  using C = JitConfig;
  const auto block = [](C& c) { c.block_size = 256; };
  const auto stages = [](C& c) { c.num_stages = 3; };
  const auto tile = [](C& c) { c.tile_size = 64; };
  const auto tma = [](C& c) { c.enable_tma = true; };
  const auto registers = [](C& c) { c.max_registers = 64; };
  const auto shared = [](C& c) { c.enable_shared_memory_opt = false; };
  const auto coalesced = [](C& c) { c.enable_memory_coalescing = false; };
  const auto matrix_units = [](C& c) { c.kernel_type = KernelType::kTensorCore; };
  const auto tiled = [](C& c) { c.kernel_type = KernelType::kTiled; };
  const auto contradiction = [](C& c) {
    c.kernel_type = KernelType::kTensorCore;
    c.enable_tensor_core = false;
  };
  expect(kDoubleProduct, contradiction, "contradict each other");
  expect(kConvolution, block, "block_size is 256, but on cuda:0 cuDNN chooses the threads");
  expect(kConvolution, registers, "max_registers is 64: on cuda:0 the kernels are cuDNN's");
  expect(kConvolution, tiled, "kernel_type is 'tiled', but on cuda:0 a convolution is cuDNN's");
  expect(kConvolution, matrix_units, "kernel_type is 'tensor_core', but on cuda:0 a convolution");
  expect(
      kDoubleConvolution, [](C& c) { c.enable_tensor_core = false; },
      "cuDNN may take matrix units for float64: kernel_type 'simple' does not");
  expect(
      kRow, [](C& c) { c.block_size = 200; },
      "block_size is 200, but the operator's own kernels for cuda:0 have blocks of 128, 256, 512");
  constexpr KernelTraits kMatrixVector{true, GpuKernels::kOwn, DType::kFloat32, false};
  expect(kMatrixVector, block, "share rows among blocks of 256 threads");
  expect(kRow, stages, "num_stages is 3, but the operator's own kernels for cuda:0 have no copy");
  expect(kRow, tma, "do not use the tensor memory accelerator");
  expect(kRow, shared, "enable_shared_memory_opt is False, but");
  expect(kRow, coalesced, "enable_memory_coalescing is False, but");
  expect(kRow, matrix_units, "multiply no matrices");
  expect(
      kRow, [](C& c) { c.max_registers = 16; }, "gives a thread at least 24");
  expect(kRow, tile, "for cuda:0 have no tiles: leave it 0");
  expect({true, GpuKernels::kOwn, DType::kFloat32}, tile, "for cuda:0 have no tiles: leave it 0");
}

TEST(JitConfigOnAGpu, DemandsTellChoicesApart) {
  const auto demands_of = [](const JitConfig& asked, Device device) {
    const backend::ExecutionScope scope(with_demands(asked, device));
    return demands_text();
  };
  JitConfig config;
  EXPECT_EQ(demands_of(config, kSomeGpu), "");
  config.enable_tensor_core = false;
  config.max_registers = 32;
  EXPECT_EQ(demands_of(config, kSomeGpu), " registers 32 level 3 without matrix units");
  EXPECT_EQ(demands_of(config, kCpu), "");
  config.kernel_type = KernelType::kSimple;
  EXPECT_EQ(demands_of(config, kSomeGpu),
            " registers 32 level 0 not unrolled without matrix units");
}

}  // namespace
}  // namespace cuop
