#include "cuop/dist/algo/reduce.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/reduce_plan.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

Tensor local_reduction(const Tensor& x, const ReduceOptions& options) {
  switch (options.kind) {
    case ReduceKind::kSum:
      return cuop::sum(x, options.axes, options.keepdims, options.mode);
    case ReduceKind::kMean:
      return cuop::mean(x, options.axes, options.keepdims, options.mode);
    case ReduceKind::kMax:
      return cuop::max(x, options.axes, options.keepdims);
    case ReduceKind::kMin:
      return cuop::min(x, options.axes, options.keepdims);
    default:
      return cuop::var(x, options.axes, 0.0, options.keepdims);
  }
}

TEST(DistReduce, EqualsTheWholeReduction) {
  const std::vector<std::vector<int64_t>> axes_lists{{}, {0}, {-1}, {0, 2}, {1}};
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor x = noise({5, 3, 4});
      for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMean, ReduceKind::kMax,
                                    ReduceKind::kMin, ReduceKind::kVar}) {
        for (const auto& axes : axes_lists) {
          for (const bool keepdims : {false, true}) {
            const ReduceOptions options{kind, axes, keepdims};
            const Tensor expected = local_reduction(x, options);
            for (const char* strategy : {"", "root", "split_kept", "split_reduced"}) {
              if (axes.empty() && std::string(strategy) == "split_kept") continue;
              const std::string what = cat(name(kind), " (", join(axes), ") ", strategy);
              expect_rooted(
                  comm, reduce_from_root(comm, on_root(comm, x), options, {.strategy = strategy}),
                  expected, 1e-14, what);
            }
          }
        }
      }
    });
  }
}

TEST(DistReduce, VariancesWithAnyDivisorInAnySharding) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor x = cuop::add(noise({7, 5}), 1e6);  // of which plain sums of squares know little
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor parts = laid_out(comm, x, sharding);
        for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, {0}, {-1}}) {
          for (const double correction : {0.0, 1.5}) {
            const std::string what = cat(sharding, " (", join(axes), ") ", correction);
            expect_close(gather_all(var(parts, axes, correction)), cuop::var(x, axes, correction),
                         1e-9, what);
            expect_close(gather_all(stddev(parts, axes, correction, true)),
                         cuop::stddev(x, axes, correction, true), 1e-9, what);
          }
        }
        // A divisor of 0: infinities.
        EXPECT_EQ(values(gather_all(var(parts, {1}, 9.0))), values(cuop::var(x, {1}, 9.0)));
      }
      const Sharding rows(Mesh::line(ranks), split_dim(2, 0));
      const DistTensor none = laid_out(comm, noise({0, 3}), rows);
      expect_close(gather_all(var(none, {0}, 1.0)), cuop::var(noise({0, 3}), {0}, 1.0), 0, "none");
      const DistTensor whole = laid_out(comm, counting({6, 2}, DType::kInt32), rows);
      expect_close(gather_all(stddev(whole)), cuop::stddev(counting({6, 2}, DType::kInt32)), 1e-14,
                   "integers");
    });
  }
}

TEST(DistReduce, VariancesOfComplexNumbersAreThoseOfBothParts) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor whole = noise({11, 6}, DType::kComplex128);
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor x = laid_out(comm, whole, sharding);
        for (const ReduceKind kind : {ReduceKind::kVar, ReduceKind::kStd}) {
          for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, {0}, {1}}) {
            ReduceOptions options;
            options.kind = kind;
            options.axes = axes;
            options.correction = 1;
            const Tensor expected = kind == ReduceKind::kVar ? cuop::var(whole, axes, 1.0)
                                                             : cuop::stddev(whole, axes, 1.0);
            expect_close(gather_all(reduce(x, options)), expected, 1e-12, cat(sharding));
          }
        }
      }
    });
  }
}

TEST(DistReduce, OverNoAxisTakesEachElementAlone) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor x = noise({6, 5});
      const ReduceOptions options{ReduceKind::kSum, ReduceAxes::exactly({}), true};
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor parts = laid_out(comm, x, sharding);
        expect_close(gather_all(reduce(parts, options)), x, 0, cat(sharding));
        for (const char* strategy : {"split_kept", sharding.single_rank() < 0 ? "keep" : "root"}) {
          const DistTensor sums = reduce(parts, options, {.strategy = strategy});
          expect_close(gather_all(sums), x, 0, cat(sharding, ' ', strategy));
        }
        EXPECT_THROW(reduce(parts, options, {.strategy = "split_reduced"}), Error);
      }
      expect_rooted(comm, reduce_from_root(comm, on_root(comm, x), options), x, 0, "rooted");
    });
  }
}

