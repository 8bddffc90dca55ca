#include "cuop/dist/plan/floor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "cuop/core/text.h"
#include "cuop/dist/algo/einsum.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/dist/plan/pipeline_plan.h"
#include "cuop/dist/plan/poisson_plan.h"
#include "cuop/dist/plan/redistribute_plan.h"
#include "cuop/dist/plan/reshape_plan.h"
#include "cuop/ops/einsum/path.h"
#include "tests/error_of.h"
#include "tests/sanitized.h"

namespace cuop::dist {
namespace {

using testing::HasSubstr;

constexpr int kRankCount = 4;
/// Of the plain Machine: 4e10 flops, 1e10 bytes of memory, 4e9 of links a second, and of a message
/// 4.5 us.
constexpr double kFirstByte = 4.5e-6;

Sharding root(int ranks = kRankCount) { return Sharding::on_rank(Mesh::line(ranks), 0); }
Sharding rows(int ndim, int ranks = kRankCount) { return split_over_ranks(ranks, ndim, 0); }
Sharding everywhere(int ranks = kRankCount) { return Sharding::replicated(Mesh::line(ranks)); }

Placement placed(const Shape& shape, const Sharding& sharding, DType dtype = DType::kFloat32) {
  return {"x", shape, dtype, sharding};
}

Machine slow_links(double bandwidth) {
  Machine machine;
  machine.link_bandwidth = bandwidth;
  return machine;
}

Floor floor(const Operation& operation, const std::vector<Placement>& inputs,
            const std::optional<Sharding>& wanted, const Machine& machine = {}) {
  return operation.plan({inputs, wanted, machine, ""}).floor;
}

TEST(Floor, SharesWorkUntilLinksTakeAsLong) {
  // The example of plan/floor.h.
  const Floor shared = floor(transpose_operation(0, 1), {placed({1000, 2000}, root())}, root());
  EXPECT_NEAR(shared.seconds, 1.6e-3 * 2e-3 / 3.6e-3, 1e-12);
  EXPECT_EQ(shared.memory_bytes, 16'000'000);
  EXPECT_EQ(shared.flops, 0.0);
  EXPECT_NEAR(static_cast<double>(shared.link_bytes), 8e6 * (1 - 2.0 / 3.6), 1.0);
  // One rank has nobody to share with.
  const Floor alone = floor(transpose_operation(0, 1), {placed({1000, 2000}, root(1))}, root(1));
  EXPECT_DOUBLE_EQ(alone.seconds, 1.6e-3);
  EXPECT_EQ(alone.link_bytes, 0);
  // Work that takes no longer than the first byte stays where it is.
  const Floor little = floor(transpose_operation(0, 1), {placed({10, 100}, root())}, root());
  EXPECT_DOUBLE_EQ(little.seconds, 8e3 / 1e10);
  EXPECT_EQ(little.link_bytes, 0);
  const Floor more = floor(transpose_operation(0, 1), {placed({100, 100}, root())}, root());
  EXPECT_DOUBLE_EQ(more.seconds, kFirstByte);  // and not 8e4 / 1e10 / 4
}

TEST(Floor, CountsWhatHasToArriveInAnyCase) {
  // Of blocks of rows that become blocks of rows of the transpose 3 / 4 come from others.
  const auto turned = [](const Machine& machine) {
    return floor(transpose_operation(0, 1), {placed({1000, 2000}, rows(2))}, rows(2), machine);
  };
  EXPECT_DOUBLE_EQ(turned({}).seconds, 16e6 / 1e10 / kRankCount);
  EXPECT_DOUBLE_EQ(turned(slow_links(1e9)).seconds, kFirstByte + 1.5e6 / 1e9);
  EXPECT_EQ(turned({}).link_bytes, 1'500'000);
  Machine hosts = slow_links(1e9);  // with networks that work at the same time
  hosts.ranks_per_host = 2;
  hosts.network_bandwidth = 5e8;
  EXPECT_DOUBLE_EQ(turned(hosts).seconds, kFirstByte + 1.5e6 / 1.5e9);
  // A sum that is wanted where it is made needs no links; wanted everywhere it does.
  const std::vector<Placement> terms{placed({1000, 2000}, rows(2)),
                                     placed({1000, 2000}, rows(2), DType::kFloat64)};
  const double bytes = 2e6 * (4 + 8 + 8);
  EXPECT_DOUBLE_EQ(floor(add_operation(), terms, {}).seconds, bytes / 1e10 / kRankCount);
  EXPECT_EQ(floor(add_operation(), terms, {}).link_bytes, 0);
  const Floor spread = floor(add_operation(), terms, everywhere(), slow_links(1e8));
  EXPECT_EQ(spread.link_bytes, 1'500'000 * 8);  // of the float64 term, or of the sum
  EXPECT_DOUBLE_EQ(spread.seconds, kFirstByte + 12e6 / 1e8);
}

TEST(Floor, OfProducts) {
  const auto product = [](const Machine& machine, const std::optional<Sharding>& wanted) {
    return floor(matmul_operation(), {placed({1000, 500}, root()), placed({500, 2000}, root())},
                 wanted, machine);
  };
  const double alone = 2e9 / 4e10;
  EXPECT_DOUBLE_EQ(product({}, root()).seconds, alone / kRankCount);
  EXPECT_EQ(product({}, root()).flops, 2e9);
  EXPECT_EQ(product({}, root()).memory_bytes, 4 * (500'000 + 1'000'000 + 2'000'000));
  // 8e6 bytes of C against at least 2 * 500 * sqrt(2e6) elements of A and B.
  const double back = 8e6 / 1e8, there = 4 * 1000 * std::sqrt(2e6) / 1e8;
  EXPECT_NEAR(product(slow_links(1e8), root()).seconds, alone * back / (alone + back), 1e-12);
  EXPECT_NEAR(product(slow_links(1e8), {}).seconds, alone * there / (alone + there), 1e-12);
  // Blocks that may be rounded are multiplied as fast as the shorter dtype.
  Machine units;
  units.half_speed = 8.0;
  const auto wired = [&](const Wire& wire, ProductPath path) {
    return floor(matmul_operation(wire, path),
                 {placed({1000, 500}, rows(2)), placed({500, 2000}, rows(2))}, {}, units)
        .seconds;
  };
  const Wire wire = Wire::narrow(DType::kFloat16, "test");
  EXPECT_DOUBLE_EQ(wired({}, ProductPath::kDense), alone / kRankCount);
  EXPECT_DOUBLE_EQ(wired(wire, ProductPath::kAuto), alone / kRankCount);
  EXPECT_DOUBLE_EQ(wired(wire, ProductPath::kDense), alone / 8 / kRankCount);
  const Plan chunks = plan_pipelined_matmul({1000, 2000, 500, DType::kFloat32, root()}, {});
  EXPECT_DOUBLE_EQ(chunks.floor.seconds, alone / kRankCount);
  const Floor pair =
      floor(einsum_operation("ij,jk->ik", 2, {}),
            {placed({1000, 500}, root()), placed({500, 2000}, root())}, root(), slow_links(1e8));
  EXPECT_NEAR(pair.seconds, alone * back / (alone + back), 1e-12);
  const Floor batch =
      floor(batch_matmul_operation(),
            {placed({10, 100, 500}, rows(3)), placed({500, 2000}, everywhere())}, std::nullopt);
  EXPECT_DOUBLE_EQ(batch.seconds, alone / kRankCount);
  EXPECT_EQ(batch.memory_bytes, 4 * (500'000 + 1'000'000 + 2'000'000));
}

TEST(Floor, OfReductions) {
  const auto sum = [](const Sharding& x, const std::optional<Sharding>& wanted) {
    const ReduceOptions columns{.axes = {0}};
    return floor(reduce_operation(columns), {placed({5000, 2000}, x)}, wanted);
  };
  const double memory = 4e7 / 1e10, links = 4e7 / 4e9;
  EXPECT_DOUBLE_EQ(sum(rows(2), {}).seconds, memory / kRankCount);
  EXPECT_EQ(sum(rows(2), {}).link_bytes, 0);
  EXPECT_NEAR(sum(root(), root()).seconds, memory * links / (memory + links), 1e-12);
  EXPECT_EQ(sum(rows(2), everywhere()).link_bytes, 2000 * 4);
  EXPECT_EQ(sum(split_over_ranks(kRankCount, 2, 1), everywhere()).link_bytes, 1500 * 4);
  EXPECT_EQ(sum(everywhere(), everywhere()).link_bytes, 0);
}

TEST(Floor, OfTransforms) {
  const int64_t n = 1 << 20;
  const double alone = 5.0 * n * 20 / (0.4 * 4e10);  // no line is faster than a short one
  const auto line = [&](const std::optional<Sharding>& wanted, const Machine& machine) {
    return floor(fft_operation({}), {placed({n}, rows(1), DType::kComplex64)}, wanted, machine);
  };
  EXPECT_DOUBLE_EQ(line({}, {}).seconds, alone / kRankCount);
  EXPECT_EQ(line(rows(1), {}).link_bytes, n / 4 * 8);
  EXPECT_DOUBLE_EQ(line(rows(1), slow_links(1e8)).seconds, kFirstByte + n / 4 * 8 / 1e8);
  EXPECT_EQ(line(everywhere(), {}).link_bytes, n * 3 / 4 * 8);  // what others have of x
  // Half of the arithmetic, and of the bytes.
  FftBatch real;
  real.kind = FftKind::kRfft;
  const Floor half = floor(fft_operation(real), {placed({n}, root())}, root(), slow_links(1e8));
  const double links = 4.0 * n / 1e8;
  EXPECT_NEAR(half.seconds, alone / 2 * links / (alone / 2 + links), 1e-9);
  // A grid in rows is wanted in rows: of each column the other ranks' numbers.
  const Floor grid =
      floor(fft2d_operation({}), {placed({64, 32}, rows(2), DType::kComplex64)}, rows(2));
  EXPECT_EQ(grid.link_bytes, 16 * 32 * 8);
  EXPECT_EQ(
      floor(fft_operation({}), {placed({64, 32}, rows(2), DType::kComplex64)}, rows(2)).link_bytes,
      0);
}

TEST(Floor, OfSweepsAndSolvers) {
  const Shape shape{1000, 1000};
  const Placement kernel = placed({3, 3}, root());
  const auto swept = [&](int64_t sweeps) {
    return floor(stencil_operation(Boundary::kZero, sweeps), {placed(shape, root()), kernel},
                 root());
  };
  const double cell = 18 / 4e10, memory = 8e6 / 1e10, links = 4e6 / 4e9;
  EXPECT_DOUBLE_EQ(swept(10).seconds, 1e7 * cell / kRankCount);
  EXPECT_DOUBLE_EQ(swept(1).seconds, memory * links / (memory + links));
  EXPECT_EQ(swept(10).memory_bytes, 8'000'000);  // one pass over memory may be enough
  const auto info = std::make_shared<SolveInfo>();
  const std::vector<Placement> both{placed(shape, rows(2)), placed(shape, rows(2))};
  const Floor jacobi = floor(jacobi_operation({.iterations = 100}, info), both, {});
  EXPECT_DOUBLE_EQ(jacobi.seconds, 1e8 * 9 / 4e10 / kRankCount);
  const Floor direct = floor(direct_solver("direct", 1.0, AxisEnds::kZero, info), both, {});
  EXPECT_DOUBLE_EQ(direct.seconds, 2 * 5e6 * std::log2(1000.0) / 16e9 / kRankCount);
  const auto solved = [&](RowSolver solver) {
    return plan_row_solver({"solve", both, solver, AxisEnds::kZero, 10, {}}, {}).floor;
  };
  EXPECT_DOUBLE_EQ(solved(RowSolver::kCg).seconds,
                   10 * memory / kRankCount);  // its sums need passes
  EXPECT_EQ(solved(RowSolver::kRedBlackSor).memory_bytes, 8'000'000);
  EXPECT_DOUBLE_EQ(solved(RowSolver::kRedBlackSor).seconds, 10 * 1e6 * 10 / 4e10 / kRankCount);
  const double grids = solved(RowSolver::kMultigrid).flops / (10 * 50 * 1e6);
  EXPECT_GT(grids, 1.3);
  EXPECT_LT(grids, 1.4);
}

TEST(Floor, OfOtherShapes) {
  const auto reshaped = [](const std::optional<Sharding>& wanted) {
    return plan_reshape({placed({8, 1000}, rows(2)), {1000, 8}, wanted}, {}).floor;
  };
  EXPECT_EQ(reshaped({}).seconds, 0.0);
  EXPECT_EQ(reshaped(rows(2)).seconds, 0.0);  // the same elements in the same order
  EXPECT_EQ(reshaped(everywhere()).link_bytes, 6000 * 4);
  EXPECT_DOUBLE_EQ(reshaped(everywhere()).seconds, kFirstByte + 24e3 / 4e9);
}

TEST(Floor, OfMoves) {
  const auto moved = [](const Sharding& to, const Wire& wire = {}, const Machine& machine = {}) {
    return plan_redistribute(placed({1000, 2000}, rows(2)), to, machine, wire);
  };
  EXPECT_EQ(moved(rows(2)).floor.seconds, 0.0);
  EXPECT_EQ(moved(rows(2)).seconds(), 0.0);
  const Sharding columns = split_over_ranks(kRankCount, 2, 1);
  EXPECT_DOUBLE_EQ(moved(columns).floor.seconds, kFirstByte + 1.5e6 / 4e9);
  EXPECT_DOUBLE_EQ(moved(columns).seconds(), 4e-6 + 3 * 5e-7 + 1.5e6 / 4e9);
  EXPECT_EQ(moved(columns).bytes(), 6'000'000);
  const Plan narrow = moved(columns, Wire::narrow(DType::kFloat16, "test"));
  EXPECT_EQ(narrow.floor.link_bytes, 750'000);
  EXPECT_EQ(narrow.bytes(), 3'000'000);
  EXPECT_EQ(moved(columns, Wire::sparse(0.5, "test")).floor.seconds, 0.0);
  EXPECT_THAT(test::error_of<ShapeError>([&] { moved(rows(2, 3)); }),
              HasSubstr("is not a mesh of the 4 ranks of the tensor"));
}

TEST(Floor, IsShown) {
  const Plan plan =
      transpose_operation(0, 1).plan({{placed({1000, 2000}, root())}, root(), {}, ""});
  EXPECT_THAT(
      plan.explain(),
      HasSubstr("  floor   at least 0 flop and 15.3 MiB of memory in all, 3.39 MiB over the "
                "links of a rank: 888.9 us\n"));
  EXPECT_THAT(plan.to_string(), HasSubstr("floor 888.9 us"));
  EXPECT_THAT(plan.to_json(), HasSubstr("\"floor_memory_bytes\":16000000"));
}

/// Random problems: whatever lies where, on whatever machine.
class Random {
 public:
  explicit Random(unsigned seed) : generator_(seed) {}

  int64_t below(int64_t count) {
    return std::uniform_int_distribution<int64_t>(0, count - 1)(generator_);
  }
  template <class T>
  T one_of(const std::vector<T>& all) {
    return all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))];
  }
  double between(double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<>()(generator_));
  }
  int64_t size() { return one_of<int64_t>({0, 1, 2, 3, 7, 8, 16, 33, 128, 1000}); }
  Shape shape(int ndim) {
    Shape made;
    for (int dim = 0; dim < ndim; ++dim) made.push_back(size());
    return made;
  }
  int ranks() { return one_of<int>({1, 2, 3, 4, 6, 7}); }

  Machine machine() {
    Machine made;
    made.flops = between(1e9, 1e14);
    made.half_speed = between(0.5, 16);
    made.double_speed = between(0.1, 1);
    made.fft_speed = between(0.02, 1);
    made.long_fft_speed = between(0.02, 1);
    made.transposed_speed = between(0.05, 1);
    made.memory_bandwidth = between(1e9, 1e13);
    made.link_bandwidth = between(1e7, 1e12);
    made.network_bandwidth = between(1e7, 1e11);
    made.latency = between(1e-7, 1e-4);
    made.message_overhead = between(1e-8, 1e-5);
    made.network_latency = between(1e-7, 1e-3);
    made.network_overhead = between(1e-8, 1e-4);
    made.ranks_per_host = one_of<int64_t>({0, 1, 2, 3});
    return made;
  }
  Sharding sharding(int ranks, int ndim) {
    const auto rank = static_cast<int>(below(ranks));
    std::vector<Sharding> all{Sharding::replicated(Mesh::line(ranks)),
                              Sharding::on_rank(Mesh::line(ranks), rank)};
    for (int dim = 0; dim < ndim; ++dim) all.push_back(split_over_ranks(ranks, ndim, dim));
    if (ranks % 2 == 0 && ndim > 1) {
      std::vector<Spec::Axes> dims(static_cast<size_t>(ndim));
      dims[static_cast<size_t>(below(ndim))].push_back("a");
      dims[static_cast<size_t>(below(ndim))].push_back("b");
      all.push_back(Sharding(Mesh({2, ranks / 2}, {"a", "b"}), Spec(dims)));
    }
    return one_of(all);
  }
  std::optional<Sharding> wanted(int ranks, int ndim) {
    if (below(3) == 0) return std::nullopt;
    return sharding(ranks, ndim);
  }
  Placement tensor(int ranks, const Shape& shape, DType dtype) {
    return {"x", shape, dtype, sharding(ranks, shape.ndim())};
  }
  /// Some lie on one rank together, as those of calls from the root do.
  std::vector<Placement> tensors(int ranks, const std::vector<Shape>& shapes, DType dtype) {
    std::vector<Placement> all;
    const bool is_rooted = below(3) == 0;
    for (const Shape& each : shapes) {
      all.push_back(tensor(ranks, each, dtype));
      if (is_rooted) all.back().sharding = Sharding::on_rank(Mesh::line(ranks), 0);
    }
    return all;
  }

 private:
  std::mt19937 generator_;
};

/// Plans one problem.
using PlanOne = std::function<Plan(Random&, int ranks, const Machine&)>;

void expect_above_floor(const char* name, int problems, const PlanOne& plan_one) {
  int tight = 0;
  for (int i = 0; i < problems; i += test::kCaseStep) {
    Random random(static_cast<unsigned>(i));
    const int ranks = random.ranks();
    const Machine machine = random.machine();
    const Plan plan = plan_one(random, ranks, machine);
    ASSERT_GE(plan.seconds() * (1 + 1e-9), plan.floor.seconds)
        << name << ", problem " << i << '\n'
        << plan.explain() << to_text(machine);
    for (const Candidate& candidate : plan.candidates) {
      ASSERT_GE(candidate.seconds * (1 + 1e-9), plan.floor.seconds)
          << name << ", problem " << i << ", " << candidate.strategy << ' ' << candidate.detail
          << '\n'
          << plan.explain() << to_text(machine);
    }
    tight += plan.floor.seconds > 0 && plan.seconds() <= 4 * plan.floor.seconds;
  }
  EXPECT_GT(tight, problems / 50 / test::kCaseStep) << name << ": a floor that is near to nothing";
}

Plan planned(const Operation& operation, Random& random, int ranks, const Machine& machine,
             const std::vector<Shape>& shapes, int result_ndim, DType dtype) {
  return operation.plan(
      {random.tensors(ranks, shapes, dtype), random.wanted(ranks, result_ndim), machine, ""});
}

DType some_float(Random& random) {
  return random.one_of<DType>(
      {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64});
}

TEST(Floor, NoPlanOfElementwiseWorkIsBelow) {
  expect_above_floor("add", 600, [](Random& random, int ranks, const Machine& machine) {
    const Shape shape = random.shape(2);
    Shape other = shape;
    if (random.below(3) == 0) other[static_cast<int>(random.below(2))] = 1;
    std::vector<Placement> terms = random.tensors(ranks, {shape, other}, some_float(random));
    terms[1].dtype = some_float(random);
    return add_operation().plan({terms, random.wanted(ranks, 2), machine, ""});
  });
  expect_above_floor("transpose", 600, [](Random& random, int ranks, const Machine& machine) {
    return planned(transpose_operation(0, random.below(3)), random, ranks, machine,
                   {random.shape(3)}, 3, some_float(random));
  });
  expect_above_floor("reduce", 600, [](Random& random, int ranks, const Machine& machine) {
    ReduceOptions options{random.one_of<ReduceKind>({ReduceKind::kSum, ReduceKind::kVar})};
    if (random.below(3) > 0) options.axes = {random.below(3)};
    options.keepdims = random.below(2) == 0;
    const int ndim = options.keepdims ? 3 : options.axes.values().empty() ? 0 : 2;
    return planned(reduce_operation(options), random, ranks, machine, {random.shape(3)}, ndim,
                   some_float(random));
  });
  expect_above_floor("redistribute", 400, [](Random& random, int ranks, const Machine& machine) {
    const Wire wire = random.below(2) == 0 ? Wire{} : Wire::narrow(DType::kFloat16, "test");
    return plan_redistribute(random.tensor(ranks, random.shape(2), some_float(random)),
                             random.sharding(ranks, 2), machine, wire);
  });
  expect_above_floor("reshape", 400, [](Random& random, int ranks, const Machine& machine) {
    const Shape shape{random.size(), random.size(), 6};
    const Shape to{shape[0] * 2, shape[1] * 3};
    return plan_reshape(
        {random.tensor(ranks, shape, some_float(random)), to, random.wanted(ranks, 2)}, machine);
  });
}

TEST(Floor, NoPlanOfProductsIsBelow) {
  expect_above_floor("matmul", 600, [](Random& random, int ranks, const Machine& machine) {
    const Shape a{random.size(), random.size()}, b{a[1], random.size()};
    const DType dtype = some_float(random);
    const Wire wire =
        random.below(2) == 0
            ? Wire{}
            : Wire::narrow(random.one_of<DType>({DType::kFloat16, DType::kBFloat16}), "test");
    return planned(matmul_operation(wire), random, ranks, machine, {a, b}, 2, dtype);
  });
  expect_above_floor("pipelined", 300, [](Random& random, int ranks, const Machine& machine) {
    return plan_pipelined_matmul({random.size(), random.size(), random.size(), DType::kFloat32,
                                  Sharding::on_rank(Mesh::line(ranks), 0), random.below(4)},
                                 machine);
  });
  expect_above_floor("batch", 300, [](Random& random, int ranks, const Machine& machine) {
    const Shape a{random.size(), random.size(), random.size()}, b{a[2], random.size()};
    return planned(batch_matmul_operation(), random, ranks, machine, {a, b}, 3, some_float(random));
  });
  expect_above_floor("conv", 300, [](Random& random, int ranks, const Machine& machine) {
    const int64_t channels = 1 + random.below(8);
    const Shape x{1 + random.size(), channels, 9 + random.size(), 9 + random.below(90)};
    const Shape w{1 + random.below(9), channels, 1 + random.below(4), 1 + random.below(4)};
    ConvOptions options;
    options.stride = {1 + random.below(5), 1 + random.below(5)};
    return planned(conv_operation(options), random, ranks, machine, {x, w}, 4, DType::kFloat32);
  });
  expect_above_floor("einsum", 300, [](Random& random, int ranks, const Machine& machine) {
    const auto size = [&] { return random.one_of<int64_t>({1, 2, 5, 16, 60}); };
    const int64_t i = size(), j = size(), k = size(), l = size();
    struct Case {
      const char* equation;
      std::vector<Shape> shapes;
      int ndim;
    };
    const Case each = random.one_of<Case>({{"ij,jk->ik", {{i, j}, {j, k}}, 2},
                                           {"ij,jk,kl->il", {{i, j}, {j, k}, {k, l}}, 2},
                                           {"bij,bjk->bik", {{l, i, j}, {l, j, k}}, 3},
                                           {"ij,ij->", {{i, j}, {i, j}}, 0},
                                           {"ij->j", {{i, j}}, 1},
                                           {"ij->ji", {{i, j}}, 2},
                                           {"iij,jkk->ik", {{i, i, j}, {j, k, k}}, 2},
                                           {"i,j->ij", {{i}, {j}}, 2}});
    return planned(einsum_operation(each.equation, each.shapes.size(), {}), random, ranks, machine,
                   each.shapes, each.ndim, some_float(random));
  });
}

TEST(Floor, NoPlanOfTransformsIsBelow) {
  expect_above_floor("fft", 600, [](Random& random, int ranks, const Machine& machine) {
    FftBatch batch;
    batch.kind =
        random.one_of<FftKind>({FftKind::kFft, FftKind::kIfft, FftKind::kRfft, FftKind::kIrfft});
    const int ndim = 1 + static_cast<int>(random.below(2));
    Shape shape;
    for (int dim = 0; dim < ndim; ++dim) {
      shape.push_back(random.one_of<int64_t>({2, 3, 8, 60, 257, 4096, 1 << 16}));
    }
    batch.dim = random.below(ndim);
    if (random.below(2) == 0) batch.n = 1 + random.below(5000);
    const bool is_real = batch.kind == FftKind::kRfft;
    return planned(fft_operation(batch), random, ranks, machine, {shape}, ndim,
                   is_real ? DType::kFloat32 : DType::kComplex64);
  });
  expect_above_floor("fft2d", 400, [](Random& random, int ranks, const Machine& machine) {
    Fft2dBatch batch;
    const auto size = [&] { return random.one_of<int64_t>({1, 2, 3, 8, 60, 257, 1024}); };
    if (random.below(2) == 0) batch.s = {size(), size()};
    const Shape shape{size(), size(), size()};
    return planned(fft2d_operation(batch), random, ranks, machine, {shape}, 3, DType::kComplex128);
  });
}

TEST(Floor, NoPlanOfSweepsIsBelow) {
  const auto info = std::make_shared<SolveInfo>();
  const auto boundary = [](Random& random) {
    return random.below(2) == 0 ? Boundary::kZero : Boundary::kPeriodic;
  };
  expect_above_floor("stencil", 400, [&](Random& random, int ranks, const Machine& machine) {
    const Shape grid{1 + random.size(), 1 + random.size()};
    return planned(stencil_operation(boundary(random), random.below(20)), random, ranks, machine,
                   {grid, {3, 3}}, 2, DType::kFloat32);
  });
  expect_above_floor("jacobi", 400, [&](Random& random, int ranks, const Machine& machine) {
    const Shape grid{1 + random.size(), 1 + random.size()};
    const JacobiOptions options{.boundary = boundary(random), .iterations = random.below(50)};
    return planned(jacobi_operation(options, info), random, ranks, machine, {grid, grid}, 2,
                   DType::kFloat64);
  });
  expect_above_floor("direct", 300, [&](Random& random, int ranks, const Machine& machine) {
    const Shape grid{1 + random.size(), 1 + random.size()};
    const AxisEnds ends =
        random.one_of<AxisEnds>({AxisEnds::kZero, AxisEnds::kPeriodic, AxisEnds::kZeroFlux});
    return planned(direct_solver("direct", 1.0, ends, info), random, ranks, machine, {grid, grid},
                   2, DType::kFloat32);
  });
  expect_above_floor("solvers", 400, [&](Random& random, int ranks, const Machine& machine) {
    const Shape grid{1 + 4 * random.size(), 1 + 4 * random.size()};
    const RowSolver solver = random.one_of<RowSolver>(
        {RowSolver::kJacobi, RowSolver::kRedBlackSor, RowSolver::kCg, RowSolver::kMultigrid});
    return plan_row_solver({"solve", random.tensors(ranks, {grid, grid}, DType::kFloat32), solver,
                            AxisEnds::kZero, random.below(100), random.wanted(ranks, 2)},
                           machine);
  });
}

}  // namespace
}  // namespace cuop::dist
