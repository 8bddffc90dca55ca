#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>

#include "cuop/core/error.h"
#include "cuop/ops/einsum/path.h"
#include "tests/error_of.h"

namespace cuop {
namespace {

using test::error_of;
using ::testing::HasSubstr;

/// Tensors of random indices, of which some are in the output; each index is in one tensor or more.
Contraction random_contraction(std::mt19937& generator, int tensors) {
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(generator);
  };
  Contraction contraction;
  const int indices = tensors + number(0, 3);
  for (int index = 0; index < indices; ++index) contraction.sizes.push_back(number(2, 9));
  contraction.inputs.resize(static_cast<size_t>(tensors));
  for (int index = 0; index < indices; ++index) {
    for (int times = number(1, 3); times > 0; --times) {
      Indices& input = contraction.inputs[static_cast<size_t>(number(0, tensors - 1))];
      if (!has_index(input, index)) input.push_back(index);
    }
    if (number(0, 3) == 0) contraction.output.push_back(index);
  }
  return contraction;
}

/// The least flops of all orders of pairs of the tensors in the list.
double least_flops(const Contraction& contraction, const LinearPath& begun, size_t left) {
  if (left == 1) {
    return path_costs(contraction, find_steps(contraction, {begun})).flops;
  }
  double least = std::numeric_limits<double>::infinity();
  for (size_t a = 0; a < left; ++a) {
    for (size_t b = a + 1; b < left; ++b) {
      LinearPath path = begun;
      path.push_back({static_cast<int64_t>(a), static_cast<int64_t>(b)});
      least = std::min(least, least_flops(contraction, path, left - 1));
    }
  }
  return least;
}

/// Each tensor is taken once, and what is made is the output at last.
void expect_sound(const Contraction& contraction, const std::vector<ContractionStep>& steps) {
  const std::vector<Indices> tensors = contraction.tensors(steps);
  std::vector<int> taken(tensors.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const int made = static_cast<int>(contraction.inputs.size() + i);
    for (const int part : {steps[i].left, steps[i].right}) {
      if (part < 0) continue;
      ASSERT_LT(part, made);
      ++taken[static_cast<size_t>(part)];
    }
    if (!steps[i].is_pair()) continue;
    // What only one of a pair has stays: else it would have been summed before.
    const Indices& left = tensors[static_cast<size_t>(steps[i].left)];
    const Indices& right = tensors[static_cast<size_t>(steps[i].right)];
    for (const int index : left) {
      EXPECT_TRUE(has_index(right, index) || has_index(steps[i].result, index));
    }
    for (const int index : right) {
      EXPECT_TRUE(has_index(left, index) || has_index(steps[i].result, index));
    }
  }
  for (size_t i = 0; i + 1 < taken.size(); ++i) EXPECT_EQ(taken[i], 1) << i;
  EXPECT_EQ(tensors.back(), contraction.output);
}

TEST(EinsumPath, NoOrderIsCheaperThanTheOptimalOne) {
  std::mt19937 generator(1);
  for (int trial = 0; trial < 60; ++trial) {
    const int tensors = 2 + trial % 4;
    const Contraction contraction = random_contraction(generator, tensors);
    const auto steps = find_steps(contraction);
    expect_sound(contraction, steps);
    const double flops = path_costs(contraction, steps).flops;
    EXPECT_EQ(flops, least_flops(contraction, {}, static_cast<size_t>(tensors))) << trial;
    for (const PathSearch search : {PathSearch::kGreedy, PathSearch::kRandomGreedy,
                                    PathSearch::kInOrder, PathSearch::kOptimal}) {
      const auto other = find_steps(contraction, {search});
      expect_sound(contraction, other);
      EXPECT_GE(path_costs(contraction, other).flops, flops);
    }
  }
}

TEST(EinsumPath, ManyTensorsTakeTheRandomSearchAndGiveTheSameOrderAgain) {
  std::mt19937 generator(2);
  for (const int tensors : {13, 17, 30}) {
    const Contraction contraction = random_contraction(generator, tensors);
    const auto steps = find_steps(contraction), again = find_steps(contraction);
    expect_sound(contraction, steps);
    EXPECT_EQ(linear_path(contraction, steps), linear_path(contraction, again));
    const double flops = path_costs(contraction, steps).flops;
    EXPECT_LE(flops, path_costs(contraction, find_steps(contraction, {PathSearch::kGreedy})).flops);
    EXPECT_LE(flops,
              path_costs(contraction, find_steps(contraction, {PathSearch::kInOrder})).flops);
  }
}

TEST(EinsumPath, TheRandomSearchFindsTheOptimumOfUpToEightTensors) {
  std::mt19937 generator(3);
  for (int trial = 0; trial < 40; ++trial) {
    const Contraction contraction = random_contraction(generator, 3 + trial % 6);
    const auto cost = [&](PathSearch search) {
      return path_costs(contraction, find_steps(contraction, {search})).flops;
    };
    EXPECT_EQ(cost(PathSearch::kRandomGreedy), cost(PathSearch::kOptimal)) << trial;
  }
}

/// i0 i1, i1 i2, ..., of size 2 each, to the two ends.
Contraction chain(int tensors) {
  Contraction contraction;
  for (int i = 0; i < tensors; ++i) contraction.inputs.push_back({i, i + 1});
  contraction.output = {0, tensors};
  contraction.sizes.assign(static_cast<size_t>(tensors) + 1, 2);
  return contraction;
}

TEST(EinsumPath, ALongChainIsContractedFromItsEnds) {
  const Contraction contraction = chain(256);
  const auto steps = find_steps(contraction);
  expect_sound(contraction, steps);
  EXPECT_EQ(path_costs(contraction, steps).flops, 255 * 16);
}

TEST(EinsumPath, SumsOfOneTensorComeFirst) {
  const Contraction contraction{{{0, 1}, {1, 2, 3}}, {2}, {4, 5, 6, 7}};
  const auto steps = find_steps(contraction);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].result, (Indices{1}));
  EXPECT_EQ(steps[1].result, (Indices{1, 2}));
  EXPECT_EQ(steps[2].left, 2);
  EXPECT_EQ(steps[2].right, 3);
  EXPECT_EQ(linear_path(contraction, steps), (LinearPath{{0, 1}}));
  const PathCosts costs = path_costs(contraction, steps);
  EXPECT_EQ(costs.flops, 4 * 5 + 5 * 6 * 7 + 2 * 5 * 6);
  EXPECT_EQ(costs.naive_flops, 2 * 4 * 5 * 6 * 7);
  EXPECT_EQ(costs.largest_intermediate, 5 * 6);
}

