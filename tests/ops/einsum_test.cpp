#include "cuop/ops/einsum/einsum.h"

#include <gmock/gmock.h>

#include <complex>
#include <random>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/einsum/pair_layout_internal.h"
#include "cuop/ops/einsum/tensordot.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "tests/error_of.h"
#include "tests/values.h"

namespace cuop {
namespace {

using test::error_of;
using test::values;
using ::testing::HasSubstr;

Tensor small_numbers(const Shape& shape, std::mt19937& generator) {
  std::uniform_int_distribution<int> digit(-2, 2);
  Tensor x = empty(shape, DType::kFloat64);
  for (int64_t i = 0; i < x.size(); ++i) x.data<double>()[i] = digit(generator);
  return x;
}

/// The definition: one nest of loops over all indices.
std::vector<double> naive_einsum(const EinsumProblem& problem,
                                 const std::vector<Tensor>& operands) {
  const Equation& equation = problem.equation;
  const auto at = [&](const std::vector<int64_t>& position, const Indices& names,
                      const Shape& shape) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < names.size(); ++dim) {
      const int64_t size = shape[static_cast<int>(dim)];
      const int64_t i = size == 1 ? 0 : position[static_cast<size_t>(names[dim])];
      offset = offset * size + i;
    }
    return static_cast<size_t>(offset);
  };
  std::vector<std::vector<double>> inputs;
  for (const Tensor& operand : operands) inputs.push_back(values(operand));
  std::vector<double> result(static_cast<size_t>(element_count(problem.shape)));
  int64_t count = 1;
  for (const int64_t size : problem.sizes) count *= size;
  for (int64_t number = 0; number < count; ++number) {
    std::vector<int64_t> position;
    int64_t rest = number;
    for (const int64_t size : problem.sizes) {
      position.push_back(rest % size);
      rest /= size;
    }
    double product = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      product *= inputs[i][at(position, equation.operands[i], operands[i].shape())];
    }
    result[at(position, equation.output, problem.shape)] += product;
  }
  return result;
}

/// Kinds of equations: Hadamard-like, scalars, index transformations, chains, inner, outer and
/// higher products, dots, sums, diagonals and traces, hyperedges, broadcasts.
const char* const kEquations[] = {
    "a,ab,abc->abc",
    "a,b,ab->ab",
    "a,a,a->",
    "a,ab,abc->",
    ",a,ab,abc->abc",
    ",ab,ab->ba",
    "ea,fb,gc,hd,abcd->efgh",
    "ea,fb,abcd,gc,hd->efgh",
    "abcd,ea,fb,gc,hd->efgh",
    "acdf,jbje,gihb,hfac,gfac,gifabc,hfac",
    "cd,bdhe,aidb,hgca,gc,hgibcd,hgac",
    "abhe,hidj,jgba,hiab,gab",
    "bde,cdh,agdb,hica,ibd,hgicd,hiac",
    "chd,bde,agbc,hiad,hgc,hgi,hiad",
    "chd,bde,agbc,hiad,bdi,cgh,agdb",
    "bdhe,acad,hiab,agac,hibd",
    "bef,bcad,cad->",
    "cd,bcad,bef->",
    "ab,ab,c->",
    "ab,ab,cd,cd->ac",
    "ab,ab,c->c",
    "ab,ab,cd,cd,ef,ef->",
    "ab,cd,ef->abcdef",
    "ab,cd,ef->acdf",
    "ab,cd,de->abcde",
    "ab,cd,de->be",
    "ab,bcd,cd->abcd",
    "ab,bcd,cd->abd",
    "eb,cb,fb->cef",
    "dd,fb,be,cdb->cef",
    "bca,cdb,dbf,afc->",
    "dcc,fce,ea,dbf->ab",
    "fdf,cdd,ccd,afe->ae",
    "abcd,ad",
    "ed,fcd,ff,bcf->be",
    "baa,dcf,af,cde->be",
    "bd,db,eac->ace",
    "fff,fae,bef,def->abd",
    "efc,dbc,acf,fd->abe",
    "ab,ab",
    "ab,ba",
    "abc,abc",
    "abc,bac",
    "abc,cba",
    "ab,bc",
    "ab,cb",
    "ba,bc",
    "ba,cb",
    "abcd,cd",
    "abcd,ab",
    "abcd,cdef",
    "abcd,cdef->feba",
    "abcd,efdc",
    "aab,bc->ac",
    "ab,bcc->ac",
    "aab,bcc->ac",
    "aab,bcc->ca",
    "aab,ccb->ac",
    "aabb->ab",
    "aaa->a",
    "aab->b",
    "abc->",
    "abc->cab",
    "a,b->ba",
    "ab->",
    "->",
    ",->",
    "a,->a",
    "abab->ba",
    "...a,...b->...ab",
    "...a->a...",
    "ab...,b...->a...",
    "a...b,b...c->...ac",
    "ij,ij,ij->ij",
    "bi,bi->b",
    "bij,bjk->kbi",
    "bhqd,bhkd->bhqk",
    "aij,bjk,ckl->abcil",
};

