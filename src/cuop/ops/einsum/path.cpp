#include "cuop/ops/einsum/path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/einsum/path_search_internal.h"

namespace cuop {

namespace {

using namespace pairwise;  // NOLINT: the searches

constexpr size_t kAutoExactTensors = 12;
constexpr const char* kEinsumPath = "einsum_path: ";

struct NamedSearch {
  const char* name;
  PathSearch search;
};
constexpr std::array<NamedSearch, 11> kSearches{{{"auto", PathSearch::kAuto},
                                                 {"optimal", PathSearch::kOptimal},
                                                 {"greedy", PathSearch::kGreedy},
                                                 {"random-greedy", PathSearch::kRandomGreedy},
                                                 {"in-order", PathSearch::kInOrder},
                                                 {"auto-hq", PathSearch::kAuto},
                                                 {"dp", PathSearch::kOptimal},
                                                 {"branch-all", PathSearch::kOptimal},
                                                 {"branch-2", PathSearch::kAuto},
                                                 {"branch-1", PathSearch::kAuto},
                                                 {"random-greedy-128", PathSearch::kRandomGreedy}}};

IndexSet set_of(const Indices& indices) {
  IndexSet set;
  for (const int index : indices) set.add(index);
  return set;
}

/// `indices` without those that no other tensor and not the output has.
Indices without_lonely(const Contraction& contraction, size_t input) {
  Indices kept;
  for (const int index : contraction.inputs[input]) {
    bool is_needed = has_index(contraction.output, index);
    for (size_t other = 0; other < contraction.inputs.size() && !is_needed; ++other) {
      is_needed = other != input && has_index(contraction.inputs[other], index);
    }
    if (is_needed) kept.push_back(index);
  }
  return kept;
}

/// Trials of the random search: the more terms, the longer each takes.
int trial_count(size_t terms) { return terms <= 64 ? 128 : 32; }

std::optional<Merges> search_randomly(const Network& network) {
  constexpr size_t kImproved = 4;
  const int trials = trial_count(network.terms.size());
  std::vector<std::pair<double, Merges>> found;
  for (int trial = 0; trial < trials; ++trial) {
    GreedyOptions options;  // the first ones are the plain search
    if (trial > 0) {
      options.weight = std::array{1.0, 0.5, 1.5, 0.0, 2.0, 4.0}[static_cast<size_t>(trial) % 6];
      options.temperature = trial < 6 ? 0.0 : 0.05 * static_cast<double>(1 << (trial % 5));
      options.seed = static_cast<uint64_t>(trial);
    }
    auto merges = search_greedily(network, options);
    if (merges) found.push_back({tree_cost(network, *merges).flops, std::move(*merges)});
  }
  if (found.empty()) return std::nullopt;
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  found.resize(std::min(found.size(), kImproved));
  std::optional<Merges> best;
  TreeCost least;
  for (const auto& [flops, merges] : found) {
    Merges tree = improved(network, merges);
    const TreeCost cost = tree_cost(network, tree);
    if (best && !cost.is_less(least, Aim::kFlops)) continue;
    best = std::move(tree);
    least = cost;
  }
  return best;
}

Merges in_order(const Network& network) {
  Merges merges;
  const int count = static_cast<int>(network.terms.size());
  for (int i = 1; i < count; ++i) merges.push_back({i == 1 ? 0 : count + i - 2, i});
  return merges;
}

std::optional<Merges> search(const Network& network, PathSearch how) {
  const size_t terms = network.terms.size();
  if (terms <= 2 && how != PathSearch::kInOrder) how = PathSearch::kOptimal;
  if (how == PathSearch::kAuto) {
    how = terms <= kAutoExactTensors ? PathSearch::kOptimal : PathSearch::kRandomGreedy;
  }
  if (how == PathSearch::kRandomGreedy) return search_randomly(network);
  if (how == PathSearch::kGreedy) {
    const auto merges = search_greedily(network, {});
    return merges ? std::optional(improved(network, *merges)) : std::nullopt;
  }
  if (how == PathSearch::kOptimal) {
    if (terms > kMostExactTensors) {
      throw ExecutionError(cat(kEinsumPath, "optimize: the search \"optimal\" takes up to ",
                               kMostExactTensors, " tensors, given are ", terms,
                               "; \"auto\" takes more"));
    }
    return search_all(network, Aim::kFlops);
  }
  return in_order(network);
}

/// The smallest largest intermediate that is found, for messages.
double least_peak(Network network) {
  network.limit = std::numeric_limits<double>::infinity();
  if (network.terms.size() <= kAutoExactTensors) {
    const auto merges = search_all(network, Aim::kPeak);
    return merges ? tree_cost(network, *merges).peak : network.limit;
  }
  double least = network.limit;
  for (const double weight : {0.0, 0.5, 1.0, 2.0}) {
    const auto merges = search_greedily(network, {weight, 0.0, 0});
    if (merges) least = std::min(least, tree_cost(network, *merges).peak);
  }
  return least;
}

/// Builds the steps: which tensors are still there, and what each is called.
class Steps {
 public:
  explicit Steps(const Contraction& contraction) : contraction_(contraction) {
    for (const Indices& input : contraction.inputs) {
      tensors_.push_back(input);
      numbers_.push_back(static_cast<int>(numbers_.size()));
    }
    if (numbers_.size() == 1) {
      steps_.push_back({0, -1, contraction.output});
      return;
    }
    for (size_t input = 0; input < contraction.inputs.size(); ++input) {
      const Indices kept = without_lonely(contraction, input);
      if (kept.size() == contraction.inputs[input].size()) continue;
      make({static_cast<int>(input), -1, kept});
      numbers_[input] = static_cast<int>(tensors_.size()) - 1;
    }
  }

