#include "cuop/dist/algo/index.h"

#include <algorithm>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/algo/pieces.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/output.h"

namespace cuop::dist {
namespace {

/// One entry of a checked index: an integer, a slice or a new axis.
struct Entry {
  enum class Kind : uint8_t { kInteger, kSlice, kNewAxis };
  Kind kind = Kind::kSlice;
  int dim = -1;      ///< of x
  SliceRange range;  ///< of an integer: first

  /// Which of the slice's elements, counted in its order, the interval of x's dimension holds.
  Interval held(const Interval& part) const {
    if (range.length == 0 || part.length() == 0) return {};
    if (range.length == 1) {  // whatever the step, which may be of any size then
      const bool is_held = part.low <= range.first && range.first < part.high;
      return is_held ? Interval{0, 1} : Interval{};
    }
    const int64_t last = range.first + (range.length - 1) * range.step;
    const auto [low, high] = std::minmax(range.first, last);
    const int64_t from = std::max(low, part.low), to = std::min(high, part.high - 1);
    if (from > to) return {};
    const int64_t pace = std::abs(range.step);
    // The first element at or beyond `from` and the last at or before `to`, counted from `low`.
    const int64_t first = divide_up(from - low, pace), end = (to - low) / pace + 1;
    if (first >= end) return {};
    return range.step > 0 ? Interval{first, end}
                          : Interval{range.length - end, range.length - first};
  }
};

using Entries = std::vector<Entry>;

Entries resolve(const Shape& shape, std::span<const Index> index) {
  const std::vector<Index> list = complete_index(shape.ndim(), index);
  const auto consumed = std::count_if(list.begin(), list.end(), [](const Index& entry) {
    return std::holds_alternative<int64_t>(entry) || std::holds_alternative<SliceIndex>(entry);
  });
  Entries entries;
  int dim = 0, axis = 0;  // of x, and of the view that one tensor's indexing would have so far
  const auto add_slice = [&](const SliceIndex& s) {
    entries.push_back(
        {Entry::Kind::kSlice, dim, resolve_slice(shape[dim], s.start, s.stop, s.step)});
    ++dim;
    ++axis;
  };
  for (const Index& entry : list) {
    if (std::holds_alternative<Tensor>(entry)) {
      throw ExecutionError(
          "index: masks and index arrays do not index distributed tensors; integers, slices, None, "
          "... and a distributed mask of its first dimensions do");
    }
    if (const auto* position = std::get_if<int64_t>(&entry)) {
      const int64_t first = resolve_index(*position, shape[dim], axis);
      entries.push_back({Entry::Kind::kInteger, dim++, {first, 1, 1}});
    } else if (const auto* s = std::get_if<SliceIndex>(&entry)) {
      add_slice(*s);
    } else if (std::holds_alternative<NewAxisIndex>(entry)) {
      entries.push_back({Entry::Kind::kNewAxis, -1, {0, 1, 1}});
      ++axis;
    } else {
      const auto left = shape.ndim() - static_cast<int>(consumed);
      for (int i = 0; i < left; ++i) add_slice({});
    }
  }
  return entries;
}

Shape result_shape(const Entries& entries) {
  Shape shape;
  for (const Entry& entry : entries) {
    if (entry.kind != Entry::Kind::kInteger) shape.push_back(entry.range.length);
  }
  return shape;
}

/// The box of the result, in its own coordinates, on a rank that holds `part` of x.
Box held_box(const Entries& entries, const Box& part) {
  const int ndim = result_shape(entries).ndim();
  if (part.is_void) return empty_box(ndim);
  Box box;
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::kNewAxis) {
      box.low.push_back(0);
      box.high.push_back(1);
      continue;
    }
    const Interval held = entry.held(part.interval(entry.dim));
    if (entry.kind == Entry::Kind::kInteger) {
      if (held.length() == 0) return empty_box(ndim);
      continue;
    }
    box.low.push_back(held.low);
    box.high.push_back(held.high);
  }
  return box;
}

std::vector<Box> held_boxes(const Entries& entries, const DistTensor& x) {
  std::vector<Box> boxes;
  for (const Box& part : x.sharding().owner_boxes(x.shape())) {
    boxes.push_back(held_box(entries, part));
  }
  return boxes;
}

