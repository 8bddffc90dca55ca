#include "cuop/executor/tile_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "cuop/core/text.h"
#include "cuop/executor/known_plans.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/sweeps.h"

namespace cuop::executor {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

TileMachine machine(int devices, int64_t memory) {
  TileMachine result;
  result.devices = devices;
  result.memory = memory;
  result.upload = 5e10;
  result.download = 5e10;
  result.device.flops = 5e13;
  result.device.memory_bandwidth = 4e12;
  return result;
}

Tiling matmul(int64_t m, int64_t k, int64_t n) {
  return matmul_tiles().describe({{{m, k}, DType::kFloat32}, {{k, n}, DType::kFloat32}});
}

Tiling sum(const Shape& shape, std::vector<int64_t> axes) {
  return reduce_tiles({ReduceKind::kSum, std::move(axes)}).describe({{shape, DType::kFloat32}});
}

/// Elements of the output that the tiles of all devices make, counted once each; every step range
/// must be covered once.
void expect_partition(const Tiling& tiling, const TilePlan& plan) {
  const Shape& shape = tiling.output.shape;
  std::vector<int> made(static_cast<size_t>(element_count(shape)), 0);
  std::vector<int64_t> summed(made.size(), 0);
  for (int device = 0; device < plan.devices(); ++device) {
    for (const Tile& tile : tiles_of(tiling, plan, device)) {
      int64_t length = 0, next = tile.steps[0].low;
      for (const Interval& step : tile.steps) {
        EXPECT_EQ(step.low, next);
        EXPECT_GT(step.length(), 0);
        next = step.high;
        length += step.length();
      }
      EXPECT_LE(tile_bytes(tiling, tile), plan.memory);
      for (int64_t i = 0; i < tile.output.size(); ++i) {
        int64_t rest = i, place = 0, stride = 1;
        for (int dim = shape.ndim() - 1; dim >= 0; --dim) {
          const int64_t extent = tile.output.interval(dim).length();
          place += (tile.output.low[dim] + rest % extent) * stride;
          rest /= extent;
          stride *= shape[dim];
        }
        ++made[static_cast<size_t>(place)];
        summed[static_cast<size_t>(place)] += length;
      }
    }
  }
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(summed[i], std::max<int64_t>(1, tiling.summed)) << plan.to_string();
    EXPECT_EQ(made[i], plan.is_by_steps ? plan.busy : 1);
  }
}

TEST(TilePlan, RandomProblemsFallIntoTilesThatFit) {
  std::mt19937 random(1);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 60; ++i) {
    const Tiling tiling = i % 3 == 0 ? sum({pick(1, 40), pick(1, 40), pick(1, 9)}, {i % 2})
                                     : matmul(pick(1, 50), pick(1, 50), pick(1, 50));
    const auto devices = static_cast<int>(pick(1, 8));
    const TilePlan plan = plan_tiles(tiling, machine(devices, pick(100, 9000)));
    if (!plan.is_feasible) {
      EXPECT_GT(plan.smallest, plan.limit);
      EXPECT_TRUE(plan_tiles(tiling, machine(devices, plan.smallest)).is_feasible);
      continue;
    }
    EXPECT_LE(plan.memory, plan.limit);
    EXPECT_LE(plan.smallest, plan.limit);
    EXPECT_GE(plan.seconds, plan.floor);
    expect_partition(tiling, plan);
  }
}

/// Of the rows of a matrix, which lie behind each other where they are whole.
double stretch_seconds(const Box& box, const Shape& matrix) {
  const bool is_whole = box.interval(1).length() == matrix[1];
  return 2e-9 * static_cast<double>(is_whole ? 1 : box.interval(0).length());
}