TEST(EinsumPath, OneTensorTakesOneStep) {
  const Contraction contraction{{{0, 1}}, {1, 0}, {4, 5}};
  const auto steps = find_steps(contraction);
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_FALSE(steps[0].is_pair());
  EXPECT_EQ(linear_path(contraction, steps), (LinearPath{{0}}));
  EXPECT_EQ(path_costs(contraction, steps).flops, 0);
  EXPECT_EQ(find_steps(contraction, {LinearPath{{0}}}).size(), 1U);
}

TEST(EinsumPath, PathsOfOthersMayTakeOneTensorOrMany) {
  const Contraction contraction = chain(5);
  const LinearPath path{{1}, {0, 2, 4}, {-1, 0}, {0, 1}};
  const auto steps = find_steps(contraction, {path});
  expect_sound(contraction, steps);
  EXPECT_EQ(steps.size(), 4U);  // three at once are two pairs
  EXPECT_EQ(linear_path(contraction, steps).size(), 4U);
  for (const PathSearch search : {PathSearch::kAuto, PathSearch::kInOrder}) {
    const auto found = find_steps(contraction, {search});
    const auto again = find_steps(contraction, {linear_path(contraction, found)});
    EXPECT_EQ(linear_path(contraction, found), linear_path(contraction, again));
  }
}

TEST(EinsumPath, RefusesPathsThatDoNotFit) {
  const Contraction contraction = chain(3);
  const auto refused = [&](LinearPath path) {
    return error_of<ExecutionError>([&] { find_steps(contraction, {std::move(path)}); });
  };
  EXPECT_THAT(refused({{0, 3}}), HasSubstr("position 3 of entry (0, 3) of the path; there are 3"));
  EXPECT_THAT(refused({{0, -4}}), HasSubstr("position -4"));
  EXPECT_THAT(refused({{0, 0}}), HasSubstr("different positions"));
  EXPECT_THAT(refused({{0, -3}}), HasSubstr("different positions"));
  EXPECT_THAT(refused({{}}), HasSubstr("one or more different positions"));
  EXPECT_THAT(refused({{0, 1}}), HasSubstr("leaves 2 tensors"));
  EXPECT_THAT(refused({}), HasSubstr("leaves 3 tensors"));
}

TEST(EinsumPath, KeepsToALimitOfIntermediateResults) {
  // ab,bc,cd->ad: (ab,bc) makes 100 x 2, (bc,cd) makes 3 x 50.
  const Contraction contraction{{{0, 1}, {1, 2}, {2, 3}}, {0, 3}, {100, 3, 2, 50}};
  PathOptions options;
  const auto peak = [&] {
    const auto steps = find_steps(contraction, options);
    return contraction.shape(steps[0].result).to_vector();
  };
  EXPECT_EQ(peak(), (std::vector<int64_t>{100, 2}));
  options.largest_intermediate = 199;
  EXPECT_EQ(peak(), (std::vector<int64_t>{3, 50}));
  options.largest_intermediate = 149;
  EXPECT_THAT(error_of<MemoryError>([&] { find_steps(contraction, options); }),
              HasSubstr("at most 149 elements and 32 dimensions; the smallest found has 150"));
  options.order = LinearPath{{0, 1}, {0, 1}};
  options.largest_intermediate = 200;
  EXPECT_EQ(peak(), (std::vector<int64_t>{100, 2}));
  options.order = PathSearch::kInOrder;
  options.largest_intermediate = 199;
  EXPECT_THAT(error_of<MemoryError>([&] { find_steps(contraction, options); }),
              HasSubstr("an intermediate result of the order has 200 elements; allowed are 199"));
  for (const PathSearch search : {PathSearch::kGreedy, PathSearch::kRandomGreedy}) {
    options = {search, 150};
    EXPECT_EQ(peak(), (std::vector<int64_t>{3, 50}));
    options.largest_intermediate = 100;
    EXPECT_THAT(error_of<MemoryError>([&] { find_steps(contraction, options); }),
                HasSubstr("the smallest found has 150"));
  }
}

