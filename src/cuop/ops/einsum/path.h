// In which order a product of many tensors is computed pairwise. Pure functions of sizes.
//
// Up to 12 tensors the cheapest order is found among all of them, by dynamic programming over
// subsets, outer products included. Beyond, a greedy search (the pair that shrinks memory most) is
// repeated with random weights and disturbances of a fixed seed (Gray and Kourtis, 2021), and in
// the best trees every subtree of up to 8 tensors is made optimal until none improves.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cuop/core/contraction.h"

namespace cuop {

/// For each step the positions of the tensors that it takes out of a list; what they make is put at
/// its end (the form of NumPy and opt_einsum). Steps of one tensor, and of more than two, too.
using LinearPath = std::vector<std::vector<int64_t>>;

enum class PathSearch : uint8_t {
  kAuto,          ///< kOptimal up to 12 tensors, else kRandomGreedy
  kOptimal,       ///< up to 16 tensors, a second of time
  kGreedy,        ///< one greedy tree, with optimal subtrees
  kRandomGreedy,  ///< the best of many
  kInOrder,       ///< the first two, what they make and the third, and so on
};
inline constexpr int kMostExactTensors = 16;

/// "auto", "optimal", "greedy", "random-greedy", "in-order", and opt_einsum's other names for
/// searches: "auto-hq" (auto), "dp" and "branch-all" (optimal), "branch-2" and "branch-1" (auto),
/// "random-greedy-128"; ExecutionError otherwise.
PathSearch parse_path_search(std::string_view text);
const char* name(PathSearch search);

struct PathOptions {
  std::variant<PathSearch, LinearPath> order = PathSearch::kAuto;
  /// Elements that no intermediate result may exceed, whatever that costs.
  std::optional<double> largest_intermediate = {};
  /// Bytes that a call may have at a time, of those who run the steps; orders do not depend on it.
  std::optional<int64_t> memory_limit = {};
};

/// ", greedy, at most 1000000 elements, at most 4096 bytes"; "" of the defaults. Options that
/// differ differ in this.
std::string text_of(const PathOptions& options);

struct PathCosts {
  double flops = 0;        ///< of a pair: the product of the sizes, twice where something is summed
  double naive_flops = 0;  ///< of all tensors at once, as one nest of loops
  double largest_intermediate = 0;  ///< elements, the result included
};

/// Steps that solve the contraction: first the sums of what only one input has, then pairs. The
/// last one makes the output in its order; a single input takes one step. ExecutionError for a path
/// that does not fit, or too many tensors for a search; MemoryError when no order was found that
/// keeps to the limit.
std::vector<ContractionStep> find_steps(const Contraction& contraction,
                                        const PathOptions& options = {});

/// The same and, where the order is left to the search, up to `most` orders in all that differ: for
/// those who weigh more than flops. The first is the one above.
std::vector<std::vector<ContractionStep>> find_orders(const Contraction& contraction,
                                                      const PathOptions& options, size_t most);

/// The pairs among such steps.
LinearPath linear_path(const Contraction& contraction, const std::vector<ContractionStep>& steps);

PathCosts path_costs(const Contraction& contraction, const std::vector<ContractionStep>& steps);

}  // namespace cuop
