// What plans count of a GPU's memory beside arrays, from figures alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "cuop/backend/cuda/cublaslt.h"
#include "cuop/executor/known_plans.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/tile_plan.h"
#include "cuop/jit/cuda/row_plan.h"
#include "cuop/ops/matmul/product_bytes.h"
#include "cuop/ops/matmul/split_product_internal.h"

namespace cuop::executor {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int kMultiprocessors = 132;

/// A GPU of so much memory.
TileMachine gpu(int64_t memory, bool splits_products = true) {
  TileMachine result;
  result.memory = memory;
  result.upload = result.download = 5e10;
  result.device.flops = 5e13;
  result.device.memory_bandwidth = 4e12;
  result.figures.multiprocessors = kMultiprocessors;
  result.figures.splits_products = splits_products;
  return result;
}

Tiling product(int64_t m, int64_t k, int64_t n, DType dtype = DType::kFloat32) {
  return matmul_tiles().describe({{{m, k}, dtype}, {{k, n}, dtype}});
}

int64_t arrays_of(const Tiling& tiling) { return tiling.input_bytes() + tiling.output_bytes(); }

/// Of all of the result in one tile and one step.
int64_t whole_bytes(Tiling tiling, bool splits_products = true) {
  tiling.figures = gpu(kGiB, splits_products).figures;
  return tile_bytes(tiling, {whole_box(tiling.output.shape), {{0, tiling.summed}}});
}

TEST(DeviceRoom, PartsOfOperandsAreCounted) {
  const Tiling tiling = product(4096, 4096, 4096);
  // 4096 is a whole number of groups: six bytes an element, and an exponent a line.
  const int64_t parts = int64_t{2} * (4096 * 4096 * 6 + 4096 * 4);
  ASSERT_EQ(parts, 2 * kernels::parts_bytes(4096, 4096, 1));
  EXPECT_EQ(whole_bytes(tiling), arrays_of(tiling) + parts);
  EXPECT_EQ(whole_bytes(tiling, false), arrays_of(tiling) + backend::cuda::kGemmWorkspace);
  const TilePlan plan = plan_tiles(tiling, gpu(16 * kGiB));
  EXPECT_TRUE(plan.figures.spare.has_copies);
  EXPECT_EQ(plan.figures.spare.workspace, backend::cuda::kGemmWorkspace);
}

TEST(DeviceRoom, SixteenBitsStaySoBesideFloat32Sums) {
  for (const int64_t n : {2048, 2047}) {
    const Tiling tiling = product(n, n, n, DType::kBFloat16);
    const int64_t wide = (n + 7) / 8 * 8, copies = wide == n ? 0 : wide * wide * (2 + 2 + 4);
    EXPECT_EQ(whole_bytes(tiling),
              tiling.input_bytes() + n * n * 4 + backend::cuda::kGemmWorkspace + copies)
        << n;
  }
}

/// What only saves time is left out where memory is short, and the least memory never has it.
TEST(DeviceRoom, WithLittleMemoryNothingIsSpared) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kFloat64}) {
    const Tiling tiling = product(1000, 900, 1100, dtype);
    const TilePlan none = plan_tiles(tiling, gpu(1));
    EXPECT_FALSE(none.is_feasible);
    const TilePlan least = plan_tiles(tiling, gpu(none.smallest));
    EXPECT_TRUE(least.is_feasible);
    EXPECT_LE(least.memory, none.smallest);
    EXPECT_EQ(least.smallest, none.smallest);
    EXPECT_FALSE(plan_tiles(tiling, gpu(none.smallest - 1)).is_feasible);
    for (int64_t memory = none.smallest; memory < kGiB; memory = memory * 9 + 1) {
      const TilePlan plan = plan_tiles(tiling, gpu(memory));
      EXPECT_TRUE(plan.is_feasible) << memory;
      EXPECT_LE(plan.memory, memory);
      EXPECT_EQ(plan.smallest, none.smallest);
      EXPECT_LE(plan.figures.spare.workspace.value_or(kGiB), memory / 16);
    }
  }
}

/// Tiles for which parts do not pay, or find no room, are multiplied at cuBLASLt's rate.
TEST(DeviceRoom, SlowTilesArePlannedAsSlow) {
  const WorkFigures by_parts = gpu(kGiB).figures;
  WorkFigures sparing = by_parts;
  sparing.spare.has_copies = false;
  const ProductExtents large{4096, 4096, 4096}, thin{280, 16384, 16384};
  EXPECT_NEAR(product_pace(large, DType::kFloat32, by_parts), 0.95, 0.04);
  const double slow = kernels::library_pace(kMultiprocessors);
  EXPECT_GT(slow, 0.3);
  EXPECT_LT(slow, 0.6);
  EXPECT_EQ(product_pace(thin, DType::kFloat32, by_parts), slow);
  EXPECT_EQ(product_pace(large, DType::kFloat32, sparing), slow);
  EXPECT_EQ(product_pace(thin, DType::kFloat64, sparing), 1);
  EXPECT_EQ(product_pace(thin, DType::kFloat32, gpu(kGiB, false).figures), 1);
  EXPECT_EQ(product_pace(large, DType::kFloat32, {}), 1);
}