TEST(Einsum, EqualsTheDefinition) {
  std::mt19937 generator(1);
  for (const char* text : kEquations) {
    std::vector<int> letters;
    std::vector<Shape> shapes;
    std::vector<Tensor> operands;
    // One size a letter; "..." is two dimensions.
    std::string_view rest = std::string_view(text).substr(0, std::string_view(text).find("->"));
    shapes.emplace_back();
    for (size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == ',') {
        shapes.emplace_back();
      } else if (rest[i] == '.') {
        shapes.back().push_back(2);
        shapes.back().push_back(3);
        i += 2;
      } else {
        shapes.back().push_back(2 + (rest[i] - 'a') % 3);
      }
    }
    for (const Shape& shape : shapes) operands.push_back(small_numbers(shape, generator));
    const EinsumProblem problem = einsum_problem(text, shapes);
    const std::vector<double> expected = naive_einsum(problem, operands);
    for (const PathSearch search : {PathSearch::kAuto, PathSearch::kOptimal, PathSearch::kGreedy,
                                    PathSearch::kRandomGreedy, PathSearch::kInOrder}) {
      const Tensor result = einsum(text, operands, {search});
      EXPECT_EQ(result.shape(), problem.shape) << text;
      EXPECT_EQ(values(result), expected) << text << " search " << static_cast<int>(search);
    }
    for (Tensor& operand : operands) operand = transpose(contiguous(transpose(operand)));
    Tensor wide = zeros(
        [&] {
          Shape shape = problem.shape;
          for (int64_t& size : shape) size *= 2;
          return shape;
        }(),
        DType::kFloat64);
    for (int dim = 0; dim < wide.ndim(); ++dim) wide = slice(wide, dim, {}, {}, 2);
    const Tensor given = einsum(text, operands, {}, &wide);
    EXPECT_EQ(values(given), expected) << text << " into every second element";
  }
}

TEST(Einsum, DimensionsInBetweenBecomeABatch) {
  std::mt19937 generator(5);
  const std::pair<const char*, std::vector<Shape>> cases[] = {
      {"abc,bd->adc", {{7, 3, 900}, {3, 5}}},
      {"bd,abc->adc", {{3, 5}, {7, 3, 900}}},
      {"xaib,xij->axjb", {{2, 3, 4, 2000}, {2, 4, 5}}},
      {"aibx,jiy->abjxy", {{2, 3, 4, 200}, {5, 3, 30}}},
  };
  for (const auto& [text, shapes] : cases) {
    const std::vector<Tensor> operands{small_numbers(shapes[0], generator),
                                       small_numbers(shapes[1], generator)};
    EXPECT_EQ(values(einsum(text, operands)), naive_einsum(einsum_problem(text, shapes), operands))
        << text;
  }
}

