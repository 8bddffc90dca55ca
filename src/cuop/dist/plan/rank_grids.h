// Grids of ranks over which the blocks of a matrix are laid, and how strategies are called that use
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuop::dist {

/// m x n ranks; of products also the k into which their inner dimension is split.
struct RankGrid {
  int m = 1;
  int n = 1;
  int k = 1;

  int size() const { return m * n * k; }
  /// "row", "column", "block_2d" or, where k is split, "k_split".
  const char* strategy() const;
};

struct NamedGrid {
  std::string strategy;
  RankGrid grid;
};

/// What is worth considering.
struct GridChoice {
  bool splits_k = false;
  bool leaves_idle = false;  ///< grids of fewer ranks too, beside those over all
};

/// The grids over all ranks, those that split rows first: the first of equally fast ones is taken.
/// A forced strategy uses all ranks where it can and else most of them; where no grid has its
/// shape, it is one that splits less.
std::vector<NamedGrid> named_grids(int ranks, std::string_view forced, GridChoice choice);

}  // namespace cuop::dist