  size_t count() const { return numbers_.size(); }
  std::vector<ContractionStep> take() { return std::move(steps_); }

  /// The network of the tensors at these positions, whose output is what the others need.
  Network network(const std::vector<size_t>& positions, std::optional<double> limit) const {
    Network network;
    network.output = set_of(contraction_.output);
    for (const int64_t size : contraction_.sizes) {
      network.sizes.push_back(static_cast<double>(size));
    }
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const bool is_taken = std::find(positions.begin(), positions.end(), i) != positions.end();
      if (!is_taken) network.output = network.output | set_of(at(i));
    }
    IndexSet there;
    for (const size_t position : positions) {
      network.terms.push_back(set_of(at(position)));
      there = there | network.terms.back();
    }
    network.output = network.output & there;
    if (limit) network.limit = *limit;
    return network;
  }

  /// Takes the tensors out of the list and puts what they make at its end.
  void merge(std::vector<size_t> positions, const Network& network, const Merges& merges) {
    std::vector<int> made;
    for (const size_t position : positions) made.push_back(numbers_[position]);
    const bool is_last = positions.size() == numbers_.size();
    for (size_t i = 0; i < merges.size(); ++i) {
      const int left = made[static_cast<size_t>(merges[i].first)];
      const int right = made[static_cast<size_t>(merges[i].second)];
      const bool is_output = is_last && i + 1 == merges.size();
      make({left, right,
            is_output ? contraction_.output : result_of(left, right, made, network.output)});
      made[static_cast<size_t>(merges[i].first)] = -1;
      made[static_cast<size_t>(merges[i].second)] = -1;
      made.push_back(static_cast<int>(tensors_.size()) - 1);
    }
    std::sort(positions.rbegin(), positions.rend());
    for (const size_t position : positions) {
      numbers_.erase(numbers_.begin() + static_cast<std::ptrdiff_t>(position));
    }
    numbers_.push_back(made.back());
  }

 private:
  const Indices& at(size_t position) const {
    return tensors_[static_cast<size_t>(numbers_[position])];
  }
  const Indices& tensor(int number) const { return tensors_[static_cast<size_t>(number)]; }

  void make(ContractionStep step) {
    tensors_.push_back(step.result);
    steps_.push_back(std::move(step));
  }

  /// The indices of both that the output or another of the tensors still needs.
  Indices result_of(int left, int right, const std::vector<int>& there,
                    const IndexSet& output) const {
    IndexSet needed = output;
    for (const int number : there) {
      if (number >= 0 && number != left && number != right) {
        needed = needed | set_of(tensor(number));
      }
    }
    const PairIndices pair = pair_indices(tensor(left), tensor(right), {});
    Indices result;
    for (const Indices* part : {&pair.summed, &pair.left, &pair.right}) {
      for (const int index : *part) {
        if (needed.has(index)) result.push_back(index);
      }
    }
    return result;
  }

