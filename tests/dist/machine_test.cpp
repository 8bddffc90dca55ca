// What moves cost on links within hosts and between them: worked examples, one host as before, and
// a faster link never costs more.
#include "cuop/dist/cost/machine.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <random>

#include "cuop/core/text.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/plan/pipeline_plan.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/dist/plan/poisson_plan.h"
#include "cuop/dist/plan/stencil_plan.h"
#include "tests/sanitized.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Ranks with a fast link to those of their host and a slow one to others.
Machine cluster(int64_t ranks_per_host) {
  Machine machine;
  machine.flops = 5e13;
  machine.memory_bandwidth = 3e12;
  machine.link_bandwidth = 4e11;
  machine.latency = 5e-6;
  machine.network_bandwidth = 2e10;
  machine.network_latency = 2e-5;
  machine.ranks_per_host = ranks_per_host;
  return machine;
}

TEST(TwoLevels, TheSlowerLinkCounts) {
  const Machine machine = cluster(4);
  const LinkLoad load{4000, 2, 3000, 1};
  const double within = 5e-6 + 2 * 5e-7 + 4000 / 4e11, between = 2e-5 + 1e-6 + 3000 / 2e10;
  EXPECT_DOUBLE_EQ(transfer_seconds(machine, load), std::max(within, between));
  EXPECT_DOUBLE_EQ(transfer_seconds(machine, LinkLoad{4000, 2}), within);
  EXPECT_DOUBLE_EQ(transfer_seconds(machine, LinkLoad{0, 0, 3000, 1}), between);
  EXPECT_EQ(transfer_seconds(machine, LinkLoad{}), 0.0);
  EXPECT_DOUBLE_EQ(wire_seconds(machine, load), 3000 / 2e10);
  EXPECT_DOUBLE_EQ(start_seconds(machine, load, 2), 2 * 2e-5 + 1e-6);
  EXPECT_EQ(start_seconds(machine, LinkLoad{}, 2), 0.0);
}

TEST(TwoLevels, TrafficIsToldApartByHosts) {
  // 4 ranks, hosts {0, 1} and {2, 3}: 0 sends 5 to 1 and 7 to 2, 3 sends 1 to 2, 2 sends 9 to 1.
  const Traffic traffic{4, {{0, 1, 5}, {0, 2, 7}, {3, 2, 1}, {2, 1, 9}}};
  const Traffic::Busiest two = traffic.busiest_links(2);
  EXPECT_EQ(two.elements, 5);
  EXPECT_EQ(two.messages, 1);
  EXPECT_EQ(two.network_elements, 9);
  EXPECT_EQ(two.network_messages, 1);
  const Traffic::Busiest alone = traffic.busiest_links(1);
  EXPECT_EQ(alone.elements, 0);
  EXPECT_EQ(alone.network_elements, traffic.busiest());
  EXPECT_EQ(alone.network_messages, traffic.most_messages());
}

TEST(TwoLevels, OneHostHasAllTraffic) {
  std::mt19937 random(1);
  for (const int ranks : {1, 2, 3, 4, 7, 16}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      Traffic traffic{ranks, {}};
      for (int src = 0; src < ranks; ++src) {
        for (int dst = 0; dst < ranks; ++dst) {
          if (src == dst || random() % 3 == 0) continue;
          traffic.links.push_back({src, dst, 1 + static_cast<int64_t>(random() % 100)});
        }
      }
      for (const int ranks_per_host : {0, ranks, ranks + 5}) {
        const Traffic::Busiest one = traffic.busiest_links(ranks_per_host);
        EXPECT_EQ(one.elements, traffic.busiest());
        EXPECT_EQ(one.messages, traffic.most_messages());
        EXPECT_EQ(one.network_elements, 0);
        EXPECT_EQ(one.network_messages, 0);
      }
      for (const int ranks_per_host : {1, 2, 3}) {
        const Traffic::Busiest some = traffic.busiest_links(ranks_per_host);
        EXPECT_LE(some.elements, traffic.busiest());
        EXPECT_LE(some.network_elements, traffic.busiest());
        EXPECT_GE(some.elements + some.network_elements, traffic.busiest());
        EXPECT_GE(some.messages + some.network_messages, traffic.most_messages());
      }
    }
  }
}

