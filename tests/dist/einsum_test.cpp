#include "cuop/dist/algo/einsum.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/einsum/tensordot.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

struct EinsumCase {
  const char* equation;
  std::vector<Shape> shapes;
};

const EinsumCase kEinsumCases[] = {
    {"ij,jk->ik", {{7, 5}, {5, 6}}},
    {"ij,jk,kl->il", {{5, 3}, {3, 8}, {8, 2}}},
    {"bij,bjk->bik", {{3, 4, 5}, {3, 5, 2}}},
    {"bqhd,bkhd->bhqk", {{2, 3, 4, 5}, {2, 6, 4, 5}}},
    {"i,j->ji", {{5}, {9}}},
    {"i,i->", {{11}, {11}}},
    {"ij->", {{6, 5}}},
    {"ij->ji", {{6, 5}}},
    {"ii->i", {{8, 8}}},
    {"ii", {{8, 8}}},
    {"iij,jkk->ik", {{4, 4, 3}, {3, 5, 5}}},
    {"ij,j->i", {{2, 1}, {7}}},
    {"...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 2}}},
    {"ab,bc,cd,da->", {{3, 4}, {4, 5}, {5, 6}, {6, 3}}},
    {"ab,cd,ef->acd", {{2, 3}, {4, 2}, {3, 5}}},
    {"i,i,i->i", {{13}, {1}, {13}}},
    {"ij,jk->ik", {{3, 0}, {0, 4}}},
    {"ij,jk->ik", {{0, 3}, {3, 4}}},
    {",i->i", {{}, {6}}},
    {",->", {{}, {}}},
    {"ea,fb,gc,hd,abcd->efgh", {{2, 3}, {3, 2}, {2, 4}, {3, 2}, {3, 2, 4, 2}}},
};

std::vector<Tensor> operands_of(const EinsumCase& each, DType dtype = DType::kFloat64) {
  std::vector<Tensor> operands;
  for (size_t i = 0; i < each.shapes.size(); ++i) {
    operands.push_back(noise(each.shapes[i], dtype, static_cast<unsigned>(i + 1)));
  }
  return operands;
}

std::vector<Tensor> all_on_root(const CommunicatorPtr& comm, const std::vector<Tensor>& tensors) {
  return comm->rank() == 0 ? tensors : std::vector<Tensor>(tensors.size());
}

TEST(DistEinsum, FromTheRootEqualsOneEinsum) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const EinsumCase& each : kEinsumCases) {
        const std::vector<Tensor> operands = operands_of(each);
        const Tensor expected = cuop::einsum(each.equation, operands);
        for (const char* strategy : {"", "root", "split"}) {
          const Tensor result = einsum_from_root(comm, each.equation, all_on_root(comm, operands),
                                                 {}, {.strategy = strategy});
          expect_rooted(comm, result, expected, 1e-12,
                        cat(ranks, " ranks ", strategy, ' ', each.equation));
          if (*strategy != 0) {
            EXPECT_EQ(last_report().plan.strategy, strategy);
          }
        }
      }
    });
  }
}

/// Some sharding of a tensor of so many dimensions.
Sharding some_sharding(int ranks, int ndim, unsigned number) {
  const Grid2d grid = compute_2d_grid(ranks);
  const Mesh line = Mesh::line(ranks), mesh({grid.rows, grid.cols}, {"a", "b"});
  std::vector<Sharding> all{Sharding::replicated(line), Sharding::on_rank(line, ranks - 1)};
  for (int dim = 0; dim < ndim; ++dim) {
    all.push_back(Sharding(line, split_dim(ndim, dim)));
    std::vector<Spec::Axes> split(static_cast<size_t>(ndim));
    split[static_cast<size_t>(dim)] = {"b"};
    split[static_cast<size_t>((dim + 1) % ndim)].push_back("a");
    all.push_back(Sharding(mesh, Spec(split)));
  }
  return all[number % all.size()];
}

TEST(DistEinsum, OfOperandsThatLieAnyhowEqualsOneEinsum) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      unsigned number = 0;
      for (const EinsumCase& each : kEinsumCases) {
        const std::vector<Tensor> operands = operands_of(each);
        const Tensor expected = cuop::einsum(each.equation, operands);
        for (int trial = 0; trial < 4; ++trial) {
          std::vector<DistTensor> parts;
          for (const Tensor& operand : operands) {
            parts.push_back(
                laid_out(comm, operand, some_sharding(ranks, operand.ndim(), number += 5)));
          }
          const std::string what = cat(ranks, " ranks, trial ", trial, ' ', each.equation);
          const DistTensor result = einsum(each.equation, parts);
          expect_close(gather_all(result), expected, 1e-12, what);
          const Sharding wanted = some_sharding(ranks, expected.ndim(), number + 1);
          const DistTensor there = einsum(each.equation, parts, {}, {.output = wanted});
          EXPECT_EQ(there.sharding(), wanted) << what;
          expect_close(gather_all(there), expected, 1e-12, what);
        }
      }
    });
  }
}