  const Contraction& contraction_;
  std::vector<Indices> tensors_;  ///< all there were
  std::vector<int> numbers_;      ///< of those in the list
  std::vector<ContractionStep> steps_;
};

std::vector<size_t> all_positions(size_t count) {
  std::vector<size_t> positions(count);
  std::iota(positions.begin(), positions.end(), size_t{0});
  return positions;
}

void contract(Steps& steps, const std::vector<size_t>& positions, PathSearch how,
              std::optional<double> limit) {
  const Network network = steps.network(positions, limit);
  const std::optional<Merges> merges = search(network, how);
  if (!merges) {
    const double least = least_peak(network);
    const std::string elements = limit ? cat(*limit, " elements and ") : "";
    const std::string found =
        std::isfinite(least) ? cat("; the smallest found has ", least, " elements") : "";
    throw MemoryError(cat(kEinsumPath,
                          "no order was found whose intermediate results have at most ", elements,
                          kMaxDims, " dimensions", found));
  }
  const double peak = tree_cost(network, *merges).peak;
  if (limit && peak > *limit) {  // of a given order
    throw MemoryError(cat(kEinsumPath, "an intermediate result of the order has ", peak,
                          " elements; allowed are ", *limit));
  }
  steps.merge(positions, network, *merges);
}

/// The positions of one entry of a path, ascending.
std::vector<size_t> checked_positions(const std::vector<int64_t>& entry, size_t there) {
  std::vector<size_t> positions;
  for (const int64_t given : entry) {
    const int64_t count = static_cast<int64_t>(there);
    if (given < -count || given >= count) {
      throw ExecutionError(cat(kEinsumPath, "position ", given, " of entry (", join(entry),
                               ") of the path; there are ", there, " tensors then"));
    }
    positions.push_back(static_cast<size_t>(given < 0 ? given + count : given));
  }
  std::sort(positions.begin(), positions.end());
  if (positions.empty() ||
      std::adjacent_find(positions.begin(), positions.end()) != positions.end()) {
    throw ExecutionError(cat(kEinsumPath, "entry (", join(entry),
                             ") of the path; an entry is one or more different positions"));
  }
  return positions;
}

}  // namespace

PathSearch parse_path_search(std::string_view text) {
  for (const NamedSearch& each : kSearches) {
    if (text == each.name) return each.search;
  }
  std::vector<const char*> names;
  for (const NamedSearch& each : kSearches) names.push_back(each.name);
  throw ExecutionError(
      cat(kEinsumPath, "optimize: the search \"", text, "\" is unknown; known are ", join(names)));
}

const char* name(PathSearch search) {
  const auto known = std::find_if(kSearches.begin(), kSearches.end(),
                                  [&](const NamedSearch& each) { return each.search == search; });
  return known->name;
}

std::string text_of(const PathOptions& options) {
  const auto* const search = std::get_if<PathSearch>(&options.order);
  const bool is_usual = search != nullptr && *search == PathSearch::kAuto &&
                        !options.largest_intermediate && !options.memory_limit;
  if (is_usual) return "";  // a stream takes as long as a short product
  std::ostringstream text;
  if (search != nullptr) {
    if (*search != PathSearch::kAuto) text << ", " << name(*search);
  } else {
    text << ", path";
    for (const auto& entry : std::get<LinearPath>(options.order))
      text << " (" << join(entry) << ')';
  }
  if (options.largest_intermediate) {
    text << ", at most " << std::setprecision(17) << *options.largest_intermediate << " elements";
  }
  if (options.memory_limit) text << ", at most " << *options.memory_limit << " bytes";
  return text.str();
}

std::vector<ContractionStep> find_steps(const Contraction& contraction,
                                        const PathOptions& options) {
  Steps steps(contraction);
  if (const auto* path = std::get_if<LinearPath>(&options.order)) {
    for (const std::vector<int64_t>& entry : *path) {
      const std::vector<size_t> positions = checked_positions(entry, steps.count());
      if (positions.size() == 1) {
        const Network one = steps.network(positions, {});
        steps.merge(positions, one, {});
      } else {
        contract(steps, positions, PathSearch::kAuto, options.largest_intermediate);
      }
    }
    if (steps.count() > 1) {
      throw ExecutionError(
          cat(kEinsumPath, "the path leaves ", steps.count(), " tensors; it has to end with one"));
    }
  } else if (steps.count() > 1) {
    contract(steps, all_positions(steps.count()), std::get<PathSearch>(options.order),
             options.largest_intermediate);
  }
  return steps.take();
}