/// Seconds of a device's tiles: while one works the inputs of the next come, where they are not
/// there yet, and the result of the last goes.
double pipelined(const Tiling& tiling, const TilePlan& plan, const TileMachine& machine) {
  double uploaded = 0, worked = 0, worked_before = 0, downloaded = 0;
  std::vector<Box> there(tiling.inputs.size());
  for (const Tile& tile : tiles_of(tiling, plan, 0)) {
    for (const Interval& step : tile.steps) {
      uploaded = std::max(uploaded, worked_before);
      for (size_t i = 0; i < there.size(); ++i) {
        const Box needed = tiling.needed(i, tile.output, step);
        if (needed == there[i]) continue;
        const double bytes = static_cast<double>(needed.size()) * 4;
        const int readers = machine.between > 0 ? plan.reader(tiling, 0, i).count : 1;
        uploaded += stretch_seconds(needed, tiling.inputs[i].shape);
        uploaded += bytes / readers / machine.upload;
        if (readers > 1) uploaded += bytes * (readers - 1) / readers / machine.between;
        there[i] = needed;
      }
      const double flops = 2.0 * static_cast<double>(tile.output.size() * step.length());
      worked_before =
          std::exchange(worked, std::max(worked, uploaded) + flops / machine.device.flops);
    }
    downloaded = std::max(downloaded, worked) + stretch_seconds(tile.output, tiling.output.shape) +
                 static_cast<double>(tile.output.size()) * 4 / machine.download;
  }
  return downloaded;
}

TEST(TilePlan, TheTimeIsThatOfAPipelineOverTheTiles) {
  std::mt19937 random(3);
  const auto pick = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  };
  for (int i = 0; i < 60; ++i) {
    const auto size = [&] { return static_cast<int64_t>(pick(2000, 40000)); };
    const Tiling tiling = matmul(size(), size(), size());
    TileMachine host = machine(1 + i % 3, static_cast<int64_t>(pick(1e8, 3e10)));
    host.upload = host.download = pick(5e9, 1e11);
    host.between = 3.5e11;
    host.duplex = 1;
    const TilePlan plan = plan_tiles(tiling, host);
    const double tiles = static_cast<double>(plan.tiles() * plan.steps);
    const double expected = pipelined(tiling, plan, host) + tiles * 1.5e-4;
    EXPECT_GT(plan.seconds, 0.96 * expected) << plan.explain();
    EXPECT_LT(plan.seconds, 1.1 * expected) << plan.explain();
  }
}

TEST(TilePlan, CandidatesAreAllThatWereWeighed) {
  const TilePlan plan = plan_tiles(matmul(600, 500, 700), machine(4, 4 * kMiB));
  std::vector<std::string> strategies;
  for (const TileCandidate& candidate : plan.candidates) {
    strategies.push_back(candidate.strategy);
    EXPECT_GE(candidate.smallest, plan.smallest);
    EXPECT_EQ(candidate.is_feasible, candidate.smallest <= plan.limit);
    if (candidate.is_feasible) {
      EXPECT_LE(plan.seconds, candidate.seconds);
    }
  }
  EXPECT_THAT(strategies, ::testing::ElementsAre("one", "dim 1", "dim 0", "grid", "steps"));
  EXPECT_EQ(plan.detail, "(dim 1 in 2, dim 0 in 2)");
  EXPECT_THAT(plan.explain(), HasSubstr("* grid (dim 1 in 2, dim 0 in 2): "));
  EXPECT_THAT(plan.to_json(), HasSubstr("\"feasible\":true"));
  const TilePlan none = plan_tiles(matmul(600, 500, 700), machine(4, 8));
  EXPECT_THAT(none.explain(), HasSubstr("does not fit, needed are "));
  EXPECT_THAT(none.to_json(), HasSubstr("\"feasible\":false"));
}

TEST(TilePlan, CountsBeyond64BitsAreTheLargestNumber) {
  const int64_t n = 4'000'000;  // the finest cuts are n^3 = 6.4e19 tiles
  const TilePlan plan = plan_tiles(matmul(n, n, n), machine(2, kMiB));
  EXPECT_TRUE(plan.is_feasible);
  EXPECT_GT(plan.tiles(), 0);
  EXPECT_GT(plan.uploaded, n * n * 8);
  const TilePlan none = plan_tiles(matmul(n, n, n), machine(2, 8));
  EXPECT_FALSE(none.is_feasible);
  EXPECT_GT(none.seconds, plan.seconds);
}

