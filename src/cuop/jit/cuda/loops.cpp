#include "cuop/jit/cuda/loops.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/axes.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/kernel_types.h"
#include "cuop/jit/cuda/row_plan.h"

namespace cuop::jit {

namespace {

constexpr int kMaxWidth = 16;
/// Elements of cost 1 that one thread's code may stretch over.
constexpr int kMaxUnrolledCost = 128;
/// Registers that the elements of one thread may take.
constexpr int64_t kMaxRegisters = 128;
/// Bytes of one thread's partial results by columns: it has `width` of them.
constexpr int64_t kMaxColumnState = 32;
/// Rows that threads take side by side by columns.
constexpr int64_t kColumnsAbreast = 32;
/// Rows are ragged where accesses would be shorter than that, and have at least so many packs.
constexpr int64_t kShortAccess = 8, kRaggedPacks = 16;
constexpr int64_t kLargest32 = std::numeric_limits<int32_t>::max();

/// The layout of an output along the kept axes. A result may have been given axes of size 1, or
/// lost them.
Layout spread(const Tensor& output, const Shape& kept) {
  if (output.shape() == kept) return output.layout();
  if (auto layout = try_reshape(output.layout(), kept)) return *layout;
  throw NotImplementedError(cat("jit: an output of shape ", output.shape(), " and strides ",
                                output.strides(), " cannot be seen as ", kept));
}

class Planner {
 public:
  Planner(const Expr& expr, const Bindings& bindings) : expr_(expr), bindings_(bindings) {}

  Loops run(int cost) {
    add_walkers();
    const int ndim = bindings_.shape.ndim(), kept = ndim - bindings_.reduced_axes;
    // A tensor without axes is reduced over none of them.
    loops_.is_reduction =
        bindings_.reduced_axes > 0 ||
        std::any_of(loops_.walkers.begin(), loops_.walkers.end(),
                    [](const Walker& walker) { return walker.role == Walker::Role::kReduced; });
    if (!loops_.is_reduction && is_one_run()) {
      loops_.sizes[0] = element_count(bindings_.shape);
      for (Walker& walker : loops_.walkers) walker.strides[0] = 1;
      loops_.kept = loops_.axes = 1;
    } else {
      spread_all(kept);
      add_axes(merged_axes(0, kept), !loops_.is_reduction);
      loops_.kept = loops_.axes;
      add_axes(merged_axes(kept, ndim), loops_.is_reduction);
    }
    choose_direction();
    choose_width(cost);
    choose_index_width();
    choose_team();
    for (Walker& walker : loops_.walkers) walker.pattern = pattern(walker);
    return std::move(loops_);
  }

 private:
  /// Adds the axes behind those that there are; one of size 1 where one is needed and none given.
  void add_axes(const std::vector<Axis>& axes, bool is_one_needed) {
    for (const Axis& axis : axes) {
      const auto i = static_cast<size_t>(loops_.axes++);
      loops_.sizes[i] = axis.size;
      for (size_t k = 0; k < axis.strides.size(); ++k) {
        loops_.walkers[k].strides[i] = axis.strides[k];
      }
    }
    if (axes.empty() && is_one_needed) loops_.sizes[static_cast<size_t>(loops_.axes++)] = 1;
  }

  const Tensor& tensor_of(const Walker& walker) const {
    const auto number = static_cast<size_t>(walker.number);
    return walker.role == Walker::Role::kLeaf ? *bindings_.leaves[number]
                                              : *bindings_.outputs[number];
  }

  void add(Walker::Role role, size_t number) {
    Walker& walker = loops_.walkers.emplace_back();
    walker.role = role;
    walker.number = static_cast<int16_t>(number);
    const Tensor& tensor = tensor_of(walker);
    walker.dtype = tensor.dtype();
    walker.data = static_cast<std::byte*>(tensor.data());
  }