TEST(Einsum, TakesEveryDtypeAndPromotes) {
  std::mt19937 generator(2);
  const Tensor a = small_numbers({3, 4}, generator), b = small_numbers({4, 5}, generator);
  const auto expected =
      naive_einsum(einsum_problem("ij,jk->ik", std::array{a.shape(), b.shape()}), {a, b});
  for (int i = 1; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_unsigned_integer(dtype)) continue;
    const Tensor c = einsum("ij,jk->ik", std::array{cast(a, dtype), cast(b, dtype)});
    EXPECT_EQ(c.dtype(), dtype);
    EXPECT_EQ(values(is_complex(dtype) ? real(c) : c), expected) << dtype;
  }
  const std::array mixed{cast(a, DType::kInt8), cast(b, DType::kInt16),
                         cast(ones({5}, DType::kFloat64), DType::kFloat32)};
  EXPECT_EQ(einsum("ij,jk,k->i", mixed).dtype(), DType::kFloat32);
}

TEST(Einsum, IntegersWrapAndBoolIsOrOfAnd) {
  const Tensor big = full({3}, 100, DType::kInt8);
  EXPECT_EQ(values(einsum("i->", std::array{big})), std::vector<double>{300 - 256});
  EXPECT_EQ(einsum("i->", std::array{big}).dtype(), DType::kInt8);
  // The promoted dtype holds the product, though that of the first two would not.
  const Tensor wide = full({3}, 1, DType::kInt32);
  EXPECT_EQ(values(einsum("i,i,i->i", std::array{big, big, wide}))[0], 10000);
  const Tensor yes = full({2, 2}, true, DType::kBool);
  const Tensor sums = einsum("ij->i", std::array{yes});
  EXPECT_EQ(sums.dtype(), DType::kBool);
  EXPECT_EQ(values(sums), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(einsum("ij,jk->ik", std::array{yes, yes})), std::vector<double>(4, 1.0));
}

TEST(Einsum, EmptySumsAreZero) {
  const Tensor a = empty({2, 0}, DType::kFloat64), b = empty({0, 3}, DType::kFloat64);
  EXPECT_EQ(values(einsum("ij,jk->ik", std::array{a, b})), std::vector<double>(6, 0.0));
  EXPECT_EQ(values(einsum("ij->", std::array{a})), std::vector<double>{0.0});
  EXPECT_EQ(einsum("ij,jk,kl->jl", std::array{a, b, ones({3, 4}, DType::kFloat64)}).shape(),
            (Shape{0, 4}));
}