TEST(DistEinsum, EveryDtypeComesOutAsOnOneRank) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      std::vector<Tensor> operands;
      for (const Shape& shape :
           {Shape{5, 7}, Shape{7, 4}, Shape{4}}) {  // 0, 1 and 2: sums are exact
        operands.push_back(to_device(cast(remainder(counting(shape), 3), dtype), home()));
      }
      const Tensor expected = cuop::einsum("ij,jk,k->i", operands);
      const Tensor result = einsum_from_root(comm, "ij,jk,k->i", all_on_root(comm, operands), {},
                                             {.strategy = "split"});
      if (comm->rank() != 0) continue;
      EXPECT_EQ(result.dtype(), dtype);
      expect_close(real(result), real(expected), 0, cat(dtype));
    }
    const std::vector<Tensor> mixed{noise({4, 3}, DType::kFloat32),
                                    noise({3, 2}, DType::kComplex64, 2)};
    const Tensor result = einsum_from_root(comm, "ij,jk->ki", all_on_root(comm, mixed));
    if (comm->rank() == 0) {
      EXPECT_EQ(result.dtype(), DType::kComplex64);
    }
  });
}

TEST(DistEinsum, MovesNothingWhereTheBatchLiesInParts) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Sharding batch(Mesh::line(3), split_dim(3, 0));
    const std::vector<DistTensor> parts{laid_out(comm, noise({6, 20, 30}), batch),
                                        laid_out(comm, noise({6, 30, 10}), batch),
                                        laid_out(comm, noise({6, 10, 9}), batch)};
    const StrictScope strict;
    const DistTensor result = einsum("bij,bjk,bkl->bil", parts);
    EXPECT_EQ(last_report().plan.bytes(), 0) << last_report().plan.explain();
    EXPECT_TRUE(same_owners(result.sharding(), batch, result.shape()));
  });
}

TEST(DistEinsum, PartialSumsAreAddedWhereTheSummedIndexLiesInParts) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding columns(Mesh::line(4), split_dim(2, 1)), rows(Mesh::line(4), split_dim(2, 0));
    const Tensor a = noise({8, 4000}), b = noise({4000, 8}, DType::kFloat64, 2);
    const DistTensor result =
        einsum("ij,jk->ik", {laid_out(comm, a, columns), laid_out(comm, b, rows)});
    const Plan& plan = last_report().plan;
    EXPECT_THAT(plan.detail, HasSubstr("j over 4"));
    EXPECT_LE(plan.bytes(), 8 * 8 * 8 * 4 * 3);  // each block of the result from three others
    expect_close(gather_all(result), cuop::einsum("ij,jk->ik", std::array{a, b}), 1e-11, "sums");
  });
}

TEST(DistEinsum, FollowsTheOrderThatIsGiven) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const EinsumCase each{"ij,jk,kl->il", {{5, 3}, {3, 8}, {8, 2}}};
    const std::vector<Tensor> operands = operands_of(each);
    const Tensor expected = cuop::einsum(each.equation, operands);
    const auto detail = [&](const PathOptions& path) {
      const Tensor result =
          einsum_from_root(comm, each.equation, all_on_root(comm, operands), path);
      expect_rooted(comm, result, expected, 1e-13, "path");
      return last_report().plan.detail;
    };
    EXPECT_THAT(detail({LinearPath{{0, 1}, {0, 1}}}), HasSubstr("ij,jk->"));
    EXPECT_THAT(detail({LinearPath{{1, 2}, {0, 1}}}), HasSubstr("jk,kl->"));
    EXPECT_THAT(detail({PathSearch::kInOrder}), HasSubstr("ij,jk->"));
    EXPECT_THAT(
        failure_of([&] {
          einsum_from_root(comm, each.equation, all_on_root(comm, operands), {LinearPath{{0, 5}}});
        }),
        HasSubstr("position 5"));
  });
}

TEST(DistEinsum, FailsOnEveryRankAndGoesOn) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Tensor a = noise({2, 3}), b = noise({3, 4}, DType::kFloat64, 2);
    const auto failure = [&](const char* equation, const std::vector<Tensor>& operands) {
      return failure_of([&] { einsum_from_root(comm, equation, all_on_root(comm, operands)); });
    };
    EXPECT_THAT(failure("ij,jk->il", {a, b}), HasSubstr("index l of the result"));
    EXPECT_THAT(failure("ij,ik", {a, b}), HasSubstr("index i of"));
    EXPECT_THAT(failure("ij,jk", {a, Tensor()}), HasSubstr("2 terms, 1 operand was given"));
    EXPECT_THAT(failure("ij,jk", {Tensor(), b}), HasSubstr("operand 0 was not given"));
    EXPECT_THAT(failure_of([&] { einsum("ij", {}); }), HasSubstr("none was given"));
    EXPECT_THAT(
        failure_of([&] {
          einsum_from_root(comm, "ij,jk", all_on_root(comm, {a, b}), {}, {.strategy = "row"});
        }),
        HasSubstr("possible here are root, split"));
    expect_rooted(comm, einsum_from_root(comm, "ij,jk", all_on_root(comm, {a, b})),
                  cuop::einsum("ij,jk", std::array{a, b}), 1e-13, "after the failures");
  });
}