TEST(TilePlan, EachByteComesOnceWhereMemoryAllows) {
  const Tiling tiling = matmul(4096, 4096, 4096);
  const TilePlan plan = plan_tiles(tiling, machine(1, 400 * kMiB));
  EXPECT_EQ(plan.uploaded, tiling.input_bytes()) << plan.to_string();
  EXPECT_GT(plan.tiles() * plan.steps, 1);  // so that copies hide behind arithmetic
}

TEST(TilePlan, TheOperandThatFitsStaysOnTheDevice) {
  // B is small: A comes once, in rows, and B once.
  const Tiling tiling = matmul(1 << 16, 1024, 1024);
  const TilePlan plan = plan_tiles(tiling, machine(1, 32 * kMiB));
  EXPECT_LT(plan.uploaded, tiling.input_bytes() + kMiB) << plan.to_string();
  EXPECT_EQ(plan.cuts[1], 1);
  EXPECT_EQ(plan.steps, 1);
}

TEST(TilePlan, WhatSeveralDevicesReadComesFromTheHostOnce) {
  const Tiling tiling = matmul(4096, 4096, 4096);
  TileMachine linked = machine(2, 800 * kMiB);
  linked.upload = linked.download = 5e9;  // so that bytes are what counts
  const TilePlan alone = plan_tiles(tiling, linked);
  EXPECT_EQ(alone.shared, 0);
  EXPECT_GT(alone.uploaded, tiling.input_bytes() / 2 + kMiB);
  linked.between = 3e11;
  const TilePlan plan = plan_tiles(tiling, linked);
  EXPECT_LE(plan.uploaded, tiling.input_bytes() / 2 + kMiB) << plan.explain();
  EXPECT_GT(plan.shared, 0);
  EXPECT_LT(plan.seconds, 0.9 * alone.seconds);
  EXPECT_GE(plan.seconds, plan.floor);
  EXPECT_THAT(plan.explain(), HasSubstr(" to it from other devices, "));
  EXPECT_THAT(plan.to_json(), HasSubstr(cat("\"shared\":", plan.shared)));
  // Where work hides all moves nothing is gained.
  TileMachine quick = linked;
  quick.upload = quick.download = 1e12;
  EXPECT_EQ(plan_tiles(tiling, quick).shared, 0);
  // A slow way between devices is not taken for free.
  linked.between = 1e9;
  EXPECT_GT(plan_tiles(tiling, linked).seconds, plan.seconds);
}

TEST(TilePlan, DevicesThatReadTheSameAreItsReaders) {
  const Tiling tiling = matmul(4096, 4096, 4096);
  TilePlan plan;
  const dist::Mesh grid({2, 3}, {"rows", "columns"});
  plan.output = dist::Sharding(
      grid, dist::P(std::vector<std::string>{"rows"}, std::vector<std::string>{"columns"}));
  for (int device = 0; device < 6; ++device) {
    const Reader of_a = plan.reader(tiling, device, 0), of_b = plan.reader(tiling, device, 1);
    EXPECT_EQ(of_a.count, 3);  // the devices of a row of the grid
    EXPECT_EQ(of_a.index, device % 3);
    EXPECT_EQ(of_b.count, 2);
    EXPECT_EQ(of_b.index, device / 3);
  }
  Tiling narrow = tiling;
  narrow.wire.form = dist::Wire::Form::kNarrow;
  EXPECT_EQ(plan.reader(narrow, 0, 0).count, 1);
  plan.output = dist::Sharding::on_rank(dist::Mesh::line(2), 0);
  EXPECT_EQ(plan.reader(tiling, 0, 1).count, 1);
  EXPECT_EQ(plan.reader(tiling, 1, 1).count, 1);
}

