// Where the parts of distributed tensors lie, and on which GPU each rank works.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "cuop/backend/cuda/cuda_memory.h"
#include "cuop/backend/runtime.h"
#include "cuop/dist/algo/elementwise.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/algo/stencil.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/dist/comm/self.h"
#include "cuop/dist/exec/call.h"
#include "cuop/dist/exec/map.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/rank_device.h"
#include "cuop/jit/fusion.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

Device gpu(int number) {
  return {DeviceType::kCuda, number % backend::device_count(DeviceType::kCuda)};
}

Sharding rows(int ranks) { return Sharding(Mesh::line(ranks), split_dim(2, 0)); }

TEST(RankDevices, GpusAreDealtOutFromTheCurrentOneOn) {
  const Device before = backend::current_device();
  backend::set_current_device(gpu(1));
  run_ranks(4, [](const CommunicatorPtr& comm) {
    EXPECT_EQ(backend::current_device(), gpu(1 + comm->rank()));
    EXPECT_EQ(rank_device(*comm, true), backend::current_device());
    EXPECT_EQ(rank_device(*comm, false), kCpu);
  });
  backend::set_current_device(kCpu);
  run_ranks(3, [](const CommunicatorPtr& comm) {
    EXPECT_EQ(backend::current_device(), kCpu);
    EXPECT_EQ(rank_device(*comm, true), gpu(comm->rank()));
  });
  backend::set_current_device(before);
}

TEST(RankDevices, PartsLieOnTheRanksGpus) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Tensor whole = counting({9, 4});
    const DistTensor x = DistTensor::from_root(comm, on_root(comm, whole));
    EXPECT_EQ(x.local().device(), home());
    const DistTensor split = redistribute(x, rows(4));
    EXPECT_EQ(split.local().device(), home());
    const DistTensor sum = add(split, split);
    EXPECT_EQ(sum.local().device(), home());
    EXPECT_EQ(on_device(sum, kCpu).local().device(), kCpu);
    const Tensor all = gather_all(sum);
    EXPECT_EQ(all.device(), home());
    EXPECT_EQ(values(all), values(cuop::add(whole, whole)));
    const Tensor reduced =
        all_reduce(comm, full({5}, comm->rank() + 1, DType::kFloat32, home()), ReduceKind::kSum);
    EXPECT_EQ(reduced.device(), home());
    EXPECT_EQ(values(reduced), std::vector<double>(5, 10.0));
  });
}

TEST(RankDevices, SomeOnGpusAndSomeOnTheHostSweepTogether) {
  const Tensor start = to_device(noise({21, 6}), kCpu);
  const JacobiOptions options{0.5, Boundary::kZero, 40, 0.3};
  const JacobiResult expected = cuop::jacobi2d(start, start, options);
  ASSERT_LT(expected.sweeps, options.iterations);
  Machine slow_wire;  // for several sweeps between two looks at their norms
  slow_wire.latency = 1.0;
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    const Tensor mine = slice(start, 0, 7 * comm->rank(), 7 * comm->rank() + 7);
    const Tensor part = comm->rank() == 1 ? mine : to_device(mine, home());
    const DistTensor u = DistTensor::from_parts(comm, part);
    SolveInfo info;
    const DistTensor solved =
        jacobi_2d(u, u, options, &info, {.strategy = "row", .machine = slow_wire});
    EXPECT_EQ(solved.local().device(), part.device());
    EXPECT_EQ(info.sweeps, expected.sweeps);
    expect_close(to_device(gather_all(solved), kCpu), expected.u, 0, "mixed");
  });
}

TEST(RankDevices, LargeGridsAreSweptToTheSweepThatIsBelowTheTolerance) {
  const Tensor start = to_device(noise({260, 256}), kCpu);
  for (const int64_t sweeps : {1, 3, 11, 20, 29}) {
    const JacobiResult expected =
        cuop::jacobi2d(start, start, {0.01, Boundary::kZero, sweeps, 0.0});
    const JacobiOptions options{0.01, Boundary::kZero, 30, expected.update_norm * (1.0 + 1e-9)};
    for (const char* strategy : {"row", "column"}) {
      run_ranks(3, [&](const CommunicatorPtr& comm) {
        const DistTensor u = DistTensor::from_root(comm, on_root(comm, to_device(start, home())));
        SolveInfo info;
        const DistTensor solved = jacobi_2d(u, u, options, &info, {.strategy = strategy});
        EXPECT_EQ(info.sweeps, sweeps) << strategy;
        EXPECT_NEAR(info.update_norm, expected.update_norm, 1e-12 * expected.update_norm);
        expect_close(to_device(gather_all(solved), kCpu), expected.u, 0, "large");
      });
    }
  }
}