std::vector<std::vector<ContractionStep>> find_orders(const Contraction& contraction,
                                                      const PathOptions& options, size_t most) {
  constexpr double kMostTimesFlops = 16;  // a detour that no saving of another kind is worth
  std::vector<std::vector<ContractionStep>> orders{find_steps(contraction, options)};
  const auto* search = std::get_if<PathSearch>(&options.order);
  const Steps begun(contraction);
  const bool is_open = search != nullptr && *search == PathSearch::kAuto;
  if (!is_open || most < 2 || begun.count() < 3) return orders;
  const std::vector<size_t> positions = all_positions(begun.count());
  const Network network = begun.network(positions, options.largest_intermediate);
  std::vector<std::optional<Merges>> others;
  if (begun.count() <= kAutoExactTensors) others.push_back(search_all(network, Aim::kPeak));
  for (const double weight : {1.0, 0.0, 2.0}) {
    others.push_back(search_greedily(network, {weight, 0.0, 0}));
  }
  if (Merges merges = in_order(network); tree_cost(network, merges).peak <= network.limit) {
    others.push_back(std::move(merges));
  }
  std::vector<LinearPath> known{linear_path(contraction, orders[0])};
  const double least = path_costs(contraction, orders[0]).flops;
  for (const std::optional<Merges>& merges : others) {
    if (!merges || orders.size() >= most) continue;
    Steps steps = begun;
    steps.merge(positions, network, *merges);
    std::vector<ContractionStep> order = steps.take();
    LinearPath path = linear_path(contraction, order);
    const bool is_known = std::find(known.begin(), known.end(), path) != known.end();
    if (is_known || path_costs(contraction, order).flops > kMostTimesFlops * least) continue;
    known.push_back(std::move(path));
    orders.push_back(std::move(order));
  }
  return orders;
}

LinearPath linear_path(const Contraction& contraction, const std::vector<ContractionStep>& steps) {
  if (contraction.inputs.size() == 1) return {{0}};
  std::vector<int> there(contraction.inputs.size());
  std::iota(there.begin(), there.end(), 0);
  int made = static_cast<int>(there.size());
  LinearPath path;
  for (const ContractionStep& step : steps) {
    const auto left = std::find(there.begin(), there.end(), step.left);
    if (!step.is_pair()) {
      *left = made++;
      continue;
    }
    const auto right = std::find(there.begin(), there.end(), step.right);
    const auto [low, high] = std::minmax(left, right);
    path.push_back({low - there.begin(), high - there.begin()});
    there.erase(high);
    there.erase(low);
    there.push_back(made++);
  }
  return path;
}

PathCosts path_costs(const Contraction& contraction, const std::vector<ContractionStep>& steps) {
  Network network;
  for (const int64_t size : contraction.sizes) network.sizes.push_back(static_cast<double>(size));
  const std::vector<Indices> tensors = contraction.tensors(steps);
  PathCosts costs;
  for (const ContractionStep& step : steps) {
    IndexSet both = set_of(tensors[static_cast<size_t>(step.left)]);
    if (step.is_pair()) both = both | set_of(tensors[static_cast<size_t>(step.right)]);
    const IndexSet result = set_of(step.result);
    if (step.is_pair()) {
      costs.flops += pair_flops(network, both, result);
    } else if (!(both == result)) {
      costs.flops += network.size(both);
    }
    costs.largest_intermediate = std::max(costs.largest_intermediate, network.size(result));
  }
  IndexSet all;
  for (const Indices& input : contraction.inputs) all = all | set_of(input);
  const double terms = static_cast<double>(contraction.inputs.size());
  const bool is_summed = !(all == set_of(contraction.output));
  costs.naive_flops = network.size(all) * (std::max(1.0, terms - 1) + (is_summed ? 1.0 : 0.0));
  return costs;
}

}  // namespace cuop