TEST(TilePlan, BytesOfAProductComeNearToWhatMemoryPermits) {
  // Irony, Toledo and Tiskin: at least 2 m n k / sqrt(memory) elements less the memory.
  const int64_t n = 16384;
  const TilePlan plan = plan_tiles(matmul(n, n, n), machine(1, 256 * kMiB));
  const double elements = 256.0 * kMiB / 4;
  const double least = 2.0 * std::pow(static_cast<double>(n), 3) / std::sqrt(elements) * 4;
  EXPECT_LT(static_cast<double>(plan.uploaded), 2.1 * least) << plan.to_string();
}

TEST(TilePlan, BytesAreFewWhereTheyWouldHideBesideArithmeticToo) {
  TileMachine roomy = machine(1, int64_t{110} << 30);
  roomy.device.flops = 1.2e14;
  const Tiling tiling = matmul(1 << 16, 1 << 16, 1 << 16);
  const TilePlan plan = plan_tiles(tiling, roomy);
  EXPECT_LT(plan.uploaded, 3 * tiling.input_bytes()) << plan.to_string();
  EXPECT_LT(plan.seconds, 1.1 * plan.floor) << plan.to_string();
}

TEST(TilePlan, WhatGoesBothWaysAtATimeIsHidden) {
  const Tiling lines = fft_tiles({dist::FftKind::kFft, std::nullopt, -1, FftNorm::kBackward})
                           .describe({{{1 << 16, 1 << 12}, DType::kComplex64}});
  TileMachine duplex = machine(1, int64_t{16} << 30), simplex = duplex;
  duplex.duplex = 1;
  const double one_way = static_cast<double>(lines.input_bytes()) / duplex.upload;
  const TilePlan both = plan_tiles(lines, duplex);
  EXPECT_LT(both.seconds, 1.2 * one_way) << both.to_string();
  EXPECT_GE(both.seconds, one_way);
  EXPECT_GT(both.tiles(), 8);  // the first and the last have nothing to hide behind
  EXPECT_GE(plan_tiles(lines, simplex).seconds, 2 * one_way);
}

TEST(TilePlan, TilesOfLongDimensionsBeginAtWholeGrains) {
  const Tiling tiling = matmul(10000, 3000, 10000);
  const TilePlan plan = plan_tiles(tiling, machine(1, 64 * kMiB));
  const std::vector<Tile> tiles = tiles_of(tiling, plan, 0);
  ASSERT_GT(tiles.size(), 4u);
  for (const Tile& tile : tiles) {
    for (int dim = 0; dim < 2; ++dim) EXPECT_EQ(tile.output.low[dim] % 32, 0) << plan.to_string();
  }
}

TEST(TilePlan, StepsCostTheirAdditions) {
  const Tiling tiling = matmul(512, 1 << 16, 512);
  TileMachine quick = machine(1, 4 * kMiB), slow = quick;
  slow.device.memory_bandwidth = 1e9;
  const TilePlan plan = plan_tiles(tiling, quick), with_slow_memory = plan_tiles(tiling, slow);
  ASSERT_GT(plan.steps, 2);
  ASSERT_GT(with_slow_memory.steps, 2);
  // Each but the first reads two numbers and writes one.
  const double added = 12.0 * 512 * 512 * static_cast<double>(with_slow_memory.steps - 1) / 1e9;
  EXPECT_GT(with_slow_memory.compute, added);
  EXPECT_LT(plan.compute, added);
}