/// The view of this rank's part that is `held` of the result; undefined where that is empty.
Tensor held_view(const Entries& entries, const DistTensor& x, const Box& held) {
  if (held.is_void || !x.local().is_defined()) return {};
  if (held.empty()) return {};
  const Box part = x.box();
  Layout layout = x.local().layout();
  int axis = 0, dim = 0;
  for (const Entry& entry : entries) {
    const auto& [first, length, step] = entry.range;
    switch (entry.kind) {
      case Entry::Kind::kInteger:
        layout = select(layout, axis, first - part.low[entry.dim]);
        break;
      case Entry::Kind::kSlice: {
        const Interval mine = held.interval(dim++);
        layout = slice(layout, axis, first + mine.low * step - part.low[entry.dim], mine.length(),
                       length > 1 ? step : 1);
        ++axis;
        break;
      }
      case Entry::Kind::kNewAxis:
        layout = insert_axis(layout, axis++);
        ++dim;
        break;
    }
  }
  return x.local().with_layout(layout);
}

/// A dimension of the result: the mesh axes that split it, and its block sizes.
struct KeptDim {
  Spec::Axes axes;
  std::vector<int64_t> sizes;  ///< one for each block
};

/// The sizes that a slice leaves of x's blocks; even ones where it turns the order of several
/// around, which no sharding can say.
std::vector<int64_t> sizes_left(const Entry& entry, const std::vector<Interval>& blocks) {
  std::vector<int64_t> sizes;
  for (const Interval& block : blocks) sizes.push_back(entry.held(block).length());
  const auto owners =
      std::count_if(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; });
  if (entry.range.step > 0 || owners < 2) return sizes;
  const auto parts = static_cast<int64_t>(blocks.size());
  for (int64_t i = 0; i < parts; ++i) {
    sizes[static_cast<size_t>(i)] = split_evenly({0, entry.range.length}, parts, i).length();
  }
  return sizes;
}

/// Mesh axes that split dimensions which integers take away, and which of their blocks is left.
struct Freed {
  Spec::Axes axes;
  int64_t count = 1;   ///< of blocks
  int64_t number = 0;  ///< of the one that is left
};

Freed freed_axes(const Entries& entries, const DistTensor& x) {
  Freed freed;
  for (const Entry& entry : entries) {
    if (entry.kind != Entry::Kind::kInteger) continue;
    const Spec::Axes& axes = x.sharding().spec().axes(entry.dim);
    const std::vector<Interval> blocks = blocks_of(x.sharding(), x.shape(), entry.dim);
    const auto left = std::find_if(blocks.begin(), blocks.end(), [&](const Interval& block) {
      return entry.held(block).length() > 0;
    });
    freed.axes.insert(freed.axes.end(), axes.begin(), axes.end());
    freed.count *= std::ssize(blocks);
    freed.number = freed.number * std::ssize(blocks) + (left - blocks.begin());
  }
  return freed;
}

/// The dimension that the freed axes split as well: the first one of x that stays, else a new one.
size_t host_of(const Entries& entries) {
  size_t dim = 0;
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::kSlice) return dim;
    if (entry.kind == Entry::Kind::kNewAxis) ++dim;
  }
  return 0;
}