TEST(DistEinsum, KeepsToTheMemoryOrSaysHowMuchItNeeds) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(4), split_dim(2, 0));
    const Tensor a = noise({64, 64}), b = noise({64, 64}, DType::kFloat64, 2);
    const std::vector<DistTensor> parts{laid_out(comm, a, rows), laid_out(comm, b, rows)};
    CallOptions options;
    options.machine = Machine{};
    options.machine->memory =
        64 * 64 * 8 * 2;  // of 4 tensors that a rank on its own would have whole
    const DistTensor result = einsum("ij,jk->ik", parts, {}, options);
    EXPECT_LE(last_report().plan.memory_per_rank, options.machine->memory);
    expect_close(gather_all(result), cuop::einsum("ij,jk->ik", std::array{a, b}), 1e-12, "fits");
    options.machine->memory = 1000;
    EXPECT_THAT(failure_of([&] { einsum("ij,jk->ik", parts, {}, options); }),
                HasSubstr("no plan fits the memory limit of 1000 B a rank"));
  });
}

TEST(DistEinsum, SlicesWhereNoSplitFits) {
  // Small: the least limit makes a slice of each combination of indices.
  const std::vector<EinsumCase> cases{{"ij,jk,kl->il", {{2, 8}, {8, 7}, {7, 2}}},
                                      {"abc,bcd,dce->ae", {{2, 3, 2}, {3, 2, 4}, {4, 2, 3}}},
                                      {"bij,bjk->bik", {{5, 3, 4}, {5, 4, 2}}},
                                      {"ii,ij->j", {{9, 9}, {9, 4}}},
                                      {"ij->j", {{31, 4}}}};
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const EinsumCase& each : cases) {
        const std::vector<Tensor> operands = operands_of(each);
        const Tensor expected = cuop::einsum(each.equation, operands);
        for (const bool is_on_one_rank : {false, true}) {
          std::vector<DistTensor> parts;
          for (const Tensor& operand : operands) {
            const Sharding there = is_on_one_rank ? Sharding::on_rank(Mesh::line(ranks), 0)
                                                  : some_sharding(ranks, operand.ndim(), 3);
            parts.push_back(laid_out(comm, operand, there));
          }
          CallOptions options;
          options.machine = Machine{};
          einsum(each.equation, parts, {}, options);
          const int64_t whole = last_report().plan.memory_per_rank;
          options.machine->memory = 0;
          const std::string told = failure_of([&] { einsum(each.equation, parts, {}, options); });
          ASSERT_THAT(told, HasSubstr(" bytes)")) << each.equation;
          const int64_t least = std::stoll(told.substr(told.rfind('(') + 1));
          for (const int64_t limit : {least, (least + whole) / 2}) {
            options.machine->memory = limit;
            const DistTensor result = einsum(each.equation, parts, {}, options);
            EXPECT_LE(last_report().plan.memory_per_rank, limit) << last_report().plan.explain();
            expect_close(gather_all(result), expected, 1e-12, each.equation);
          }
          if (least < whole) {
            options.machine->memory = least - 1;
            EXPECT_THAT(failure_of([&] { einsum(each.equation, parts, {}, options); }),
                        HasSubstr(cat("(", least, " bytes)")));
          }
        }
      }
    });
  }
}

TEST(DistTensordot, EqualsOneTensordot) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor a = noise({3, 4, 5}), b = noise({4, 5, 6}, DType::kFloat64, 2);
      const std::vector<int64_t> last{1, 2}, first{0, 1}, of_a{2, 1}, of_b{-2, 0};
      const Tensor expected = cuop::tensordot(a, b, last, first);
      const Tensor rooted = tensordot_from_root(comm, on_root(comm, a), on_root(comm, b), {});
      expect_rooted(comm, rooted, expected, 1e-13, "two axes");
      const Tensor outer =
          tensordot_from_root(comm, on_root(comm, a), on_root(comm, b), {.count = 0});
      expect_rooted(comm, outer, cuop::tensordot(a, b, {}, {}), 1e-15, "outer");
      const DistTensor parts =
          tensordot(laid_out(comm, a, some_sharding(ranks, 3, 2)),
                    laid_out(comm, b, some_sharding(ranks, 3, 5)), {0, of_a, of_b, true});
      expect_close(gather_all(parts), cuop::tensordot(a, b, of_a, of_b), 1e-13, "lists");
      const auto failure = [&](const TensordotAxes& axes) {
        return failure_of(
            [&] { tensordot_from_root(comm, on_root(comm, a), on_root(comm, b), axes); });
      };
      EXPECT_THAT(failure({.count = 4}), HasSubstr("axes is 4"));
      EXPECT_THAT(failure({.count = 1}), HasSubstr("axis 2 of a has 5 elements"));
    });
  }
}

}  // namespace
}  // namespace cuop::dist
