// Internal: searches for the order in which a network of tensors is contracted.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cuop/ops/einsum/equation.h"

namespace cuop::pairwise {

/// A set of indices.
class IndexSet {
 public:
  void add(int index) { words_[word(index)] |= bit(index); }
  void remove(int index) { words_[word(index)] &= ~bit(index); }
  bool has(int index) const { return (words_[word(index)] & bit(index)) != 0; }
  bool empty() const { return *this == IndexSet(); }
  int count() const {
    int total = 0;
    for (const uint64_t each : words_) total += std::popcount(each);
    return total;
  }
  template <class Visit>
  void visit(Visit&& visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        visit(static_cast<int>(i * 64) + std::countr_zero(rest));
      }
    }
  }

  friend IndexSet operator|(IndexSet a, const IndexSet& b) {
    for (size_t i = 0; i < a.words_.size(); ++i) a.words_[i] |= b.words_[i];
    return a;
  }
  friend IndexSet operator&(IndexSet a, const IndexSet& b) {
    for (size_t i = 0; i < a.words_.size(); ++i) a.words_[i] &= b.words_[i];
    return a;
  }
  bool operator==(const IndexSet&) const = default;

 private:
  static size_t word(int index) { return static_cast<size_t>(index) / 64; }
  static uint64_t bit(int index) { return uint64_t{1} << (index % 64); }

  std::array<uint64_t, kMostEinsumIndices / 64> words_{};
};

/// Tensors of which each index is in at least two, or in one and the output.
struct Network {
  std::vector<IndexSet> terms;
  IndexSet output;
  std::vector<double> sizes;                               ///< of each index
  double limit = std::numeric_limits<double>::infinity();  ///< elements of an intermediate result

  double size(const IndexSet& indices) const;
  /// Whether an intermediate result may be so: within the limit and the dimensions of a tensor.
  bool allows(const IndexSet& indices) const;
};

/// Pairs of terms, and of what earlier pairs made, which is numbered on behind the terms.
using Merges = std::vector<std::pair<int, int>>;

/// What is made least of first.
enum class Aim : uint8_t { kFlops, kPeak };

/// What a tree costs.
struct TreeCost {
  double flops = 0;
  double peak = 0;  ///< elements of the largest intermediate result, the output not included

  bool is_less(const TreeCost& other, Aim aim) const;
};
TreeCost tree_cost(const Network& network, const Merges& merges);

/// Of a pair of these indices that makes `result`.
double pair_flops(const Network& network, const IndexSet& both, const IndexSet& result);

/// The best of all trees; nothing when none is allowed. Time and memory grow as 3^terms, 2^terms.
std::optional<Merges> search_all(const Network& network, Aim aim);

/// How a greedy search weighs a pair: log(size made) against `weight` times the sizes taken, with
/// disturbances of `temperature`.
struct GreedyOptions {
  double weight = 1.0;
  double temperature = 0.0;
  uint64_t seed = 0;
};
/// Nothing when it ends where no pair is allowed.
std::optional<Merges> search_greedily(const Network& network, const GreedyOptions& options);

/// The tree with its subtrees of up to 8 terms made optimal, until none improves.
Merges improved(const Network& network, const Merges& merges);

}  // namespace cuop::pairwise