TEST(TwoLevels, WhatGoesToAllIsSharedOut) {
  const Machine machine = cluster(8);
  const LinkLoad load = spread_evenly(machine, 63'000, 63, 64);  // 7 peers near, 56 far
  EXPECT_EQ(load.network_messages, 56);
  EXPECT_EQ(load.messages, 7);
  EXPECT_EQ(load.network_bytes, 56'000);
  EXPECT_EQ(load.bytes, 7'000);
  const LinkLoad near = spread_evenly(machine, 700, 7, 8);
  EXPECT_EQ(near.bytes, 700);
  EXPECT_EQ(near.network_messages, 0);
}

TEST(TwoLevels, HalosCrossHostsAtTheirEdges) {
  // 8 ranks of 10 rows of 6 float64: a halo of a row to each side, whichever host the neighbour is
  // on.
  const std::vector<Box> blocks = split_over_ranks(8, 2, 0).owner_boxes({80, 6});
  std::vector<Need> needs;
  for (int rank = 0; rank < 8; ++rank) {
    const Box& block = blocks[static_cast<size_t>(rank)];
    if (rank > 0) needs.push_back({rank, Box{{block.low[0] - 1, 0}, {block.low[0], 6}}});
    if (rank < 7) needs.push_back({rank, Box{{block.high[0], 0}, {block.high[0] + 1, 6}}});
  }
  Plan plan;
  add_move(plan, cluster(4), "halo", blocks, needs, DType::kFloat64);
  EXPECT_EQ(plan.steps[0].rank_bytes, 2 * 6 * 8);
  EXPECT_EQ(plan.steps[0].network_bytes, 6 * 8);
  EXPECT_THAT(plan.explain(), HasSubstr("48 B between hosts"));
  Plan on_one_host;
  add_move(on_one_host, cluster(8), "halo", blocks, needs, DType::kFloat64);
  EXPECT_EQ(on_one_host.steps[0].network_bytes, 0);
  EXPECT_THAT(on_one_host.explain(), Not(HasSubstr("between hosts")));
  EXPECT_LT(on_one_host.seconds(), plan.seconds());
}

/// Plans of every kind of step, for so many ranks.
using Planner = std::function<Plan(const Machine& machine, int ranks)>;
std::vector<std::pair<std::string, Planner>> planners() {
  const auto rows = [](int ranks) { return Sharding(Mesh::line(ranks), split_dim(2, 0)); };
  const auto root = [](int ranks) { return Sharding::on_rank(Mesh::line(ranks), 0); };
  std::vector<std::pair<std::string, Planner>> all;
  for (const char* strategy : {"row", "column", "block_2d", "k_split", ""}) {
    all.emplace_back(cat("matmul ", strategy), [=](const Machine& machine, int ranks) {
      return plan_matmul({4096, 2048, 1024, DType::kFloat32, rows(ranks), rows(ranks), {}}, machine,
                         strategy);
    });
    all.emplace_back(cat("rooted matmul ", strategy), [=](const Machine& machine, int ranks) {
      const Sharding lying = root(ranks);
      return plan_matmul({4096, 2048, 1024, DType::kFloat32, lying, lying, lying}, machine,
                         strategy);
    });
  }
  all.emplace_back("pipelined matmul", [=](const Machine& machine, int ranks) {
    return plan_pipelined_matmul({4096, 2048, 1024, DType::kFloat32, root(ranks), 5}, machine, "");
  });
  all.emplace_back("sweeps", [=](const Machine& machine, int ranks) {
    SweepProblem problem;
    problem.op = "stencil";
    problem.inputs = {{"grid", {2048, 1024}, DType::kFloat64, rows(ranks)}};
    problem.iterations = 20;
    problem.max_depth = 8;
    problem.flops_per_cell = 9;
    problem.is_watched = true;
    return plan_sweeps(problem, machine, "");
  });
  all.emplace_back("cg", [=](const Machine& machine, int ranks) {
    RowSolverProblem problem;
    problem.op = "cg";
    problem.inputs = {{"grid", {2048, 1024}, DType::kFloat64, rows(ranks)},
                      {"rhs", {2048, 1024}, DType::kFloat64, rows(ranks)}};
    problem.solver = RowSolver::kCg;
    problem.iterations = 100;
    return plan_row_solver(problem, machine, "row");
  });
  return all;
}

TEST(TwoLevels, OneHostCostsWhatItDid) {
  for (const auto& [name, planned] : planners()) {
    for (const int ranks : {1, 2, 3, 4, 7, 8}) {
      const std::string before = planned(cluster(0), ranks).to_json();
      for (const int ranks_per_host : {ranks, ranks + 3}) {
        Machine machine = cluster(ranks_per_host);
        machine.network_bandwidth = 1.0;
        machine.network_latency = machine.network_overhead = 1e3;
        EXPECT_EQ(planned(machine, ranks).to_json(), before) << name << " on " << ranks;
      }
    }
    // The formula of before there were networks.
    const Machine machine = cluster(0);
    const Plan plan = planned(machine, 4);
    if (!name.starts_with("matmul")) continue;
    for (const PlanStep& step : plan.steps) {
      if (step.kind != StepKind::kMove) continue;
      EXPECT_DOUBLE_EQ(step.seconds,
                       machine.latency +
                           static_cast<double>(step.messages) * machine.message_overhead +
                           static_cast<double>(step.rank_bytes) / machine.link_bandwidth)
          << name;
    }
  }
}

TEST(TwoLevels, AFasterLinkNeverCostsMore) {
  using Figure = double Machine::*;
  const std::pair<Figure, double> better[] = {
      {&Machine::link_bandwidth, 3.0},   {&Machine::latency, 0.3},
      {&Machine::message_overhead, 0.3}, {&Machine::network_bandwidth, 3.0},
      {&Machine::network_latency, 0.3},  {&Machine::network_overhead, 0.3}};
  for (const auto& [name, planned] : planners()) {
    for (const int ranks : {2, 7, 8, 16}) {
      if (test::kIsSanitized && ranks == 16) continue;
      for (const int ranks_per_host : {1, 2, 3, 8}) {
        const Machine machine = cluster(ranks_per_host);
        const double before = planned(machine, ranks).seconds();
        for (const auto& [figure, factor] : better) {
          Machine faster = machine;
          faster.*figure *= factor;
          EXPECT_LE(planned(faster, ranks).seconds(), before * (1 + 1e-12))
              << name << " on " << ranks << ", " << ranks_per_host << " a host";
        }
      }
    }
  }
}

TEST(TwoLevels, ASlowNetworkIsFeltAndAvoided) {
  const Sharding rows(Mesh::line(64), split_dim(2, 0));
  const MatmulProblem problem{16384, 16384, 16384, DType::kFloat32, rows, rows, std::nullopt};
  Machine slow = cluster(8);
  slow.network_bandwidth = 1e9;
  const Plan near = plan_matmul(problem, cluster(64)), far = plan_matmul(problem, slow);
  EXPECT_GT(far.seconds(), near.seconds());
  for (const Candidate& candidate : far.candidates) EXPECT_GE(candidate.seconds, far.seconds());
  EXPECT_GE(far.seconds(), far.floor.seconds);
}

TEST(Machine, TransformsOfLongLinesAreSlower) {
  Machine machine;
  machine.fft_speed = 0.64;
  machine.long_fft_speed = 0.02;
  EXPECT_DOUBLE_EQ(fft_efficiency(machine, 1), 0.64);
  EXPECT_DOUBLE_EQ(fft_efficiency(machine, 256 << 10), 0.64);
  EXPECT_NEAR(fft_efficiency(machine, 1 << 20), 0.16, 1e-12);  // half of it for each octave
  EXPECT_NEAR(fft_efficiency(machine, 4 << 20), 0.04, 1e-12);
  EXPECT_DOUBLE_EQ(fft_efficiency(machine, int64_t{1} << 40), 0.02);
}

TEST(Machine, ShortProductsAreSlower) {
  Machine machine;
  machine.short_speed = 0.64;
  const auto of = [&](double m, double n, double k) {
    return product_efficiency(machine, {m, n, k});
  };
  EXPECT_NEAR(of(1024, 1024, 1024), 0.64, 1e-12);
  EXPECT_NEAR(of(8192, 8192, 8192), 1.0, 1e-12);
  EXPECT_DOUBLE_EQ(of(1e5, 1e5, 1e5), 1.0);
  EXPECT_DOUBLE_EQ(of(1, 8192, 8192), 0.3);  // of a matrix and a vector other kernels
  EXPECT_DOUBLE_EQ(of(300, 20000, 4000), of(20000, 300, 4000));
  // A short side of the result costs more than a short depth, which costs more than none.
  EXPECT_LT(of(500, 8192, 8192), of(8192, 8192, 500));
  EXPECT_LT(of(8192, 8192, 500), of(8192, 8192, 8192));
  double before = 0;
  for (double side = 1; side < 1e5; side *= 2) {
    EXPECT_GE(of(side, 4096, 4096), before);
    before = of(side, 4096, 4096);
  }
  for (const double speed : {1e-3, 0.2, 0.3, 0.9, 1.0, 2.0}) {
    machine.short_speed = speed;
    for (const double side : {1.0, 100.0, 1024.0, 3000.0, 1e6}) {
      EXPECT_GE(of(side, side, side), 0.3) << speed;
      EXPECT_LE(of(side, side, side), 1.0) << speed;
    }
  }
  EXPECT_DOUBLE_EQ(of(10, 10, 10), 1.0);  // where short ones are as quick as long ones
}

}  // namespace
}  // namespace cuop::dist