TEST(EinsumPath, ManyTensorsKeepToALimitToo) {
  Contraction contraction = chain(20);
  for (size_t i = 0; i < contraction.sizes.size(); ++i) contraction.sizes[i] = 2 + i % 7;
  PathOptions options;
  options.largest_intermediate = 16;
  const auto steps = find_steps(contraction, options);
  expect_sound(contraction, steps);
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    EXPECT_LE(element_count(contraction.shape(steps[i].result)), 16);
  }
  options.largest_intermediate = 3;
  EXPECT_THAT(error_of<MemoryError>([&] { find_steps(contraction, options); }),
              HasSubstr("no order was found"));
}

TEST(EinsumPath, MakesNoTensorOfTooManyDimensions) {
  // Two of 20 dimensions that share none: their product has 40.
  Contraction contraction;
  contraction.inputs.resize(4);
  for (int i = 0; i < 40; ++i) {
    contraction.sizes.push_back(2);
    contraction.inputs[static_cast<size_t>(i) / 20].push_back(i);
    contraction.inputs[2 + static_cast<size_t>(i) / 20].push_back(i);
  }
  for (const PathSearch search :
       {PathSearch::kOptimal, PathSearch::kGreedy, PathSearch::kRandomGreedy}) {
    for (const ContractionStep& step : find_steps(contraction, {search})) {
      EXPECT_LE(step.result.size(), 32U);
    }
  }
}

TEST(EinsumPath, SaysWhenTooManyDimensionsCannotBeAvoided) {
  // Each of three has 20 dimensions of its own with each of the other two.
  Contraction contraction;
  contraction.inputs.resize(3);
  for (int i = 0; i < 60; ++i) {
    contraction.sizes.push_back(2);
    contraction.inputs[static_cast<size_t>(i) / 20].push_back(i);
    contraction.inputs[(static_cast<size_t>(i) / 20 + 1) % 3].push_back(i);
  }
  contraction.output = contraction.inputs[0];
  for (const PathSearch search : {PathSearch::kAuto, PathSearch::kGreedy}) {
    EXPECT_THAT(error_of<MemoryError>([&] { find_steps(contraction, {search}); }),
                HasSubstr("results have at most 32 dimensions"));
  }
}

/// By it plans are found again: limits that differ little must differ in it.
TEST(EinsumPath, OptionsThatDifferDifferInTheirText) {
  const LinearPath pairs{{0, 1}, {0, 1}}, at_once{{0, 1, 2}};
  const std::vector<PathOptions> all{{},
                                     {PathSearch::kGreedy},
                                     {pairs},
                                     {at_once},
                                     {PathSearch::kAuto, 12345678.0},
                                     {PathSearch::kAuto, 12345679.0},
                                     {pairs, 12345678.0}};
  std::set<std::string> texts;
  for (const PathOptions& options : all) texts.insert(text_of(options));
  EXPECT_EQ(texts.size(), all.size());
  EXPECT_EQ(text_of({}), "");
}

TEST(EinsumPath, KnowsSearchesByTheirNames) {
  EXPECT_EQ(parse_path_search("auto"), PathSearch::kAuto);
  EXPECT_EQ(parse_path_search("dp"), PathSearch::kOptimal);
  EXPECT_EQ(parse_path_search("random-greedy-128"), PathSearch::kRandomGreedy);
  EXPECT_EQ(parse_path_search("in-order"), PathSearch::kInOrder);
  for (const char* text : {"auto", "optimal", "greedy", "random-greedy", "in-order"}) {
    EXPECT_STREQ(name(parse_path_search(text)), text);
  }
  EXPECT_THAT(error_of<ExecutionError>([] { parse_path_search("best"); }),
              HasSubstr("the search \"best\" is unknown; known are auto, optimal, greedy"));
  EXPECT_THAT(error_of<ExecutionError>([] { find_steps(chain(17), {PathSearch::kOptimal}); }),
              HasSubstr("\"optimal\" takes up to 16 tensors, given are 17; \"auto\" takes more"));
}

}  // namespace
}  // namespace cuop