TEST(RankDevices, OfTheHostStayThere) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor whole = to_device(counting({5, 4}), kCpu);
    const DistTensor x = redistribute(DistTensor::from_root(comm, on_root(comm, whole)), rows(3));
    EXPECT_EQ(x.local().device(), kCpu);
    const Tensor product = matmul_from_root(comm, on_root(comm, whole),
                                            on_root(comm, to_device(counting({4, 3}), kCpu)));
    if (comm->rank() == 0) {
      EXPECT_EQ(product.device(), kCpu);
    }
  });
}

TEST(RankDevices, ResultsComeBackToTheDeviceOfTheFirstInput) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Device device = gpu(2);  // of which rank 0 has another one
    const Tensor a = to_device(noise({6, 5}), device), b = to_device(noise({5, 7}), kCpu);
    for (const char* strategy : {"root", "row", "k_split"}) {
      const Tensor c =
          matmul_from_root(comm, on_root(comm, a), on_root(comm, b), {.strategy = strategy});
      EXPECT_EQ(c.is_defined(), comm->rank() == 0);
      if (!c.is_defined()) continue;
      EXPECT_EQ(c.device(), device);
      expect_close(to_device(c, kCpu), cuop::matmul(to_device(a, kCpu), b), 1e-13, strategy);
    }
  });
}

TEST(RankDevices, APlainProcessWorksOnAllItsGpus) {
  const int gpus = backend::device_count(DeviceType::kCuda);
  const backend::OwnedStream own(gpu(1));
  const StreamScope scope(own.get());
  const CommunicatorPtr self = make_self_communicator();
  const Tensor a = to_device(noise({40, 30}), gpu(1)), b = to_device(noise({30, 20}), gpu(1));
  const Tensor c = matmul_from_root(self, cuop::add(a, a), b, {.strategy = "row"});
  EXPECT_EQ(c.device(), gpu(1));
  EXPECT_EQ(last_report().plan.ranks, gpus);
  const Tensor twice = to_device(cuop::add(a, a), kCpu);
  expect_close(to_device(c, kCpu), cuop::matmul(twice, to_device(b, kCpu)), 1e-13, "row");
  Tensor recorded;
  {
    const Fused fused;
    recorded = matmul_from_root(self, cuop::add(a, a), b, {.strategy = "k_split"});
  }
  expect_close(to_device(recorded, kCpu), to_device(c, kCpu), 1e-13, "recorded");
  const std::string wrong = failure_of([&] { matmul_from_root(self, a, a, {.strategy = "row"}); });
  EXPECT_THAT(wrong, HasSubstr("do not fit"));
  EXPECT_THAT(failure_of([&] { matmul_from_root(self, a, {}, {}); }), HasSubstr("not given"));

  SolveInfo info;
  const Tensor rhs = to_device(noise({12, 9}), gpu(1));
  const JacobiOptions options{.iterations = 7, .tolerance = 0.0};
  const Tensor u = jacobi_2d_from_root(self, rhs, rhs, options, &info, {.strategy = "row"});
  EXPECT_EQ(u.device(), gpu(1));
  EXPECT_EQ(info.sweeps, 7);
  // Small work is not worth another GPU.
  matmul_from_root(self, a, b);
  EXPECT_EQ(last_report().plan.strategy, "root");
}