/// Where the result lies, as index.h says.
Sharding result_sharding(const Entries& entries, const DistTensor& x) {
  const Sharding& given = x.sharding();
  const Mesh& mesh = given.mesh();
  if (given.single_rank() >= 0) return given;
  std::vector<KeptDim> dims;
  for (const Entry& entry : entries) {
    if (entry.kind == Entry::Kind::kInteger) continue;
    KeptDim dim{{}, {entry.range.length}};
    if (entry.kind == Entry::Kind::kSlice && !given.spec().axes(entry.dim).empty()) {
      dim.axes = given.spec().axes(entry.dim);
      dim.sizes = sizes_left(entry, blocks_of(given, x.shape(), entry.dim));
    }
    dims.push_back(std::move(dim));
  }
  const Freed freed = freed_axes(entries, x);
  if (freed.count > 1) {
    if (dims.empty() || freed.count == mesh.grid_size()) {
      // The element, or the only rank that has a part.
      for (int rank = 0; rank < mesh.grid_size(); ++rank) {
        if (mesh.block_number(rank, freed.axes) == freed.number) {
          return Sharding::on_rank(mesh, rank);
        }
      }
    }
    KeptDim& host = dims[host_of(entries)];
    std::vector<int64_t> sizes;
    for (int64_t i = 0; i < freed.count; ++i) {
      for (const int64_t size : host.sizes) sizes.push_back(i == freed.number ? size : 0);
    }
    host.sizes = std::move(sizes);
    host.axes.insert(host.axes.begin(), freed.axes.begin(), freed.axes.end());
  }
  std::vector<Spec::Axes> axes;
  for (const KeptDim& dim : dims) axes.push_back(dim.axes);
  const Shape shape = result_shape(entries);
  Sharding result(mesh, Spec(std::move(axes)));
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].axes.empty()) {
      result = in_blocks(result, shape, static_cast<int>(i), dims[i].sizes);
    }
  }
  return result;
}

std::string text_of(const Entries& entries) {
  std::vector<std::string> parts;
  for (const Entry& entry : entries) {
    const auto& [first, length, step] = entry.range;
    parts.push_back(entry.kind == Entry::Kind::kNewAxis ? "None"
                    : entry.kind == Entry::Kind::kInteger
                        ? cat(first)
                        : cat(length, " from ", first, " by ", step));
  }
  return cat('[', join(parts), ']');
}

void check_defined(const DistTensor& x) {
  if (!x.is_defined()) throw ExecutionError("index: a distributed tensor is undefined");
}

bool lie_there(const std::vector<Box>& held, const std::vector<Box>& wanted) {
  for (size_t rank = 0; rank < held.size(); ++rank) {
    if (!wanted[rank].empty() && !(held[rank] == wanted[rank])) return false;
  }
  return true;
}

}  // namespace

DistTensor get_item(const DistTensor& x, std::span<const Index> index) {
  check_defined(x);
  const Entries entries = resolve(x.shape(), index);
  const Shape shape = result_shape(entries);
  const std::vector<Box> held = held_boxes(entries, x);
  const Sharding sharding = result_sharding(entries, x);
  const std::vector<Box> wanted = sharding.owner_boxes(shape);
  const auto rank = static_cast<size_t>(x.comm().rank());
  Tensor local = held_view(entries, x, held[rank]);
  if (lie_there(held, wanted)) {
    if (wanted[rank].empty()) local = Tensor();
  } else {
    run_together(
        x.comm(), cat("index ", text_of(entries), " of ", x.to_string()), [] {},
        [&] {
          local = fetch(x.comm(), {local, held[rank], x.device()}, held, wanted, x.dtype());
        });
  }
  return DistTensor(x.comm_ptr(), sharding, shape, x.dtype(), local, x.device());
}

void set_item(const DistTensor& x, std::span<const Index> index, const DistOperand& value) {
  static constexpr const char* kWho = "index assignment";
  check_defined(x);
  if (value.tensor() != nullptr) check_defined(*value.tensor());
  const Entries entries = resolve(x.shape(), index);
  const std::vector<Box> held = held_boxes(entries, x);
  const Tensor view = held_view(entries, x, held[static_cast<size_t>(x.comm().rank())]);
  const auto assign = [&](const Tensor& values) {
    check_writable(kWho, x.local());
    copy_into(view, values);
  };
  if (const Scalar* number = value.number()) {
    const Tensor element = scalar_tensor(kWho, *number, x.dtype(), x.device());
    if (view.is_defined()) assign(element);
    return;
  }
  const Shape shape = result_shape(entries);
  DistTensor source = *value.tensor();
  if (source.ndim() > shape.ndim()) {
    std::vector<Index> first;  // leading dimensions of size 1 do not count
    for (int dim = 0; dim < source.ndim() - shape.ndim() && source.shape(dim) == 1; ++dim) {
      first.emplace_back(int64_t{0});
    }
    source = get_item(source, first);
  }
  bring_pieces(
      kWho, x, source, {shape, held, text_of(entries)},
      [&](const Tensor& none) { cast(none, x.dtype()); }, assign);
}

}  // namespace cuop::dist
