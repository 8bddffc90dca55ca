#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cuop/ops/einsum/pair_layout_internal.h"

namespace cuop::pairwise {

namespace {

int dim_of(const Indices& indices, int index) {
  return static_cast<int>(std::find(indices.begin(), indices.end(), index) - indices.begin());
}

/// Whether BLAS reads the matrices of a stack where they lie.
bool is_readable(const Layout& stack) {
  const int rows = stack.ndim() - 2, columns = rows + 1;
  const auto is_dense = [&](int dim) { return stack.strides[dim] == 1 || stack.shape[dim] == 1; };
  return is_dense(rows) || is_dense(columns);
}

/// Whether every library reads them, stacks that are taken for one tall matrix too.
bool is_surely_readable(const Layout& stack) {
  const int r = stack.ndim() - 2;
  const int64_t rows = stack.shape[r], columns = stack.shape[r + 1];
  const int64_t row_step = stack.strides[r], column_step = stack.strides[r + 1];
  if (rows == 1 || columns == 1) return stack.is_contiguous();
  return (column_step == 1 && row_step >= columns) || (row_step == 1 && column_step >= rows);
}

double copied(const Named& x, const Indices& batch, const Indices& rows, const Indices& columns) {
  const std::optional<Layout> matrices = as_matrices(x, batch, rows, columns);
  return matrices && is_readable(*matrices) ? 0.0 : static_cast<double>(x.layout.size());
}

}  // namespace

Layout layout_in(const Indices& order, const Indices& indices, const Shape& shape) {
  Layout layout{shape, shape, 0};
  int64_t stride = 1;
  for (auto index = order.rbegin(); index != order.rend(); ++index) {
    const int dim = dim_of(indices, *index);
    layout.strides[dim] = stride;
    stride *= std::max<int64_t>(1, shape[dim]);
  }
  return layout;
}

Indices joined(const Indices& a, const Indices& b, const Indices& c) {
  Indices all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

std::optional<Layout> as_matrices(const Named& x, const Indices& batch, const Indices& rows,
                                  const Indices& columns) {
  Layout arranged{{}, {}, x.layout.offset};
  for (const int index : joined(batch, rows, columns)) {
    const int dim = dim_of(x.indices, index);
    const bool is_there = dim < x.layout.ndim();
    arranged.shape.push_back(is_there ? x.layout.shape[dim] : 1);
    arranged.strides.push_back(is_there ? x.layout.strides[dim] : 0);
  }
  Shape shape;
  int dim = 0;
  for (; dim < static_cast<int>(batch.size()); ++dim) shape.push_back(arranged.shape[dim]);
  for (const Indices* group : {&rows, &columns}) {
    int64_t length = 1;
    for (size_t i = 0; i < group->size(); ++i) length *= arranged.shape[dim++];
    shape.push_back(length);
  }
  return try_reshape(arranged, shape);
}

double most_copied(const Named& x, const Indices& batch, const Indices& rows,
                   const Indices& columns) {
  const std::optional<Layout> matrices = as_matrices(x, batch, rows, columns);
  return matrices && is_surely_readable(*matrices) ? 0.0 : static_cast<double>(x.layout.size());
}

Indices by_stride(const Named& x, const Indices& indices) {
  Indices sorted = indices;
  std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
    return std::abs(x.layout.strides[dim_of(x.indices, a)]) >
           std::abs(x.layout.strides[dim_of(x.indices, b)]);
  });
  return sorted;
}

namespace {

/// A call of BLAS costs as much as copying so many elements.
constexpr double kCallElements = 1000;
/// On a GPU copying an element takes as long as so many multiply-adds, and a side of a matrix that
/// is not whole tiles leaves a part of the last one idle: an H200 makes 160 matrices of 2048 x 160
/// float32 in 0.51 ms, one of 2048 x 25600 in 0.25.
constexpr double kGpuMultiplies = 60, kGpuTile = 128;
/// So many of the slowest dimensions of one operand may become a batch.
constexpr size_t kMostMoved = 3;

/// The first `count` of them moved to the end of the batch.
Indices without_first(const Indices& indices, size_t count, Indices& batch) {
  const auto rest = indices.begin() + static_cast<std::ptrdiff_t>(count);
  batch.insert(batch.end(), indices.begin(), rest);
  return {rest, indices.end()};
}

/// The orders of one pair that are weighed.
class OrderSearch {
 public:
  OrderSearch(const Named& left, const Named& right, const Indices& result,
              const std::optional<Layout>& made, Device device)
      : left_(left),
        right_(right),
        device_(device),
        pair_(pair_indices(left.indices, right.indices, result)) {
    lefts_ = {by_stride(left, pair_.left)};
    rights_ = {by_stride(right, pair_.right)};
    batch_ = by_stride(left, pair_.batch);
    if (!made) return;
    target_ = {*made, result};
    lefts_.push_back(by_stride(*target_, pair_.left));
    rights_.push_back(by_stride(*target_, pair_.right));
    batch_ = by_stride(*target_, pair_.batch);
  }