TEST(RankDevices, APlainProcessKeepsItsRanksAndTheirPlans) {
  const int gpus = backend::device_count(DeviceType::kCuda);
  const CommunicatorPtr self = make_self_communicator();
  const Tensor x = to_device(noise({12, 5}), gpu(0));
  std::atomic<int> plans = 0;
  std::vector<std::thread::id> threads(static_cast<size_t>(gpus));
  std::atomic<int> culprit = -1;
  Operation scaled = map_operation("scaled", {"x"}, [](const auto& inputs, const auto&) {
    Mapping mapping;
    mapping.op = "scaled";
    mapping.shape = inputs.at(0).shape;
    mapping.dtype = inputs.at(0).dtype;
    mapping.needed = [](size_t, const Box& box) { return box; };
    mapping.choices = {{"row", split_over_ranks(inputs.at(0).sharding.mesh().size(), 2, 0)}};
    mapping.work = [](const std::vector<Part>& parts, const Box&, const Tensor*) {
      return cuop::add(parts[0].local, parts[0].local);
    };
    return mapping;
  });
  const auto plan = scaled.plan;
  scaled.plan = [&plans, plan](const PlanArguments& given) {
    ++plans;
    return plan(given);
  };
  const auto execute = scaled.execute;
  scaled.execute = [&, execute](const Plan& made, const std::vector<DistTensor>& inputs) {
    const int rank = inputs[0].comm().rank();
    threads[static_cast<size_t>(rank)] = std::this_thread::get_id();
    EXPECT_EQ(inputs[0].device(), gpu(rank));
    if (rank == culprit) throw MemoryError("scaled: no memory left");
    return execute(made, inputs);
  };
  const auto call = [&] { return run_rooted(self, scaled, {x}, {.strategy = "row"}); };
  const std::vector<double> expected = values(cuop::add(x, x));
  EXPECT_EQ(values(call()), expected);
  EXPECT_EQ(last_report().plan.strategy, "row");
  const std::vector<std::thread::id> first = threads;
  plans = 0;
  EXPECT_EQ(values(call()), expected);
  if (gpus == 1) return;  // no ranks but this one
  EXPECT_EQ(plans, 0);
  EXPECT_EQ(threads, first);
  culprit = gpus - 1;
  EXPECT_THAT(failure_of(call), HasSubstr("no memory left"));
  culprit = -1;
  EXPECT_EQ(values(call()), expected);
}

TEST(RankDevices, TensorsOfOneCallLieOnOneDevice) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, counting({4, 4}), rows(2));
    const DistTensor y = on_device(x, kCpu);
    EXPECT_THAT(failure_of([&] { add(x, y); }), HasSubstr("they must be on one device"));
    EXPECT_EQ(values(gather_all(add(y, y))), values(gather_all(add(x, x))));
  });
}

TEST(RankDevices, LongPiecesComeFromMappedMemoryAndFromAnothersAlike) {
  constexpr int64_t kSide = 2900;  // pieces of more than 16 MiB, which go by the copy engine
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor whole = noise({kSide, kSide});
    const Sharding columns(Mesh::line(2), split_dim(2, 1));
    const Interval mine = columns.owner_box(whole.shape(), comm->rank()).interval(1);
    const Tensor expected = slice(whole, 1, mine.low, mine.high);
    for (const bool is_mapped : {true, false}) {
      std::optional<memory::ResourceScope> scope;
      if (!is_mapped) scope.emplace(backend::cuda::direct_memory(home()));
      const DistTensor x = laid_out(comm, clone(whole), rows(2));
      EXPECT_EQ(are_mapped(std::array{Patch{0, x.local()}}), is_mapped);
      scope.reset();
      expect_close(redistribute(x, columns).local(), expected, 0,
                   is_mapped ? "mapped" : "another's");
    }
  });
}

TEST(RankDevices, CallsAreWorkOfTheRanksStreams) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const backend::OwnedStream own(home());
    const StreamScope scope(own.get());
    DistTensor x = laid_out(comm, full({6, 1000}, 1.0, DType::kFloat64, home()), rows(3));
    const Sharding columns(Mesh::line(3), split_dim(2, 1));
    for (int round = 0; round < 8; ++round) {
      x = redistribute(add(x, x), round % 2 == 0 ? columns : rows(3));
    }
    const Tensor sum = gather_all(reduce(x, {.kind = ReduceKind::kSum}));
    EXPECT_EQ(values(sum), std::vector<double>{256.0 * 6000.0});
  });
}

}  // namespace
}  // namespace cuop::dist