/// Of 13 x 64 tiles the last 40 of a turn keep 40 of 132 multiprocessors at work.
TEST(DeviceRoom, ProductsThatFillTheirLastTurnArePlannedAsFaster) {
  const auto pace = [](int64_t rows) {
    return product_pace({rows, 8192, 16384}, DType::kFloat32, gpu(kGiB).figures);
  };
  EXPECT_GT(pace(1490), 1.04 * pace(1639));
  EXPECT_GT(pace(2048), 1.05 * pace(2049));
  EXPECT_LE(pace(2112), 1);
}

/// A resident operand whose parts have no room would bring the fewest bytes, at half the speed.
TEST(DeviceRoom, TilesAreChosenForPartsThatPay) {
  const Tiling tiling = product(32768, 16384, 16384);
  for (const double upload : {1e10, 2e10, 4e10, 5.5e10}) {
    for (const int64_t memory : {2 * kGiB, 3 * kGiB, 6 * kGiB}) {
      TileMachine machine = gpu(memory);
      machine.device.flops = 1.15e14;
      machine.upload = machine.download = upload;
      machine.duplex = 0.8;
      const TilePlan plan = plan_tiles(tiling, machine);
      const Tile tile = tiles_of(tiling, plan, 0)[0];
      const double pace = tiling.pace(tile.output, tile.steps[0], plan.figures);
      EXPECT_GE(plan.compute, tiling.flops / machine.device.flops / pace * 0.999)
          << upload << ", " << memory;
      EXPECT_TRUE(pace > 0.85 || upload == 1e10) << upload << ", " << memory << plan.explain();
    }
  }
}

TEST(DeviceRoom, FiguresOfTheDeviceTellPlansApart) {
  const Tiling tiling = product(2048, 2048, 2048);
  const int64_t memory = 16 * kGiB;
  TileMachine host = gpu(memory);
  host.figures = {};
  const TilePlan by_parts = plan_once("figures", tiling, gpu(memory), 1);
  EXPECT_GT(by_parts.memory, plan_once("figures", tiling, gpu(memory, false), 1).memory);
  EXPECT_EQ(plan_once("figures", tiling, host, 1).memory, arrays_of(tiling));
}

TEST(DeviceRoom, ConvolutionsByPartsAreCounted) {
  const std::vector<Header> inputs{{{64, 64, 112, 112}, DType::kFloat32},
                                   {{128, 64, 3, 3}, DType::kFloat32}};
  ConvOptions options;
  options.padding = {1, 1};
  const Tiling tiling = conv_tiles(options).describe(inputs);
  const TilePlan by_parts = plan_tiles(tiling, gpu(100 * kGiB));
  const TilePlan library = plan_tiles(tiling, gpu(100 * kGiB, false));
  // cuDNN may have a gigabyte; parts of this x take more.
  EXPECT_EQ(library.figures.spare.workspace, kGiB);
  EXPECT_GE(library.memory, arrays_of(tiling) + kGiB);
  EXPECT_GT(by_parts.memory, arrays_of(tiling) + element_count(inputs[0].shape) * 6);
}

/// Of every shape in which a kernel may share rows among blocks.
TEST(DeviceRoom, PartialResultsOfSharedRowsAreBounded) {
  std::mt19937 generator(1);
  const auto pick = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(generator);
  };
  int shared = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const bool is_column = pick(2) == 1;
    const int64_t width = int64_t{1} << (pick(5) - 1);
    const int64_t rows = pick(int64_t{1} << pick(18)), steps = pick(int64_t{1} << pick(24));
    const int64_t kept = is_column ? rows * width : rows;
    const int64_t elements = is_column ? steps : steps * width;
    const int team = jit::team_of_row(rows, steps, is_column, pick(1000));
    const int64_t pieces = jit::share_rows(rows, steps, team, kMultiprocessors).pieces;
    shared += pieces > 1 ? 1 : 0;
    const int64_t state = is_column ? std::max<int64_t>(16, 8 * width) : 16;
    ASSERT_GE(jit::most_partial_bytes(kept, elements, 8, kMultiprocessors),
              pieces > 1 ? rows * pieces * state : 0)
        << rows << " rows of " << steps << " steps, width " << width
        << (is_column ? " columns" : "");
  }
  EXPECT_GT(shared, 1000);
}

TEST(DeviceRoom, LongerLinesOfLargePrimesAreCounted) {
  const auto memory_of = [](int64_t n, bool is_gpu) {
    const Tiling tiling = fft_tiles({.kind = dist::FftKind::kFft, .dim = 1})
                              .describe({{{100, n}, DType::kComplex64}});
    TileMachine machine = gpu(kGiB);
    if (!is_gpu) machine.figures = {};
    return plan_tiles(tiling, machine).memory;
  };
  constexpr int64_t kSmooth = 1008, kPrime = 1009;
  EXPECT_EQ(memory_of(kSmooth, true), memory_of(kSmooth, false));
  EXPECT_EQ(memory_of(kPrime, true) - memory_of(kPrime, false), 7 * 100 * kPrime * 8);
}

}  // namespace
}  // namespace cuop::executor