/// Plans of calls that differ in one thing each.
TEST(KnownPlans, ArePlansOfTheSameCall) {
  const auto expect_right = [](const Tiling& tiling, const TileMachine& on, int64_t least) {
    const std::string expected = plan_tiles(tiling, on, least).to_json();
    EXPECT_EQ(plan_once("product", tiling, on, least).to_json(), expected);
    EXPECT_EQ(plan_once("product", tiling, on, least).to_json(), expected);
  };
  const TileMachine usual = machine(2, 9 * kMiB);
  std::vector<TileMachine> machines(8, usual);
  machines[1].devices = 3;
  machines[2].memory = 5 * kMiB;
  machines[3].upload = 1e9;
  machines[4].download = 1e9;
  machines[5].duplex = 0.9;
  machines[6].device.flops = 1e12;
  machines[7].stretch = 1e-6;
  for (const TileMachine& each : machines) expect_right(matmul(1024, 1024, 1024), each, 1);
  expect_right(matmul(1024, 1024, 1024), usual, 50);
  expect_right(matmul(1024, 1024, 2048), usual, 1);
  Tiling narrow = matmul(1024, 1024, 1024);
  narrow.wire = {.form = dist::Wire::Form::kNarrow, .dtype = DType::kFloat16};
  expect_right(narrow, usual, 1);
  Tiling greedy = matmul(1024, 1024, 1024);
  greedy.scratch = [](const Box& output, Interval, const WorkFigures&) {
    return 8 * output.size();
  };
  expect_right(greedy, usual, 1);
  Tiling turned = matmul(1024, 1024, 1024);
  turned.placed_order = {1, 0};
  expect_right(turned, machines[7], 1);
  expect_right(matmul(1024, 1024, 1024), machines[7], 1);
  Tiling all = matmul(1024, 1024, 1024);
  all.needed = [&all](size_t i, const Box&, Interval) { return whole_box(all.inputs[i].shape); };
  all.inputs[0].shape = {512, 512};
  expect_right(all, usual, 1);
  // Told apart by its text alone.
  EXPECT_EQ(plan_once("sum", sum({512, 512}, {0}), usual, 1).op, "sum");
}

TEST(TilePlan, DevicesShareASumByParts) {
  const TilePlan plan = plan_tiles(sum({1 << 20}, {}), machine(4, kMiB));
  EXPECT_TRUE(plan.is_by_steps);
  EXPECT_EQ(plan.busy, 4);
  const TilePlan rows = plan_tiles(sum({4096, 4096}, {1}), machine(4, kMiB));
  EXPECT_FALSE(rows.is_by_steps);
  EXPECT_EQ(rows.strategy, "dim 0");
}

TEST(TilePlan, AsManyTilesAsAreWanted) {
  for (const int64_t wanted : {1, 2, 7, 40}) {
    const TilePlan plan = plan_tiles(matmul(64, 64, 64), machine(1, kMiB), wanted);
    EXPECT_GE(plan.tiles() * plan.steps, wanted);
  }
  EXPECT_EQ(plan_tiles(matmul(1, 1, 1), machine(1, kMiB), 9).tiles(), 1);  // there is but one
}

TEST(TilePlan, ManyShortDimensionsAreCutToo) {
  const Tiling tiling = einsum_tiles("abcdefg,ghijkl->abcdefhijkl")
                            .describe({{{3, 3, 3, 3, 3, 3, 3}, DType::kFloat32},
                                       {{3, 3, 3, 3, 3, 3}, DType::kFloat32}});
  for (const int64_t memory : {200, 2000, 20000}) {
    const TilePlan plan = plan_tiles(tiling, machine(1, memory));
    EXPECT_TRUE(plan.is_feasible) << plan.to_string();
    EXPECT_LE(plan.memory, memory);
  }
}

// Boxes of whole images are one stretch of memory; of three longer dimensions a row is many.
TEST(TilePlan, TheOutermostDimensionIsCutThoughItIsShort) {
  ConvOptions options;
  options.padding = {1};
  for (const int devices : {1, 2}) {
    const Tiling tiling = conv_tiles(options).describe(
        {{{32, 64, 112, 112}, DType::kFloat32}, {{64, 64, 3, 3}, DType::kFloat32}});
    const TilePlan plan = plan_tiles(tiling, machine(devices, 1000 * kMiB));
    EXPECT_GT(plan.cuts[0], 1) << plan.explain();
    EXPECT_EQ(plan.cuts[1] * plan.cuts[2] * plan.cuts[3], 1) << plan.explain();
    EXPECT_EQ(plan.strategy, devices == 1 ? "one" : "dim 0");
  }
}

TEST(TilePlan, OfEqualCutsThoseOfLongerStretchesAreTaken) {
  const Header cube{{300, 300, 300, 300}, DType::kFloat32};
  const TilePlan plan = plan_tiles(add_tiles().describe({cube, cube}), machine(1, 100 * kMiB));
  EXPECT_LT(plan.cuts[2] * plan.cuts[3], 10) << plan.explain();  // 50 where any cuts would do
}