  void add_walkers() {
    loops_.walkers.reserve(bindings_.leaves.size() + bindings_.outputs.size());
    const std::vector<bool> is_needed = needed_nodes(expr_);
    for (size_t i = 0; i < expr_.nodes().size(); ++i) {
      const Node& node = expr_.nodes()[i];
      if (node.kind != NodeKind::kLeaf || !is_needed[i]) continue;
      add(Walker::Role::kLeaf, static_cast<size_t>(node.code));
    }
    for (size_t i = 0; i < bindings_.outputs.size(); ++i) {
      const bool is_reduced = expr_.node(expr_.outputs()[i]).kind == NodeKind::kReduce;
      add(is_reduced ? Walker::Role::kReduced : Walker::Role::kOutput, i);
    }
  }

  /// Every tensor has all elements one after the other, in one order.
  bool is_one_run() const {
    return element_count(bindings_.shape) > 1 &&
           std::all_of(loops_.walkers.begin(), loops_.walkers.end(), [this](const Walker& walker) {
             const Tensor& tensor = tensor_of(walker);
             return tensor.shape() == bindings_.shape && tensor.is_contiguous();
           });
  }

  /// The layouts of all tensors along the iteration's axes.
  void spread_all(int kept) {
    const Shape kept_shape(
        std::span<const int64_t>(bindings_.shape.begin(), static_cast<size_t>(kept)));
    layouts_.reserve(loops_.walkers.size());
    for (const Walker& walker : loops_.walkers) {
      const Tensor& tensor = tensor_of(walker);
      if (walker.role == Walker::Role::kLeaf) {
        layouts_.push_back(broadcast_to(tensor.layout(), bindings_.shape, "elementwise"));
      } else {
        const bool is_reduced = walker.role == Walker::Role::kReduced;
        layouts_.push_back(spread(tensor, is_reduced ? kept_shape : bindings_.shape));
      }
    }
  }

  /// The axes from `begin` to `end`, as few as the tensors allow.
  std::vector<Axis> merged_axes(int begin, int end) const {
    std::vector<Axis> axes = axes_of(bindings_.shape, layouts_, begin, end);
    const size_t guide = guide_of(axes, begin == 0);
    return merged(std::move(axes), guide);
  }

  /// The tensor whose strides order the axes: an output that goes along them, else the leaf that
  /// goes along most of them.
  size_t guide_of(const std::vector<Axis>& axes, bool is_kept) const {
    size_t best = 0;
    int64_t most = -1;
    for (size_t k = 0; k < loops_.walkers.size(); ++k) {
      const Walker::Role role = loops_.walkers[k].role;
      if (role == Walker::Role::kOutput || (role == Walker::Role::kReduced && is_kept)) return k;
      const int64_t along = std::count_if(axes.begin(), axes.end(),
                                          [k](const Axis& axis) { return axis.strides[k] != 0; });
      if (along > most) {
        most = along;
        best = k;
      }
    }
    return best;
  }

  int64_t stride(const Walker& walker, int axis) const {
    return walker.strides[static_cast<size_t>(axis)];
  }
  int64_t inner_stride(const Walker& walker) const { return stride(walker, loops_.inner()); }
  /// Results lie along the inner axis by columns only.
  bool goes_along(const Walker& walker) const {
    return walker.role != Walker::Role::kReduced || loops_.is_column;
  }

  /// By columns where more bytes lie one after the other along the rows than along the elements.
  void choose_direction() {
    if (!loops_.is_reduction || loops_.kept == 0) return;
    int64_t along_rows = 0, along_elements = 0;
    for (const Walker& walker : loops_.walkers) {
      if (walker.role == Walker::Role::kReduced) continue;
      if (stride(walker, loops_.kept - 1) == 1) along_rows += itemsize(walker.dtype);
      if (stride(walker, loops_.axes - 1) == 1) along_elements += itemsize(walker.dtype);
    }
    loops_.is_column =
        along_rows > along_elements && loops_.sizes[static_cast<size_t>(loops_.kept - 1)] >= 8;
  }