TEST(Einsum, OfOneOperandIsAView) {
  const Tensor x = zeros({3, 3}, DType::kFloat64);
  const Tensor diagonal = einsum("ii->i", std::array{x});
  copy_into(diagonal, ones({3}, DType::kFloat64));
  EXPECT_EQ(values(x), (std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_EQ(einsum("ij->ji", std::array{x}).storage(), x.storage());
}

TEST(Einsum, ChecksItsOutput) {
  const Tensor a = ones({2, 3}, DType::kFloat64), b = ones({3, 2}, DType::kFloat64);
  const std::array both{a, b};
  Tensor wrong = zeros({2, 3}, DType::kFloat64);
  EXPECT_THAT(error_of<ShapeError>([&] { einsum("ij,jk->ik", both, {}, &wrong); }),
              HasSubstr("einsum"));
  Tensor narrow = zeros({2, 2}, DType::kFloat32);
  EXPECT_THAT(error_of<DTypeError>([&] { einsum("ij,jk->ik", both, {}, &narrow); }),
              HasSubstr("einsum"));
  const Tensor same = transpose(a);
  EXPECT_THAT(error_of<ExecutionError>([&] { einsum("ij->ji", std::array{a}, {}, &same); }),
              HasSubstr("operand 0"));
  EXPECT_THAT(error_of<ExecutionError>([&] { einsum("ij", std::span<const Tensor>()); }),
              HasSubstr("no operand was given for \"ij\"; it needs 1"));
}

TEST(Einsum, PathsSayWhatTheyCost) {
  const std::array shapes{Shape{100, 50}, Shape{50, 80}, Shape{80, 40}};
  const EinsumPath path = einsum_path("ij,jk,kl->il", shapes);
  EXPECT_EQ(path.path, (LinearPath{{1, 2}, {0, 1}}));
  EXPECT_EQ(path.costs.flops, 2.0 * 50 * 80 * 40 + 2.0 * 100 * 50 * 40);
  EXPECT_EQ(path.costs.naive_flops, 3.0 * 100 * 50 * 80 * 40);
  EXPECT_EQ(path.costs.largest_intermediate, 4000);
  EXPECT_EQ(path.steps, (std::vector<std::string>{"jk,kl->jl", "ij,jl->il"}));
  EXPECT_THAT(path.to_string(), HasSubstr("speedup               66.67"));
  const EinsumPath dots = einsum_path("...i,ij->...", std::array{Shape{4, 3}, Shape{3, 2}});
  EXPECT_EQ(dots.steps, (std::vector<std::string>{"ij->i", "<0>i,i-><0>"}));
}

double copied(std::string_view text, std::vector<Shape> shapes,
              const std::vector<std::vector<int64_t>>& orders = {}) {
  const EinsumProblem problem = einsum_problem(text, shapes);
  std::vector<pairwise::Named> operands;
  for (size_t i = 0; i < 2; ++i) {
    Layout layout = contiguous_layout(shapes[i]);
    if (i < orders.size()) {  // lies in another order in memory
      Shape in_memory;
      std::vector<int64_t> place(orders[i].size());
      for (size_t k = 0; k < place.size(); ++k) {
        in_memory.push_back(shapes[i][static_cast<int>(orders[i][k])]);
        place[static_cast<size_t>(orders[i][k])] = static_cast<int64_t>(k);
      }
      layout = permute(contiguous_layout(in_memory), place);
    }
    operands.push_back({layout, problem.contraction.inputs[i]});
  }
  return pairwise::order_of(operands[0], operands[1], problem.contraction.output,
                            contiguous_layout(problem.shape))
      .copied;
}

TEST(EinsumPairs, AreReadWhereTheyLie) {
  EXPECT_EQ(copied("ij,jk->ik", {{4, 5}, {5, 6}}), 0);
  EXPECT_EQ(copied("ij,jk->ki", {{4, 5}, {5, 6}}), 0);
  EXPECT_EQ(copied("ji,kj->ik", {{5, 4}, {6, 5}}), 0);
  EXPECT_EQ(copied("ij,jk->ik", {{4, 5}, {5, 6}}, {{1, 0}, {1, 0}}), 0);
  EXPECT_EQ(copied("bij,bjk->bik", {{3, 4, 5}, {3, 5, 6}}), 0);
  EXPECT_EQ(copied("bij,bjk->bki", {{3, 4, 5}, {3, 5, 6}}), 0);
  EXPECT_EQ(copied("bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}), 0);
  EXPECT_EQ(copied("bqhd,bkhd->bhqk", {{2, 4, 3, 5}, {2, 6, 3, 5}}), 0);
  EXPECT_EQ(copied("abij,ijk->abk", {{2, 3, 4, 5}, {4, 5, 6}}), 0);
  EXPECT_EQ(copied("aij,jib->ab", {{3, 4, 5}, {5, 4, 6}}), 60);  // the smaller of both
  // A dimension in between: copied while that is less than a product for each a and i.
  EXPECT_EQ(copied("aijb,jk->aibk", {{3, 4, 5, 6}, {5, 7}}), 360);
  EXPECT_EQ(copied("aijb,jk->aikb", {{3, 4, 50, 600}, {50, 70}}), 0);
  EXPECT_EQ(copied("jk,aijb->aikb", {{50, 70}, {3, 4, 50, 600}}), 0);
  EXPECT_EQ(copied("xaib,xij->axjb", {{3, 4, 50, 600}, {3, 50, 70}}), 0);
}

/// 160 columns leave a part of a GPU's second tile idle, 128 and 256 do not.
TEST(EinsumPairs, GpusCopyRatherThanFillPartsOfTiles) {
  const auto batch_of = [](int64_t columns, Device device) {
    const std::vector<Shape> shapes{{2048, 160}, {160, 160, columns}};
    const EinsumProblem problem = einsum_problem("bi,oij->boj", shapes);
    const auto& inputs = problem.contraction.inputs;
    return pairwise::order_of({contiguous_layout(shapes[0]), inputs[0]},
                              {contiguous_layout(shapes[1]), inputs[1]}, problem.contraction.output,
                              contiguous_layout(problem.shape), device)
        .indices.batch.size();
  };
  const Device gpu{DeviceType::kCuda, 0};
  EXPECT_EQ(batch_of(160, gpu), 0);
  EXPECT_EQ(batch_of(128, gpu), 1);
  EXPECT_EQ(batch_of(256, gpu), 1);
  EXPECT_EQ(batch_of(160, kCpu), 1);
}

TEST(EinsumPairs, GpusCopyRatherThanMultiplySmallMatrices) {
  const std::vector<Shape> shapes(2, {24, 24, 64, 64});
  const EinsumProblem problem = einsum_problem("klcd,ikac->ilad", shapes);
  const auto order = [&](Device device) {
    const auto& inputs = problem.contraction.inputs;
    const Layout given = contiguous_layout({24, 24, 64, 64});
    return pairwise::order_of({given, inputs[0]}, {given, inputs[1]}, problem.contraction.output,
                              contiguous_layout(problem.shape), device);
  };
  EXPECT_TRUE(order({DeviceType::kCuda, 0}).indices.batch.empty());
  EXPECT_LT(order(kCpu).copied, order({DeviceType::kCuda, 0}).copied);
  // What needs no copy stays: a batch as such, and rows that merge.
  const auto copied_there = [](const Layout& left, const Layout& right, const Shape& made) {
    return pairwise::order_of({left, {0, 1, 2}}, {right, {2, 3}}, {0, 1, 3},
                              contiguous_layout(made), {DeviceType::kCuda, 0})
        .copied;
  };
  EXPECT_EQ(copied_there(contiguous_layout({3, 40, 50}), contiguous_layout({50, 60}), {3, 40, 60}),
            0);
}

TEST(EinsumPairs, AResultIsMadeAsItsConsumerReadsIt) {
  // gab,gbc->gac, of which gac,gcd->ad sums g and c: they have to follow each other.
  const int g = 0, a = 1, b = 2, c = 3, d = 4;
  const pairwise::Named left{contiguous_layout({3, 4, 5}), {g, a, b}};
  const pairwise::Named right{contiguous_layout({3, 5, 6}), {g, b, c}};
  const pairwise::Named other{contiguous_layout({3, 6, 7}), {g, c, d}};
  const Indices result{g, a, c}, last{a, d};
  const auto copied_of = [&](const Layout& made) {
    return pairwise::order_of({made, result}, other, last, contiguous_layout({4, 7})).copied;
  };
  const Layout best =
      pairwise::best_layout(left, right, result, {other, last, contiguous_layout({4, 7})});
  EXPECT_EQ(copied_of(best), 0);
  EXPECT_EQ(copied_of(contiguous_layout({3, 4, 6})), 3 * 4 * 6);
  // Nothing is copied to make it so either.
  EXPECT_EQ(pairwise::order_of(left, right, result, best).copied, 0);
  // Who sums it alone reads any order.
  EXPECT_EQ(pairwise::best_layout(left, right, result, {std::nullopt, {a}, std::nullopt}),
            contiguous_layout({3, 4, 6}));
}

TEST(Tensordot, EqualsTheDefinitionInAnyOrderOfAxes) {
  std::mt19937 generator(3);
  const Tensor a = small_numbers({3, 4, 5}, generator), b = small_numbers({5, 2, 4}, generator);
  const std::vector<int64_t> of_a{1, -1}, of_b{2, 0};
  const auto expected =
      naive_einsum(einsum_problem("aij,jbi->ab", std::array{a.shape(), b.shape()}), {a, b});
  EXPECT_EQ(values(tensordot(a, b, of_a, of_b)), expected);
  Tensor out = transpose(zeros({2, 3}, DType::kFloat64));
  tensordot(a, b, of_a, of_b, &out);
  EXPECT_EQ(values(out), expected);
  const auto outer = tensordot(a, b, std::vector<int64_t>{}, std::vector<int64_t>{});
  EXPECT_EQ(outer.shape(), (Shape{3, 4, 5, 5, 2, 4}));
  EXPECT_THAT(error_of<ShapeError>([&] { last_and_first_axes(3, 2, 4); }),
              HasSubstr("axes is 3; tensors of 2 and 4 dimensions have 0 to 2 to pair"));
}

}  // namespace
}  // namespace cuop