TEST(DistReduce, TakesAnySharding) {
  for (const int ranks : {2, 3, 4, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor x = noise({6, 5});
      for (const Sharding& sharding : matrix_shardings(ranks)) {
        const DistTensor parts = laid_out(comm, x, sharding);
        for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, {0}, {1}}) {
          const ReduceOptions options{ReduceKind::kSum, axes};
          const Tensor expected = local_reduction(x, options);
          const DistTensor total =
              reduce(parts, options, {.strategy = sharding.single_rank() < 0 ? "keep" : "root"});
          expect_close(gather_all(total), expected, 1e-14, cat(sharding, " (", join(axes), ')'));
          if (axes.empty() && sharding.single_rank() < 0) {
            expect_close(total.local(), expected, 1e-14, "a total is on every rank");
          }
          const DistTensor moved =
              reduce(parts, options, {.output = Sharding::on_rank(Mesh::line(ranks), ranks - 1)});
          expect_close(gather_all(moved), expected, 1e-14, "wanted on one rank");
        }
      }
    });
  }
}

/// Of messages that cost more than anything else.
Machine with_slow_messages() {
  Machine machine;
  machine.message_overhead = 1.0;
  return machine;
}

TEST(DistReduce, StatesOfManyRanksAreMergedInGroups) {
  for (const int ranks : {8, 9, 12}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor x = noise({25, 72});
      const Mesh mesh = Mesh::line(ranks);
      const DistTensor parts = laid_out(comm, x, Sharding(mesh, split_dim(2, 0)));
      const std::vector<std::optional<Sharding>> outputs{
          std::nullopt, Sharding::on_rank(mesh, ranks - 1), Sharding::replicated(mesh)};
      for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kVar}) {
        for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, {0}}) {
          for (const bool keepdims : {false, true}) {
            for (const auto& output : outputs) {
              const ReduceOptions options{kind, axes, keepdims};
              const CallOptions call{"keep", output, with_slow_messages()};
              const DistTensor reduced = reduce(parts, options, call);
              const Plan& plan = last_report().plan;
              EXPECT_GT(plan.setting("group"), 1) << plan.explain();
              EXPECT_THAT(plan.detail, HasSubstr(cat("in groups of ", plan.setting("group"))));
              expect_close(gather_all(reduced), local_reduction(x, options), 1e-13,
                           cat(name(kind), " (", join(axes), ") on ", ranks));
            }
          }
        }
      }
    });
  }
}

TEST(DistReduce, GroupsKeepTheBitsOfExactSums) {
  run_ranks(8, [](const CommunicatorPtr& comm) {
    const Tensor x = from_values<double>({8}, {1e30, 1.0, 3e-20, -1e30, 7.0, 1e-30, -8.0, 5e-40});
    const DistTensor parts = laid_out(comm, x, Sharding(Mesh::line(8), split_dim(1, 0)));
    const DistTensor total = sum(parts, {}, false, SumMode::kExact);
    CallOptions call;
    call.machine = with_slow_messages();
    const DistTensor grouped = reduce(parts, {.mode = SumMode::kExact}, call);
    EXPECT_GT(last_report().plan.setting("group"), 1);
    expect_close(gather_all(grouped), gather_all(total), 0, "exact");
    expect_close(gather_all(grouped), cuop::sum(x, {}, false, SumMode::kExact), 0, "exact");
  });
}

/// A plan is pure: of a thousand ranks too.
TEST(DistReduce, AThousandRanksSendFewMessages) {
  constexpr int kMany = 1024;
  Machine machine;
  machine.ranks_per_host = 8;
  const Sharding rows(Mesh::line(kMany), split_dim(2, 0));
  const Placement x{"x", {4096, 64}, DType::kFloat32, rows};
  const auto most_messages = [](const Plan& plan) {
    int64_t messages = 0;
    for (const PlanStep& step : plan.steps) messages += step.messages;
    return messages;
  };
  ReduceProblem problem{"sum", x, {0, 1}, false, 8, DType::kFloat32, std::nullopt};
  const Plan to_all = plan_reduce(problem, machine, "keep");
  EXPECT_EQ(most_messages(to_all), 31 + 31);
  problem.wanted = Sharding::on_rank(Mesh::line(kMany), 0);
  const Plan to_one = plan_reduce(problem, machine, "keep");
  EXPECT_LE(most_messages(to_one), 127 + 7);
  EXPECT_LT(to_one.seconds(), 1e-3);
}

