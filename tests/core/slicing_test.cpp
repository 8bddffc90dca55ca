#include "cuop/core/slicing.h"

#include <gtest/gtest.h>

#include <random>

#include "cuop/ops/einsum/path.h"

namespace cuop {
namespace {

/// ab,bc,cd,de->ae and the like, of random sizes.
Contraction chain(std::mt19937& generator, int tensors) {
  Contraction contraction;
  std::uniform_int_distribution<int64_t> size(1, 9);
  for (int i = 0; i <= tensors; ++i) contraction.sizes.push_back(size(generator));
  for (int i = 0; i < tensors; ++i) contraction.inputs.push_back({i, i + 1});
  contraction.output = {0, tensors};
  return contraction;
}

TEST(EinsumSlicing, FlopsAreThoseOfAllSlicesAndOfAddingThem) {
  std::mt19937 generator(1);
  for (int trial = 0; trial < 40; ++trial) {
    const Contraction contraction = chain(generator, 2 + trial % 4);
    const auto steps = find_steps(contraction);
    Slicing slicing;
    EXPECT_EQ(sliced_flops(contraction, steps, slicing), path_costs(contraction, steps).flops);
    for (int cut = 0; cut < 6; ++cut) {
      const auto next = sliced_further(contraction, steps, slicing);
      if (!next) break;
      EXPECT_GT(slice_count(*next), slice_count(slicing));
      slicing = *next;
      double flops = 0, made = 0;
      const auto count = static_cast<int64_t>(slice_count(slicing));
      for (int64_t number = 0; number < count; ++number) {
        Contraction slice = contraction;
        const std::vector<Interval> window = slice_intervals(contraction, slicing, number);
        for (size_t i = 0; i < window.size(); ++i) {
          slice.sizes[i] = window[i].length();
          EXPECT_GT(window[i].length(), 0);
          EXPECT_LE(slice.sizes[i], first_slice(contraction, slicing).sizes[i]);
        }
        flops += path_costs(slice, steps).flops;
        made += static_cast<double>(element_count(slice.shape(slice.output)));
      }
      const auto whole = static_cast<double>(element_count(contraction.shape(contraction.output)));
      EXPECT_EQ(sliced_flops(contraction, steps, slicing), flops + made - whole);
      EXPECT_EQ(made > whole, adds_slices(contraction, slicing));
    }
  }
}

TEST(EinsumSlicing, SlicesCoverEachCombinationOnce) {
  const Contraction contraction{{{0, 1}, {1, 2}}, {0, 2}, {5, 7, 3}};
  const Slicing slicing{{0, 2}, {1, 3}};
  std::vector<int> seen(5 * 7);
  for (int64_t number = 0; number < 6; ++number) {
    const std::vector<Interval> window = slice_intervals(contraction, slicing, number);
    EXPECT_EQ(window[2], (Interval{0, 3}));
    for (int64_t i = window[0].low; i < window[0].high; ++i) {
      for (int64_t j = window[1].low; j < window[1].high; ++j) {
        ++seen[static_cast<size_t>(i * 7 + j)];
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(5 * 7, 1));
  // What is added up comes in a row.
  EXPECT_EQ(slice_intervals(contraction, slicing, 2)[0],
            slice_intervals(contraction, slicing, 0)[0]);
}

TEST(EinsumSlicing, CutsTheIndexThatCostsLeast) {
  // jk,kl->jl is large; j is in both steps, so that cutting it makes nothing again.
  const Contraction contraction{{{0, 1}, {1, 2}, {2, 3}}, {0, 3}, {4, 1000, 1000, 100}};
  const auto steps = find_steps(contraction, {LinearPath{{1, 2}, {0, 1}}});
  Slicing slicing;
  for (int cut = 0; cut < 3; ++cut) slicing = *sliced_further(contraction, steps, slicing);
  EXPECT_EQ(slicing, (Slicing{{1, 8}}));
  EXPECT_EQ(first_slice(contraction, slicing).sizes, (std::vector<int64_t>{4, 125, 1000, 100}));
}

TEST(EinsumSlicing, EndsWhereNothingIsLeftToCut) {
  const Contraction small{{{0, 1}, {1, 2}}, {0, 2}, {1, 3, 2}};
  const auto steps = find_steps(small);
  Slicing slicing;
  while (const auto next = sliced_further(small, steps, slicing)) slicing = *next;
  EXPECT_EQ(slicing, (Slicing{{2, 2}, {1, 3}}));  // that of the output first
  const Contraction large{{{0, 1}, {1, 2}}, {0, 2}, {1 << 12, 1 << 12, 1 << 12}};
  slicing = {};
  while (const auto next = sliced_further(large, find_steps(large), slicing)) slicing = *next;
  EXPECT_EQ(slice_count(slicing), kMostSlices);
}

}  // namespace
}  // namespace cuop
