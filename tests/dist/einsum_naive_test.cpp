// Plans of einsum beside what one writes by hand: NumPy's order, each pair in blocks of the first
// index of its result.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "cuop/dist/plan/map_plan.h"
#include "tests/dist/cluster_machine.h"
#include "tests/dist/einsum_tasks.h"

namespace cuop::dist {
namespace {

using rank_test::einsum_task;
using ::testing::HasSubstr;
using ::testing::Not;

/// As of benchmarks/einsum_plans.py.
struct NetworkCase {
  std::string_view equation;
  std::string sizes;      ///< of its indices, as "a32 b64"
  LinearPath numpy_path;  ///< of numpy.einsum_path(optimize="greedy")
};

const NetworkCase kNetworks[] = {
    {"ab,bc,cd,de,ef->af", "a4096 b64 c4096 d64 e4096 f64", {{1, 2}, {1, 2}, {1, 2}, {0, 1}}},
    {"ab,bc,cd->ad", "a6144 b6144 c64 d6144", {{0, 1}, {0, 1}}},
    {"ab,bc,cd,de->ae", "a4000 b200 c6000 d300 e4000", {{1, 2}, {1, 2}, {0, 1}}},
    {"ni,nj->ij", "n65536 i2048 j2048", {{0, 1}}},
    {"pa,pb,aqc,bqd,crk,drl,ks,ls->",
     "p16 q16 r16 s16 a512 b512 c512 d512 k512 l512",
     {{0, 2}, {0, 1}, {0, 2}, {0, 1}, {0, 2}, {0, 1}, {0, 1}}},
    {"awb,wstv,vurk,ckd,btrd->asuc",
     "a768 b768 c768 d768 w5 v5 k5 s2 t2 u2 r2",
     {{1, 2}, {0, 1, 2, 3}}},
    {"awb,wstv,cvd,btd->asc", "a1024 b1024 c1024 d1024 w8 v8 s4 t4", {{0, 1, 2, 3}}},
    {"axb,byc,czd,dwa->xyzw", "a40 b40 c40 d40 x48 y48 z48 w48", {{0, 1}, {0, 1}, {0, 1}}},
    {"ijk,ai,bj,ck->abc", "i320 j320 k320 a320 b320 c320", {{0, 1}, {0, 2}, {0, 1}}},
    {"ijk,ia,jb,kc->abc", "i512 j512 k512 a32 b32 c32", {{0, 1}, {0, 2}, {0, 1}}},
    {"abc,ia,jb,kc->ijk", "i512 j512 k512 a32 b32 c32", {{0, 1}, {0, 2}, {0, 1}}},
    {"ijk,jr,kr->ir", "i512 j512 k512 r64", {{0, 1}, {0, 1}}},
    {"ir,jr,kr->ijk", "i512 j512 k512 r64", {{0, 1}, {0, 1}}},
    {"ijk,jl,km->ilm", "i384 j384 k384 l384 m384", {{0, 1}, {0, 1}}},
    {"klcd,ikac,jlbd->ijab", "k24 l24 i24 j24 a64 b64 c64 d64", {{0, 1}, {0, 1}}},
    {"pqrs,pi,qj,ra,sb->ijab", "p72 q72 r72 s72 i24 j24 a48 b48", {{0, 1}, {0, 3}, {0, 2}, {0, 1}}},
    {"iaQ,jbQ->iajb", "i32 a128 j32 b128 Q512", {{0, 1}}},
    {"Qpr,rs,Qqs->pq", "Q384 p384 r384 q384 s384", {{0, 1}, {0, 1}}},
    {"abp,cdq,pqr,rx->abcdx", "a24 b24 c24 d24 p192 q192 r64 x24", {{2, 3}, {0, 2}, {0, 1}}},
    {"abk,ia,jb->ijk", "a256 b256 k512 i256 j256", {{0, 1}, {0, 1}}},
    {"bqhd,bkhd->bhqk", "b8 q1024 k1024 h16 d64", {{0, 1}}},
    {"bhqk,bkhd->bqhd", "b8 q1024 k1024 h16 d64", {{0, 1}}},
    {"bqhd,bkhd,bkhe->bqhe", "b8 q2048 k2048 h16 d64 e64", {{1, 2}, {0, 1}}},
    {"bqd,dhe,bkf,fhe->bhqk", "b8 q1024 k1024 d512 f512 h8 e64", {{0, 1}, {0, 1}, {0, 1}}},
    {"bld,dhe->blhe", "b8 l2048 d1024 h16 e64", {{0, 1}}},
    {"bqhd,hde->bqe", "b8 q2048 h16 d64 e1024", {{0, 1}}},
    {"bld,dr,rk->blk", "b8 l2048 d4096 r16 k4096", {{0, 1}, {0, 1}}},
    {"bld,df,fk->blk", "b4 l1024 d1024 f4096 k1024", {{1, 2}, {0, 1}}},
    {"bi,oij,bj->bo", "b4096 i160 o160 j160", {{0, 1, 2}}},
    {"bi,ij,bj->b", "b65536 i1024 j1024", {{0, 1}, {0, 1}}},
    {"te,td,edf->tf", "t4096 e8 d1024 f1024", {{0, 1, 2}}},
};

std::vector<Shape> shapes_of(const NetworkCase& network) {
  std::map<char, int64_t> sizes;
  std::istringstream text(network.sizes);
  char name = 0;
  for (int64_t size = 0; text >> name >> size;) sizes[name] = size;
  std::vector<Shape> shapes(1);
  for (const char letter : network.equation.substr(0, network.equation.find("->"))) {
    if (letter == ',') {
      shapes.emplace_back();
    } else {
      shapes.back().push_back(sizes.at(letter));
    }
  }
  return shapes;
}

/// Operands and result on rank 0, or operands in rows over the ranks.
EinsumTask network_task(const NetworkCase& network, int ranks, bool is_rooted) {
  const std::vector<Shape> shapes = shapes_of(network);
  std::vector<Sharding> lying;
  for (const Shape& shape : shapes) {
    lying.push_back(is_rooted ? Sharding::on_rank(Mesh::line(ranks), 0)
                              : split_over_ranks(ranks, shape.ndim(), 0));
  }
  EinsumTask task = einsum_task(network.equation, shapes, lying);
  if (is_rooted) task.wanted = lying[0];
  return task;
}

/// Of all candidates.
double least_of(const Plan& plan) {
  double least = plan.seconds();
  for (const Candidate& candidate : plan.candidates) least = std::min(least, candidate.seconds);
  return least;
}

TEST(EinsumNaive, NoPlanIsSlowerThanNumPysOrderInBlocksOfTheFirstIndex) {
  Machine short_ones = rank_test::h200();
  short_ones.short_speed = 0.7;
  for (const Machine& machine : {short_ones, Machine{}}) {
    for (const NetworkCase& network : kNetworks) {
      for (const int ranks : {3, 4}) {
        for (const bool is_rooted : {false, true}) {
          const EinsumTask task = network_task(network, ranks, is_rooted);
          EinsumTask numpy = task;
          rank_test::follow_orders(numpy,
                                   {find_steps(task.contraction, {.order = network.numpy_path})});
          const Plan naive = plan_naively(numpy, 0, machine), plan = plan_einsum(task, machine);
          // In NumPy's order a pair may be the other way round, and its result with it.
          EXPECT_LE(least_of(plan), (1 + kPredictionNoise) * naive.seconds())
              << network.equation << " on " << ranks << '\n'
              << plan.explain() << naive.explain();
          EXPECT_LE(plan.seconds(), (1 + kPredictionNoise) * least_of(plan)) << plan.explain();
        }
      }
    }
  }
}

TEST(EinsumNaive, BlocksAreOfTheFirstIndexThatCanBeSplit) {
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  const EinsumTask task = einsum_task("abc,cd,de->abe", {{1, 60, 50}, {50, 40}, {40, 30}}, {root});
  const Plan plan = plan_naively(task, 0, rank_test::h200());
  EXPECT_EQ(plan.strategy, "split");
  int pairs = 0;
  for (const PlanStep& step : plan.steps) {
    if (!step.made) continue;
    const Shape& shape = step.made->shape;
    const int first = shape[0] == 1 ? 1 : 0;
    const Sharding rows = split_over_ranks(4, shape.ndim(), first);
    EXPECT_TRUE(same_owners(step.made->sharding, rows, shape)) << plan.explain();
    ++pairs;
  }
  EXPECT_EQ(pairs, 2);
  const EinsumTask number = einsum_task("a,a->", {{60}, {60}}, {root});
  EXPECT_THAT(plan_naively(number, 0, rank_test::h200()).detail, HasSubstr("on every rank"));
}

/// A pair of matrices on the root, which takes its result too.
EinsumTask projection() {
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  EinsumTask task = einsum_task("bld,dhe->blhe", {{8, 2048, 1024}, {1024, 16, 64}}, {root});
  task.wanted = root;
  return task;
}

TEST(EinsumNaive, IsTakenWhereNothingIsFasterBeyondTheNoiseOfPredictions) {
  const EinsumTask task = projection();
  Machine machine = rank_test::h200();
  bool is_taken_within_noise = false, is_beaten = false;
  for (machine.flops = 1e13; machine.flops < 1e15; machine.flops *= 1.01) {
    const double naive = plan_naively(task, 0, machine).seconds();
    const Plan plan = plan_einsum(task, machine);
    const double least = least_of(plan);
    const bool is_within_noise = naive < (1 + kPredictionNoise) * least;
    EXPECT_EQ(plan.seconds(), is_within_noise ? naive : least) << plan.explain();
    is_taken_within_noise = is_taken_within_noise || (is_within_noise && naive > least);
    is_beaten = is_beaten || !is_within_noise;
  }
  EXPECT_TRUE(is_taken_within_noise);
  EXPECT_TRUE(is_beaten);
}

TEST(EinsumNaive, IsLeftWhereItDoesNotFitOrAnotherStrategyIsAskedFor) {
  Machine machine = rank_test::h200();
  machine.flops = 1e13;  // the root alone takes far longer
  const EinsumTask task = projection();
  EXPECT_EQ(plan_einsum(task, machine).seconds(), plan_naively(task, 0, machine).seconds());
  EXPECT_EQ(plan_einsum(task, machine, "root").strategy, "root");
  // Blocks of i need all of a large matrix on each rank, which costs nothing to bring here.
  machine.latency = machine.message_overhead = 1e-12;
  machine.link_bandwidth = 1e18;
  const Sharding rows(Mesh::line(4), split_dim(2, 0));
  const EinsumTask chain = einsum_task("ij,jk->ik", {{64, 4000}, {4000, 4000}}, {rows});
  const Plan naive = plan_naively(chain, 0, machine);
  EXPECT_EQ(plan_einsum(chain, machine).bytes(), naive.bytes());
  machine.memory = naive.memory_per_rank - 1;
  const Plan smaller = plan_einsum(chain, machine);
  EXPECT_LE(smaller.memory_per_rank, machine.memory);
  EXPECT_LT(smaller.bytes(), naive.bytes());
}

TEST(EinsumNaive, LargerProductsRunAtMoreOfTheRate) {
  Machine machine = rank_test::h200();
  const auto alone = [](const EinsumTask& task, const Machine& of) {
    return plan_einsum(task, of, "root");
  };
  const Plan even = alone(projection(), machine);
  machine.short_speed = 0.5;
  const Plan uneven = alone(projection(), machine);
  const ProductSides sides{8.0 * 2048, 1024, 1024};
  EXPECT_NEAR(uneven.seconds(), even.seconds() / product_efficiency(machine, sides),
              1e-9 * even.seconds());
  EXPECT_EQ(uneven.flops(), even.flops());
  // Each product of a batch is as large as it is, however many there are.
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  const std::vector<Shape> shapes{{64, 1024, 1024}, {64, 1024, 1024}};
  const EinsumTask batch = einsum_task("bij,bjk->bik", shapes, {root});
  const double batch_seconds = alone(batch, rank_test::h200()).seconds();
  EXPECT_NEAR(alone(batch, machine).seconds(), 2 * batch_seconds, 1e-9 * batch_seconds);
  // What is no product of matrices waits for memory alone.
  const EinsumTask outer = einsum_task("bij,bij->bij", shapes, {root});
  EXPECT_EQ(alone(outer, machine).seconds(), alone(outer, rank_test::h200()).seconds());
}

TEST(EinsumNaive, CopiesThatMatricesNeedCount) {
  const Machine machine = rank_test::h200();
  const Sharding root = Sharding::on_rank(Mesh::line(4), 0);
  const std::vector<Shape> shapes{{64, 80, 96}, {64, 80, 96}};
  // Rows j and sums over i and k, between which j lies: both are copied. Sums over j and k are not.
  const Plan copied = plan_einsum(einsum_task("ijk,ilk->jl", shapes, {root}), machine, "root");
  const EinsumTask dense = einsum_task("ijk,ljk->il", {{80, 64, 96}, {80, 64, 96}}, {root});
  const Plan as_they_lie = plan_einsum(dense, machine, "root");
  EXPECT_EQ(copied.flops(), as_they_lie.flops());
  const double bytes = 2 * 4.0 * 64 * 80 * 96;
  EXPECT_NEAR(copied.seconds() - as_they_lie.seconds(),
              2 * bytes / (machine.memory_bandwidth * machine.transposed_speed), 1e-12);
  EXPECT_THAT(copied.explain(), HasSubstr(" copied"));
  EXPECT_THAT(as_they_lie.explain(), Not(HasSubstr(" copied")));
}

TEST(EinsumNaive, OrdersOfAsManyFlopsAreToldApartByTheirCopies) {
  // Tucker's product in one of its orders needs a copy of the whole tensor, in another none.
  const NetworkCase& tucker = *std::find_if(
      std::begin(kNetworks), std::end(kNetworks),
      [](const NetworkCase& network) { return network.equation == "ijk,ai,bj,ck->abc"; });
  const Plan plan = plan_einsum(network_task(tucker, 4, true), rank_test::h200(), "root");
  EXPECT_THAT(plan.explain(), Not(HasSubstr(" copied")));
  const bool is_another_copied =
      std::any_of(plan.candidates.begin(), plan.candidates.end(), [&](const Candidate& candidate) {
        return candidate.strategy == "root" && candidate.seconds > 1.01 * plan.seconds();
      });
  EXPECT_TRUE(is_another_copied) << plan.explain();
}

TEST(EinsumNaive, RanksShareWhatOneOfThemMultipliesBelowItsRate) {
  // Measured on four H200s: 0.80 and 1.76 ms on the root, where all of its rate was reckoned with,
  // and 0.63 and 1.33 ms in parts (benchmarks/results/2026-11-26-einsum-plans.md).
  Machine machine = rank_test::h200();
  machine.short_speed = 0.75;
  for (const NetworkCase& network : kNetworks) {
    if (network.equation != "bld,dhe->blhe" && network.equation != "ijk,ai,bj,ck->abc") continue;
    const Plan plan = plan_einsum(network_task(network, 4, true), machine);
    EXPECT_EQ(plan.strategy, "split") << plan.explain();
  }
}

}  // namespace
}  // namespace cuop::dist
