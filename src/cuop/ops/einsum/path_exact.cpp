#include <algorithm>
#include <cmath>

#include "cuop/core/interrupt.h"
#include "cuop/ops/einsum/path_search_internal.h"

namespace cuop::pairwise {

double Network::size(const IndexSet& indices) const {
  double product = 1;
  indices.visit([&](int index) { product *= sizes[static_cast<size_t>(index)]; });
  return product;
}

bool Network::allows(const IndexSet& indices) const {
  return indices.count() <= kMaxDims && size(indices) <= limit;
}

bool TreeCost::is_less(const TreeCost& other, Aim aim) const {
  const std::pair mine(flops, peak), others(other.flops, other.peak);
  if (aim == Aim::kFlops) return mine < others;
  return std::pair(peak, flops) < std::pair(other.peak, other.flops);
}

double pair_flops(const Network& network, const IndexSet& both, const IndexSet& result) {
  return network.size(both) * (both == result ? 1 : 2);
}

namespace {

/// The best tree of a set of terms.
struct Best {
  uint32_t part = 0;  ///< one side of the last pair; 0: there is none
  TreeCost cost;
};

class SubsetSearch {
 public:
  SubsetSearch(const Network& network, Aim aim)
      : network_(network), aim_(aim), all_((uint32_t{1} << network.terms.size()) - 1) {
    const size_t count = size_t{all_} + 1;
    std::vector<IndexSet> joined(count);
    for (uint32_t set = 1; set < count; ++set) {
      joined[set] = joined[set & (set - 1)] | network.terms[low_term(set)];
    }
    indices_.resize(count);
    for (uint32_t set = 1; set < count; ++set) {
      indices_[set] = joined[set] & (network.output | joined[all_ ^ set]);
    }
    for (size_t i = 0; i < network.terms.size(); ++i) indices_[size_t{1} << i] = network.terms[i];
    best_.resize(count);
  }

  std::optional<Merges> run() {
    constexpr uint32_t kOften = 64;  // so many sets are a tenth of a second, of 16 terms
    for (uint32_t set = 1; set <= all_; ++set) {
      if (set % kOften == 0) check_interrupt();
      if ((set & (set - 1)) != 0) fill(set);
    }
    if (all_ > 1 && best_[all_].part == 0) return std::nullopt;
    Merges merges;
    add(all_, merges);
    return merges;
  }

 private:
  static size_t low_term(uint32_t set) { return static_cast<size_t>(std::countr_zero(set)); }
  bool is_known(uint32_t set) const { return (set & (set - 1)) == 0 || best_[set].part != 0; }

  void fill(uint32_t set) {
    if (set != all_ && !network_.allows(indices_[set])) return;
    const double made = set == all_ ? 0 : network_.size(indices_[set]);
    Best& best = best_[set];
    // Each split once: the part with the lowest term.
    const uint32_t lowest = set & (~set + 1), others = set ^ lowest;
    for (uint32_t rest = (others - 1) & others;; rest = (rest - 1) & others) {
      const uint32_t part = rest | lowest, other = set ^ part;
      if (is_known(part) && is_known(other)) {
        TreeCost cost{best_[part].cost.flops + best_[other].cost.flops,
                      std::max({made, best_[part].cost.peak, best_[other].cost.peak})};
        if (best.part == 0 || cost.is_less(best.cost, aim_)) {
          cost.flops += pair_flops(network_, indices_[part] | indices_[other], indices_[set]);
          if (best.part == 0 || cost.is_less(best.cost, aim_)) best = {part, cost};
        }
      }
      if (rest == 0) break;
    }
  }

  /// The number of what the terms of the set make.
  int add(uint32_t set, Merges& merges) const {
    if ((set & (set - 1)) == 0) return static_cast<int>(low_term(set));
    const int part = add(best_[set].part, merges);
    const int other = add(set ^ best_[set].part, merges);
    merges.push_back({part, other});
    return static_cast<int>(network_.terms.size() + merges.size()) - 1;
  }

  const Network& network_;
  Aim aim_;
  uint32_t all_;
  std::vector<IndexSet> indices_;  ///< of what each set of terms makes
  std::vector<Best> best_;
};

}  // namespace

std::optional<Merges> search_all(const Network& network, Aim aim) {
  return SubsetSearch(network, aim).run();
}

}  // namespace cuop::pairwise