  bool is_aligned(const Walker& walker, int width) const {
    if (reinterpret_cast<uintptr_t>(walker.data) %
            static_cast<uintptr_t>(std::min(kLoadBytes, width * itemsize(walker.dtype))) !=
        0) {
      return false;
    }
    for (int i = 0; i < loops_.axes; ++i) {
      if (i != loops_.inner() && stride(walker, i) % width != 0) return false;
    }
    return true;
  }

  /// As many elements as one access takes of the widest tensor that is read or written so.
  void choose_width(int cost) {
    int64_t widest = 1, registers = 0;
    bool is_any = false;
    for (const Walker& walker : loops_.walkers) {
      registers += std::max<int64_t>(1, itemsize(walker.dtype) / 4);
      if (!goes_along(walker) || inner_stride(walker) != 1) continue;
      widest = std::max(widest, itemsize(walker.dtype));
      is_any = true;
    }
    if (!is_any) return;
    const int64_t elements = std::max<int64_t>(1, access_bytes(kLoadBytes) / widest);
    int most = static_cast<int>(std::min<int64_t>(kMaxWidth, elements));
    while (most > 1 && (most * cost > kMaxUnrolledCost || most * registers > kMaxRegisters)) {
      most /= 2;
    }
    int width = most;
    while (width > 1 && !fits(width)) width /= 2;
    if (width * widest < kShortAccess && most == elements && is_ragged(most)) {
      loops_.is_ragged = true;
      width = most;
    }
    loops_.width = width;
    loops_.has_tail = !loops_.is_ragged && loops_.inner_size() % width != 0;
  }

  /// Whether all tensors have the same place in their accesses wherever a row begins.
  bool is_ragged(int width) const {
    if (!loops_.is_reduction || loops_.is_column || loops_.axes != loops_.kept + 1 ||
        loops_.inner_size() < kRaggedPacks * width) {
      return false;
    }
    const Walker* first = nullptr;
    for (const Walker& walker : loops_.walkers) {
      if (walker.role == Walker::Role::kReduced) continue;
      const bool is_repeated = inner_stride(walker) == 0;
      if (walker.role != Walker::Role::kLeaf || (!is_repeated && inner_stride(walker) != 1)) {
        return false;
      }
      if (is_repeated) continue;
      if (first == nullptr) first = &walker;
      if ((place_of(walker) - place_of(*first)) % width != 0) return false;
      for (int i = 0; i < loops_.kept; ++i) {
        if ((stride(walker, i) - stride(*first, i)) % width != 0) return false;
      }
    }
    return first != nullptr;
  }
  /// Of a tensor's first element among all of memory.
  static int64_t place_of(const Walker& walker) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(walker.data)) / itemsize(walker.dtype);
  }

  bool fits(int width) const {
    const int64_t inner = loops_.inner_size();
    const auto each = [this](auto&& holds) {
      return std::all_of(loops_.walkers.begin(), loops_.walkers.end(), [&](const Walker& walker) {
        return !goes_along(walker) || holds(walker);
      });
    };
    if (loops_.is_column && (detail::state_bytes(expr_, width) > kMaxColumnState ||
                             loops_.kept_size() < width * kColumnsAbreast)) {
      return false;
    }
    // Only accesses of neighbours know how to stop at the end.
    const bool may_have_tail = loops_.axes == 1 && !loops_.is_reduction && inner >= 4 * width &&
                               each([this](const Walker& walker) {
                                 return inner_stride(walker) == 0 || inner_stride(walker) == 1;
                               });
    if (inner % width != 0 && !may_have_tail) return false;
    return each([&](const Walker& walker) {
      return inner_stride(walker) != 1 || is_aligned(walker, width);
    });
  }

  void choose_index_width() {
    int64_t size = 1;
    for (int i = 0; i < loops_.axes; ++i) size *= loops_.sizes[static_cast<size_t>(i)];
    loops_.is_wide = size > kLargest32;
    for (const Walker& walker : loops_.walkers) {
      loops_.is_wide = loops_.is_wide || reach(walker, 0) > kLargest32;
    }
  }

