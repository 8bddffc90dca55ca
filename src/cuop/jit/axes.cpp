#include "cuop/jit/axes.h"

#include <algorithm>
#include <utility>

namespace cuop::jit {

namespace {

/// Whether every tensor goes on from `axis`, the inner one, to `before` without a gap.
bool follows(const Axis& axis, const Axis& before) {
  for (size_t k = 0; k < axis.strides.size(); ++k) {
    if (before.strides[k] != axis.strides[k] * axis.size) return false;
  }
  return true;
}

}  // namespace

std::vector<Axis> axes_of(const Shape& shape, std::span<const Layout> layouts, int begin, int end) {
  std::vector<Axis> axes;
  for (int i = begin; i < end; ++i) {
    if (shape[i] == 1) continue;
    Axis axis{shape[i], {}};
    for (const Layout& layout : layouts) {
      axis.strides.push_back(i < layout.ndim() ? layout.strides[i] : 0);
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

std::vector<Axis> merged(std::vector<Axis> axes, size_t guide) {
  std::stable_sort(axes.begin(), axes.end(), [guide](const Axis& a, const Axis& b) {
    return magnitude(a.strides[guide]) > magnitude(b.strides[guide]);
  });
  std::vector<Axis> result;
  for (Axis& axis : axes) {
    if (!result.empty() && follows(axis, result.back())) {
      axis.size *= result.back().size;
      result.back() = std::move(axis);
    } else {
      result.push_back(std::move(axis));
    }
  }
  return result;
}

}  // namespace cuop::jit
