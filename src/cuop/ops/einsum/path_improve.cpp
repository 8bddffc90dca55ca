#include <algorithm>

#include "cuop/ops/einsum/path_search_internal.h"

namespace cuop::pairwise {

namespace {

constexpr size_t kMostLeaves = 8;
constexpr int kMostRounds = 6;

/// A tree whose subtrees can be exchanged.
class Tree {
 public:
  Tree(const Network& network, const Merges& merges) : network_(network) {
    std::vector<int> counts(network.sizes.size());
    for (const IndexSet& term : network.terms) {
      nodes_.push_back({-1, -1, term});
      term.visit([&](int index) { ++counts[static_cast<size_t>(index)]; });
    }
    for (const auto& [left, right] : merges) {
      Node node{left, right, node_at(left).set | node_at(right).set};
      for (const int part : {left, right}) {
        node_at(part).set.visit([&](int index) { --counts[static_cast<size_t>(index)]; });
      }
      const IndexSet both = node.set;
      both.visit([&](int index) {
        int& count = counts[static_cast<size_t>(index)];
        if (count == 0 && !network.output.has(index)) {
          node.set.remove(index);
        } else {
          ++count;
        }
      });
      nodes_.push_back(node);
    }
  }

  TreeCost cost() const {
    TreeCost total;
    for (size_t i = network_.terms.size(); i < nodes_.size(); ++i) {
      total.flops += flops(nodes_[i]);
      if (i + 1 < nodes_.size()) total.peak = std::max(total.peak, network_.size(nodes_[i].set));
    }
    return total;
  }

  /// Whether any subtree became cheaper.
  bool improve() {
    bool has_improved = false;
    for (size_t i = network_.terms.size(); i < nodes_.size(); ++i) {
      has_improved = improve_below(static_cast<int>(i)) || has_improved;
    }
    return has_improved;
  }

  Merges merges() const {
    Merges all;
    add(static_cast<int>(nodes_.size()) - 1, all);
    return all;
  }

 private:
  struct Node {
    int left = -1;
    int right = -1;
    IndexSet set;
  };

  const Node& node_at(int number) const { return nodes_[static_cast<size_t>(number)]; }
  bool is_term(int number) const { return static_cast<size_t>(number) < network_.terms.size(); }
  double flops(const Node& node) const {
    return pair_flops(network_, node_at(node.left).set | node_at(node.right).set, node.set);
  }

  bool improve_below(int root) {
    // The leaves: the largest is opened first. `inner` are the nodes that may be made anew.
    std::vector<int> leaves{root}, inner;
    while (leaves.size() < kMostLeaves) {
      const auto largest = std::max_element(leaves.begin(), leaves.end(), [&](int a, int b) {
        return opening_order(a) < opening_order(b);
      });
      if (is_term(*largest)) break;
      const int opened = *largest;
      inner.push_back(opened);
      *largest = node_at(opened).left;
      leaves.push_back(node_at(opened).right);
    }
    if (inner.size() < 2) return false;
    Network part{{}, node_at(root).set, network_.sizes, network_.limit};
    for (const int leaf : leaves) part.terms.push_back(node_at(leaf).set);
    TreeCost now;
    for (const int node : inner) {
      now.flops += flops(node_at(node));
      if (node != root) now.peak = std::max(now.peak, network_.size(node_at(node).set));
    }
    const std::optional<Merges> best = search_all(part, Aim::kFlops);
    if (!best || !tree_cost(part, *best).is_less(now, Aim::kFlops)) return false;
    replace(inner, leaves, *best);
    return true;
  }

  /// Terms cannot be opened and come last.
  double opening_order(int number) const {
    return is_term(number) ? -1.0 : network_.size(node_at(number).set);
  }

  /// `inner` begins with the root, which stays the root.
  void replace(const std::vector<int>& inner, const std::vector<int>& leaves,
               const Merges& merges) {
    std::vector<int> numbers = leaves;
    for (size_t i = 0; i < merges.size(); ++i) {
      numbers.push_back(inner[merges.size() - 1 - i]);
      Node& node = nodes_[static_cast<size_t>(numbers.back())];
      node.left = numbers[static_cast<size_t>(merges[i].first)];
      node.right = numbers[static_cast<size_t>(merges[i].second)];
    }
    refresh(inner[0], leaves);
  }

  /// What each new node keeps: what the other leaves of the subtree, or those above it, need.
  void refresh(int root, const std::vector<int>& leaves) {
    std::vector<int> counts(network_.sizes.size());
    for (const int leaf : leaves) {
      node_at(leaf).set.visit([&](int index) { ++counts[static_cast<size_t>(index)]; });
    }
    const IndexSet needed = node_at(root).set;
    collect(root, leaves, counts, needed);
  }

  /// How many of the leaves below have each index.
  std::vector<int> collect(int number, const std::vector<int>& leaves,
                           const std::vector<int>& counts, const IndexSet& needed) {
    std::vector<int> below(counts.size());
    Node& node = nodes_[static_cast<size_t>(number)];
    if (std::find(leaves.begin(), leaves.end(), number) != leaves.end()) {
      node.set.visit([&](int index) { ++below[static_cast<size_t>(index)]; });
      return below;
    }
    const std::vector<int> left = collect(node.left, leaves, counts, needed);
    const std::vector<int> right = collect(node.right, leaves, counts, needed);
    node.set = IndexSet();
    for (size_t i = 0; i < below.size(); ++i) {
      below[i] = left[i] + right[i];
      const auto index = static_cast<int>(i);
      if (below[i] > 0 && (needed.has(index) || below[i] < counts[i])) node.set.add(index);
    }
    return below;
  }

  int add(int number, Merges& all) const {
    if (is_term(number)) return number;
    const int left = add(node_at(number).left, all);
    const int right = add(node_at(number).right, all);
    all.push_back({left, right});
    return static_cast<int>(network_.terms.size() + all.size()) - 1;
  }

  const Network& network_;
  std::vector<Node> nodes_;
};

}  // namespace

TreeCost tree_cost(const Network& network, const Merges& merges) {
  return Tree(network, merges).cost();
}

Merges improved(const Network& network, const Merges& merges) {
  Tree tree(network, merges);
  for (int round = 0; round < kMostRounds && tree.improve(); ++round) {
  }
  return tree.merges();
}

}  // namespace cuop::pairwise
