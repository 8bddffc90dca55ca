#include <algorithm>
#include <cmath>
#include <queue>
#include <tuple>

#include "cuop/core/interrupt.h"
#include "cuop/ops/einsum/path_search_internal.h"

namespace cuop::pairwise {

namespace {

/// A number in (0, 1) that depends on nothing but its arguments (Steele, Lea and Flood's mixing).
double noise(uint64_t seed, uint64_t step) {
  uint64_t bits = seed * 0x9E3779B97F4A7C15U + step * 0xD1B54A32D192ED03U + 0x2545F4914F6CDD1DU;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return (static_cast<double>((bits ^ (bits >> 31)) >> 12) + 0.5) / 0x1p52;
}

/// Keeps the order and brings costs of all magnitudes near each other.
double squeezed(double cost) { return std::copysign(std::log1p(std::abs(cost)), cost); }

class GreedySearch {
 public:
  GreedySearch(const Network& network, const GreedyOptions& options)
      : network_(network),
        options_(options),
        counts_(network.sizes.size()),
        alive_(network.terms.size()) {
    for (const IndexSet& term : network.terms) {
      term.visit([&](int index) { ++counts_[static_cast<size_t>(index)]; });
    }
    for (const IndexSet& term : network.terms) add(term);
  }

  std::optional<Merges> run() {
    while (alive_ > 1) {
      if (pairs_.empty()) {
        if (!merge_smallest()) return std::nullopt;
        continue;
      }
      const auto [cost, a, b] = pairs_.top();
      pairs_.pop();
      if (is_alive_[a] && is_alive_[b]) merge(a, b);
    }
    return merges_;
  }

 private:
  using Pair = std::tuple<double, size_t, size_t>;

  /// What two tensors make: what others, or the output, still need of them.
  IndexSet made_of(size_t a, size_t b) const {
    IndexSet result = sets_[a] | sets_[b];
    const IndexSet both = result;
    both.visit([&](int index) {
      const int here = int{sets_[a].has(index)} + int{sets_[b].has(index)};
      if (!network_.output.has(index) && counts_[static_cast<size_t>(index)] == here) {
        result.remove(index);
      }
    });
    return result;
  }

  bool may_merge(const IndexSet& result) const { return alive_ == 2 || network_.allows(result); }

  void consider(size_t a, size_t b) {
    const IndexSet made = made_of(a, b);
    if (!may_merge(made)) return;
    double cost = squeezed(network_.size(made) -
                           options_.weight * (network_.size(sets_[a]) + network_.size(sets_[b])));
    if (options_.temperature > 0) {
      cost += options_.temperature * std::log(-std::log(noise(options_.seed, drawn_++)));
    }
    pairs_.push({cost, a, b});
  }

  void add(const IndexSet& set) {
    const size_t number = sets_.size();
    sets_.push_back(set);
    is_alive_.push_back(true);
    for (size_t other = 0; other < number; ++other) {
      if (is_alive_[other] && !(sets_[other] & set).empty()) consider(other, number);
    }
  }

  void merge(size_t a, size_t b) {
    check_interrupt();
    const IndexSet made = made_of(a, b);
    for (const size_t gone : {a, b}) {
      sets_[gone].visit([&](int index) { --counts_[static_cast<size_t>(index)]; });
      is_alive_[gone] = false;
    }
    --alive_;
    made.visit([&](int index) { ++counts_[static_cast<size_t>(index)]; });
    merges_.push_back({static_cast<int>(a), static_cast<int>(b)});
    add(made);
  }

  /// Of tensors that share no index, or whose pairs were not allowed when they met, the smallest
  /// ones that may be merged now.
  bool merge_smallest() {
    std::vector<std::pair<double, size_t>> rest;
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (is_alive_[i]) rest.push_back({network_.size(sets_[i]), i});
    }
    std::sort(rest.begin(), rest.end());
    for (size_t b = 1; b < rest.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (!may_merge(made_of(rest[a].second, rest[b].second))) continue;
        merge(rest[a].second, rest[b].second);
        return true;
      }
    }
    return false;
  }

  const Network& network_;
  GreedyOptions options_;
  std::vector<int> counts_;  ///< living tensors that have the index
  size_t alive_;             ///< how many there are, terms that are still to be added too
  std::vector<IndexSet> sets_;
  std::vector<bool> is_alive_;
  uint64_t drawn_ = 0;
  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> pairs_;
  Merges merges_;
};

}  // namespace

std::optional<Merges> search_greedily(const Network& network, const GreedyOptions& options) {
  return GreedySearch(network, options).run();
}

}  // namespace cuop::pairwise
