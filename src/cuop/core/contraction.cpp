#include "cuop/core/contraction.h"

#include <algorithm>

namespace cuop {

bool has_index(const Indices& indices, int index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

bool same_indices(const Indices& a, const Indices& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&](int index) { return has_index(b, index); });
}

Shape Contraction::shape(const Indices& indices) const {
  Shape shape;
  for (const int index : indices) shape.push_back(sizes[static_cast<size_t>(index)]);
  return shape;
}

std::vector<Indices> Contraction::tensors(const std::vector<ContractionStep>& steps) const {
  std::vector<Indices> all = inputs;
  for (const ContractionStep& step : steps) all.push_back(step.result);
  return all;
}

Indices step_indices(const ContractionStep& step, const std::vector<Indices>& tensors) {
  Indices all = tensors[static_cast<size_t>(step.left)];
  if (!step.is_pair()) return all;
  for (const int index : tensors[static_cast<size_t>(step.right)]) {
    if (!has_index(all, index)) all.push_back(index);
  }
  return all;
}

double step_flops(const ContractionStep& step, const Indices& all, double elements) {
  const bool is_sum = all.size() > step.result.size();
  if (!step.is_pair()) return is_sum ? elements : 0.0;
  return is_sum ? 2.0 * elements : elements;
}

PairIndices pair_indices(const Indices& left, const Indices& right, const Indices& result) {
  PairIndices pair;
  for (const int index : left) {
    const bool is_shared = has_index(right, index), stays = has_index(result, index);
    Indices& role = !is_shared ? pair.left : stays ? pair.batch : pair.summed;
    role.push_back(index);
  }
  for (const int index : right) {
    if (!has_index(left, index)) pair.right.push_back(index);
  }
  return pair;
}

PairIndices pair_of(const ContractionStep& step, const std::vector<Indices>& tensors) {
  if (!step.is_pair()) return {};
  return pair_indices(tensors[static_cast<size_t>(step.left)],
                      tensors[static_cast<size_t>(step.right)], step.result);
}

}  // namespace cuop
