// Contractions that are run piece by piece, so that their intermediate results are smaller: some
// indices are cut into even pieces, all steps are followed for each combination of pieces, and what
// comes of it is added up, or put in its place along indices of the output. Pure functions of
// sizes.
//
// Worked example: ij,jk,kl->il with j in 4 pieces is followed 4 times. jk,kl->jl makes a quarter of
// its elements each time, at no further cost; of ij,jl->il four partial sums of i x l are added up.
#pragma once

#include <optional>
#include <vector>

#include "cuop/core/box.h"
#include "cuop/core/contraction.h"

namespace cuop {

struct SlicedIndex {
  int index = 0;
  int64_t pieces = 1;  ///< as by split_evenly: the first is the longest

  bool operator==(const SlicedIndex&) const = default;
};
/// Each index once, those of the output first: what is added up is added up piece by piece of the
/// output.
using Slicing = std::vector<SlicedIndex>;

/// More slices than these are not made.
inline constexpr double kMostSlices = 1 << 20;

double slice_count(const Slicing& slicing);
/// What is solved for the first combination of pieces, which is the largest.
Contraction first_slice(const Contraction& contraction, const Slicing& slicing);
/// Slices in a row that are added up to one piece of the output: those of indices that it lacks.
int64_t added_slices(const Contraction& contraction, const Slicing& slicing);
/// Whether slices are added up.
bool adds_slices(const Contraction& contraction, const Slicing& slicing);
/// Flops of all slices, of adding them up too.
double sliced_flops(const Contraction& contraction, const std::vector<ContractionStep>& steps,
                    const Slicing& slicing);

/// The same with one index in twice as many pieces: the one by which the product of the elements
/// that are there at a time and of the flops becomes least. Nothing when no index can be cut
/// further or there would be more than kMostSlices.
std::optional<Slicing> sliced_further(const Contraction& contraction,
                                      const std::vector<ContractionStep>& steps,
                                      const Slicing& slicing);

/// What of each index a slice has, by the slice's number: the last index changes first.
std::vector<Interval> slice_intervals(const Contraction& contraction, const Slicing& slicing,
                                      int64_t number);
/// What is solved for these intervals of the indices.
Contraction slice_within(const Contraction& contraction, const std::vector<Interval>& intervals);

}  // namespace cuop