  /// Elements from the first one to the last along the axes from `begin` on.
  int64_t reach(const Walker& walker, int begin) const {
    int64_t sum = 0;
    for (int i = begin; i < loops_.axes; ++i) {
      sum += magnitude(stride(walker, i)) * (loops_.sizes[static_cast<size_t>(i)] - 1);
    }
    return sum;
  }

  void choose_team() {
    if (!loops_.is_reduction) return;
    loops_.team = team_of_row(loops_.rows(), loops_.steps(), loops_.is_column, row_reach());
  }

  /// Bytes from a row's first element to its last, of the tensor where they are the most.
  int64_t row_reach() const {
    int64_t most = 0;
    for (const Walker& walker : loops_.walkers) {
      if (walker.role == Walker::Role::kReduced) continue;
      most = std::max(most, (reach(walker, loops_.kept) + 1) * itemsize(walker.dtype));
    }
    return most;
  }

  std::string pattern(const Walker& walker) const {
    const int count = walker.role == Walker::Role::kReduced ? loops_.kept : loops_.axes;
    std::string letters;
    for (int i = 0; i < count; ++i) {
      const int64_t by = stride(walker, i);
      if (i != loops_.inner()) {
        letters += by == 0 ? '0' : 'x';
      } else {
        letters += by == 0 ? 'b' : by == 1 ? 'v' : 's';
      }
    }
    return letters;
  }

  const Expr& expr_;
  const Bindings& bindings_;
  Loops loops_;
  std::vector<Layout> layouts_;
};

}  // namespace

int64_t Loops::size_of(int from, int to) const {
  return std::accumulate(sizes.begin() + from, sizes.begin() + to, int64_t{1}, std::multiplies<>());
}

int64_t Loops::packs() const {
  return size_of(0, inner()) * divide_up(inner_size(), width) * size_of(inner() + 1, axes);
}

void Loops::add_key_to(std::string& key) const {
  for (const int number : {kept, axes, width, team}) {
    key += static_cast<char>(number & 0xff);
    key += static_cast<char>(number >> 8);
  }
  key += is_wide ? 'w' : 'n';
  key += has_tail ? 't' : '-';
  key += is_column ? 'c' : is_ragged ? 'e' : 'r';
  for (const Walker& walker : walkers) {
    key += '/';
    key += walker.pattern;
  }
}

Loops plan_loops(const Expr& expr, const Bindings& bindings, int cost) {
  return Planner(expr, bindings).run(cost);
}

std::vector<bool> needed_nodes(const Expr& expr) {
  std::vector<bool> is_needed(expr.nodes().size(), false);
  for (const int output : expr.outputs()) is_needed[static_cast<size_t>(output)] = true;
  for (size_t i = expr.nodes().size(); i-- > 0;) {
    if (!is_needed[i]) continue;
    for (const int argument : expr.nodes()[i].arguments) {
      if (argument >= 0) is_needed[static_cast<size_t>(argument)] = true;
    }
  }
  return is_needed;
}

int element_cost(const Expr& expr) {
  const std::vector<bool> is_needed = needed_nodes(expr);
  int cost = 1;
  for (size_t i = 0; i < expr.nodes().size(); ++i) {
    if (!is_needed[i]) continue;
    const Node& node = expr.nodes()[i];
    if (node.kind == NodeKind::kOp) cost += op_table()[static_cast<size_t>(node.code)].cost;
    if (node.kind == NodeKind::kReduce || node.kind == NodeKind::kCast) cost += 1;
  }
  return cost;
}

int steps_together(const Expr& expr, const Loops& loops) {
  constexpr int kCheapStep = 24;
  if (loops.width * element_cost(expr) > kCheapStep) return 1;
  const auto is_of_moments = [&](int output) {
    const Node& node = expr.node(output);
    return node.kind == NodeKind::kReduce && detail::has_moments(node);
  };
  const bool has_moments = std::any_of(expr.outputs().begin(), expr.outputs().end(), is_of_moments);
  return loops.is_column && has_moments ? 2 * kStepsTogether : kStepsTogether;
}

}  // namespace cuop::jit