  PairOrder run() {
    weigh_all(0, 0);
    if (best_.copied == 0) return best_;
    // What does not merge may be a batch: "abc,bd->adc" is one product for each a.
    const size_t most_rows = most_moved(pair_.left), most_columns = most_moved(pair_.right);
    for (size_t rows = 0; rows <= most_rows; ++rows) {
      for (size_t columns = 0; columns <= most_columns; ++columns) {
        if (rows + columns > 0) weigh_all(rows, columns);
      }
    }
    return best_;
  }

 private:
  static size_t most_moved(const Indices& indices) {
    return indices.empty() ? 0 : std::min(indices.size() - 1, kMostMoved);
  }

  void weigh_all(size_t moved_rows, size_t moved_columns) {
    for (const Indices& summed :
         {by_stride(left_, pair_.summed), by_stride(right_, pair_.summed)}) {
      for (const Indices& left : lefts_) {
        for (const Indices& right : rights_) {
          Indices batch = batch_;
          const Indices rows = without_first(left, moved_rows, batch);
          const Indices columns = without_first(right, moved_columns, batch);
          weigh({batch, rows, summed, columns});
          // Orders of the same groups differ by what they copy alone.
          if (moved_rows + moved_columns == 0 && best_.copied == 0) return;
        }
      }
    }
  }

  void weigh(const PairIndices& order) {
    const auto& [batch, rows, summed, columns] = order;
    double sum = copied(left_, batch, rows, summed) + copied(right_, batch, summed, columns);
    if (target_) sum += copied(*target_, batch, rows, columns);
    const double cost = sum + product_cost(order);
    if (cost >= least_) return;
    least_ = cost;
    best_ = {order, sum};
  }

  double extent(const Indices& indices) const {
    double all = 1;
    for (const int index : indices) {
      const Named& x = has_index(left_.indices, index) ? left_ : right_;
      all *= static_cast<double>(x.layout.shape[dim_of(x.indices, index)]);
    }
    return all;
  }
  /// In elements that are copied.
  double product_cost(const PairIndices& order) const {
    const double calls = extent(order.batch);
    if (device_.is_cpu()) return kCallElements * calls;
    const auto tiles = [](double side) { return std::ceil(side / kGpuTile) * kGpuTile; };
    return calls * tiles(extent(order.left)) * tiles(extent(order.right)) * extent(order.summed) /
           kGpuMultiplies;
  }

  const Named& left_;
  const Named& right_;
  Device device_;
  PairIndices pair_;
  std::vector<Indices> lefts_, rights_;
  Indices batch_;
  std::optional<Named> target_;
  PairOrder best_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

PairOrder order_of(const Named& left, const Named& right, const Indices& result,
                   const std::optional<Layout>& made, Device device) {
  return OrderSearch(left, right, result, made, device).run();
}

std::vector<PairForm> row_major_forms(const Contraction& contraction,
                                      const std::vector<ContractionStep>& steps) {
  const std::vector<Indices> names = contraction.tensors(steps);
  const auto row_major = [&](const Indices& indices) {
    return Named{contiguous_layout(contraction.shape(indices)), indices};
  };
  std::vector<PairForm> forms;
  for (const ContractionStep& step : steps) {
    PairForm& form = forms.emplace_back();
    if (!step.is_pair()) continue;
    const Named left = row_major(names[static_cast<size_t>(step.left)]),
                right = row_major(names[static_cast<size_t>(step.right)]),
                made = row_major(step.result);
    const auto& [batch, rows, summed, columns] =
        order_of(left, right, step.result, made.layout).indices;
    form.batch = batch;
    if (summed.empty()) continue;
    form.copies_left = copied(left, batch, rows, summed) > 0;
    form.copies_right = copied(right, batch, summed, columns) > 0;
    form.copies_result = copied(made, batch, rows, columns) > 0;
  }
  return forms;
}

Layout best_layout(const Named& left, const Named& right, const Indices& result,
                   const Consumer& consumer) {
  const PairIndices pair = pair_indices(left.indices, right.indices, result);
  const Indices batch = by_stride(left, pair.batch), rows = by_stride(left, pair.left),
                columns = by_stride(right, pair.right);
  Shape shape;
  for (const int index : result) {
    const bool is_left = has_index(left.indices, index);
    const Named& x = is_left ? left : right;
    shape.push_back(x.layout.shape[dim_of(x.indices, index)]);
  }
  const std::array orders{
      joined(pair.batch, pair.left, pair.right), joined(pair.batch, pair.right, pair.left),
      joined(pair.left, pair.batch, pair.right), joined(pair.right, pair.batch, pair.left)};
  std::optional<Layout> best;
  double least = 0;
  for (const Indices& order : orders) {
    const Layout made = layout_in(order, result, shape);
    double sum = 0;
    if (consumer.other) {
      const Named here{made, result};
      sum = order_of(here, *consumer.other, consumer.result, consumer.made).copied;
    }
    if (best && sum >= least) continue;
    best = made;
    least = sum;
  }
  return *best;
}

}  // namespace cuop::pairwise