TEST(DistReduce, SumsExactlyWithTheSameBitsOnAnyNumberOfRanks) {
  // Cancels to a few units in the last place of numbers 10^30 times as large.
  const Tensor on_host = to_device(noise({4001}), kCpu);
  double* data = on_host.data<double>();
  for (int64_t i = 0; i + 1 < on_host.size(); i += 2) {
    data[i] *= std::pow(10.0, static_cast<double>(i % 31));
    data[i + 1] = -data[i] * (1.0 + (i % 3 == 0 ? 0x1p-52 : 0.0));
  }
  const double expected = cuop::sum(on_host, {}, false, SumMode::kExact).data<double>()[0];
  const Tensor x = to_device(on_host, home());
  for (int ranks = 1; ranks <= 7; ++ranks) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const char* strategy : {"root", "split_reduced"}) {
        const Tensor total = reduce_from_root(comm, on_root(comm, x), {.mode = SumMode::kExact},
                                              {.strategy = strategy});
        if (comm->rank() == 0) {
          const double sum = values(total)[0];
          EXPECT_EQ(std::memcmp(&sum, &expected, sizeof(double)), 0) << ranks << strategy;
        }
      }
    });
  }
}

TEST(DistReduce, CompensatesAcrossRanks) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    // Rank 0 has 1e16, ranks 1 and 2 ones that a plain sum would lose, rank 3 takes 1e16 away.
    const Tensor x = from_values<double>({4}, {1e16, 1.0, 1.0, -1e16});
    const Tensor total = reduce_from_root(comm, on_root(comm, x), {.mode = SumMode::kCompensated},
                                          {.strategy = "split_reduced"});
    expect_rooted(comm, total, full({}, 2.0, DType::kFloat64), 0, "compensated");
  });
}

TEST(DistReduce, FollowsTheRulesOfNanDtypeAndEmptyInput) {
  for (const int ranks : {1, 3}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const Tensor x = from_values<double>({4}, {1.0, 2.0, nan, 3.0});
      for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin, ReduceKind::kSum}) {
        const Tensor total =
            reduce_from_root(comm, on_root(comm, x), {kind}, {.strategy = "split_reduced"});
        expect_rooted(comm, total, full({}, nan, DType::kFloat64), 0, name(kind));
      }
      const Tensor bytes = full({300}, 3, DType::kInt8);
      expect_rooted(comm, reduce_from_root(comm, on_root(comm, bytes)), cuop::sum(bytes), 0,
                    "int8");
      expect_rooted(comm, reduce_from_root(comm, on_root(comm, bytes), {ReduceKind::kMean}),
                    cuop::mean(bytes), 0, "mean of int8");
      const Tensor none = zeros({0, 3}, DType::kFloat32);
      for (const char* strategy : {"root", "split_kept", "split_reduced"}) {
        expect_rooted(comm,
                      reduce_from_root(comm, on_root(comm, none), {ReduceKind::kSum, {0}},
                                       {.strategy = strategy}),
                      cuop::sum(none, {0}), 0, "nothing");
      }
      expect_rooted(comm, reduce_from_root(comm, on_root(comm, none), {ReduceKind::kMax, {1}}),
                    cuop::max(none, {1}), 0, "max of nothing along another axis");
      EXPECT_THAT(
          failure_of([&] { reduce_from_root(comm, on_root(comm, none), {ReduceKind::kMax}); }),
          HasSubstr("max: no elements to reduce"));
      EXPECT_THAT(failure_of([&] {
                    reduce_from_root(comm, on_root(comm, x), {ReduceKind::kSum, {1}});
                  }),
                  HasSubstr("sum: axis 1 is out of range"));
      expect_rooted(comm, reduce_from_root(comm, on_root(comm, full({}, 5.0))), full({}, 5.0), 0,
                    "a scalar");
    });
  }
}

TEST(DistReduce, SendsStatesAndNotTheTensor) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, noise({4000}), Sharding(Mesh::line(4), split_dim(1, 0)));
    reduce(x, {}, {.output = Sharding::on_rank(Mesh::line(4), 0)});
    EXPECT_EQ(last_report().plan.strategy, "keep");
    EXPECT_EQ(last_report().plan.bytes(), 3 * 8);
  });
}

}  // namespace
}  // namespace cuop::dist