// Columns of both are read and written in rows that lie apart, and fewer, wider tiles have fewer.
TEST(TilePlan, WhatRowsThatLieApartCostIsWeighed) {
  const Tiling columns =
      fft_tiles({dist::FftKind::kFft, {}, 0}).describe({{{4096, 4096}, DType::kComplex64}});
  TileMachine on = machine(1, int64_t{1} << 30);
  on.duplex = 1;
  const TilePlan cheap = plan_tiles(columns, on);
  on.stretch = 5e-8;
  const TilePlan dear = plan_tiles(columns, on);
  EXPECT_LT(dear.tiles(), cheap.tiles());
  EXPECT_GT(dear.seconds, cheap.seconds);
  // Rows that go to columns lie apart as well, but for the tile that has all of them.
  Tiling rows =
      fft_tiles({dist::FftKind::kFft, {}, 1}).describe({{{4096, 4096}, DType::kComplex64}});
  const double in_order = plan_tiles(rows, on).seconds;
  rows.placed_order = {1, 0};
  const TilePlan turned = plan_tiles(rows, on);
  EXPECT_GT(turned.seconds, in_order);
  EXPECT_LT(turned.tiles(), cheap.tiles());
}

TEST(TilePlan, NothingToDo) {
  const TilePlan plan = plan_tiles(matmul(0, 5, 7), machine(3, 1000));
  EXPECT_TRUE(plan.is_feasible);
  for (int device = 0; device < 3; ++device) {
    EXPECT_TRUE(tiles_of(matmul(0, 5, 7), plan, device).empty());
  }
}

TEST(TilePlan, SaysItselfInALine) {
  EXPECT_THAT(plan_tiles(matmul(100, 100, 100), machine(2, 10)).to_string(),
              HasSubstr("not feasible, needed are"));
  EXPECT_THAT(plan_tiles(matmul(100, 100, 100), machine(2, kMiB)).to_string(),
              HasSubstr("on each of 2 devices"));
}

TEST(Halved, TilesAndTheirStepsFallInHalves) {
  const Tiling tiling = matmul(8, 64, 6);
  const Tile whole{whole_box(tiling.output.shape), {{0, 64}}};
  const Halved steps = halved(tiling, whole);
  EXPECT_TRUE(steps.is_by_step);  // the inputs are what takes memory
  ASSERT_EQ(steps.tiles.size(), 1u);
  EXPECT_EQ(steps.tiles[0].steps.size(), 2u);
  EXPECT_LT(tile_bytes(tiling, steps.tiles[0]), tile_bytes(tiling, whole));
  Tile tile = whole;
  for (int i = 0; i < 20; ++i) tile = halved(tiling, tile).tiles[0];
  EXPECT_EQ(tile.output.size(), 1);
  EXPECT_EQ(tile.steps.size(), 64u);
  EXPECT_EQ(halved(tiling, tile).tiles.size(), 1u);  // nothing is left to halve
  EXPECT_EQ(halved(tiling, tile).tiles[0].steps.size(), 64u);
}

TEST(TilePlan, BandsOfAGridComeWithTheRowsAroundThem) {
  const Tiling tiling = stencil_tiles(Boundary::kZero, 4)
                            .describe({{{1000, 50}, DType::kFloat32}, {{3, 3}, DType::kFloat32}});
  const Box band = tiling.needed(0,
                                 [] {
                                   Box box = whole_box({1000, 50});
                                   box.set_interval(0, {100, 200});
                                   return box;
                                 }(),
                                 {0, 1});
  EXPECT_EQ(band.interval(0), (Interval{96, 204}));
  const TilePlan plan = plan_tiles(tiling, machine(1, 60000));
  EXPECT_TRUE(plan.is_feasible);
  EXPECT_EQ(plan.cuts[1], 1);
}

}  // namespace
}  // namespace cuop::executor
