#include "cuop/dist/sharding.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

const Spec::Axes& Spec::axes(int dim) const {
  static const Axes& kNone = *new Axes;
  return dim < ndim() ? dims_[static_cast<size_t>(dim)] : kNone;
}

Spec Spec::padded_to(int ndim) const {
  std::vector<Axes> dims = dims_;
  dims.resize(static_cast<size_t>(ndim));
  return Spec(std::move(dims));
}

Spec Spec::swapped(int dim0, int dim1, int ndim) const {
  Spec result = padded_to(std::max(ndim, this->ndim()));
  std::swap(result.dims_[static_cast<size_t>(dim0)], result.dims_[static_cast<size_t>(dim1)]);
  return result;
}

bool Spec::operator==(const Spec& other) const {
  for (int dim = 0; dim < std::max(ndim(), other.ndim()); ++dim) {
    if (axes(dim) != other.axes(dim)) return false;
  }
  return true;
}

Spec split_dim(int ndim, int dim, const std::string& axis) {
  std::vector<Spec::Axes> dims(static_cast<size_t>(ndim));
  dims[static_cast<size_t>(dim)] = {axis};
  return Spec(std::move(dims));
}

std::ostream& operator<<(std::ostream& out, const Spec& spec) {
  out << "P(";
  for (int dim = 0; dim < spec.ndim(); ++dim) {
    const Spec::Axes& axes = spec.axes(dim);
    out << (dim > 0 ? ", " : "");
    if (axes.empty()) {
      out << "None";
    } else if (axes.size() == 1) {
      out << '"' << axes[0] << '"';
    } else {
      out << "(\"" << join(axes, "\", \"") << "\")";
    }
  }
  return out << ')';
}

namespace {

void check_axes(const Mesh& mesh, const Spec& spec) {
  std::set<std::string> used;
  for (int dim = 0; dim < spec.ndim(); ++dim) {
    for (const std::string& axis : spec.axes(dim)) {
      mesh.axis(axis);
      if (!used.insert(axis).second) {
        throw ShapeError(cat("Sharding: mesh axis \"", axis, "\" is used twice in ", spec,
                             "; each axis may split one dimension"));
      }
    }
  }
}

}  // namespace

Sharding::Sharding(Mesh mesh, Spec spec) {
  check_axes(mesh, spec);
  said_ = std::make_shared<const Said>(Said{std::move(mesh), std::move(spec)});
}

Sharding Sharding::replicated(Mesh mesh) { return Sharding(std::move(mesh), Spec()); }

Sharding Sharding::on_rank(Mesh mesh, int rank) {
  if (rank < 0 || rank >= mesh.size()) {
    throw ShapeError(cat("Sharding: rank ", rank, " is not one of the ", mesh.size(), " ranks"));
  }
  return Sharding(Said{std::move(mesh), Spec(), rank});
}

Sharding Sharding::with_blocks(int dim, std::vector<int64_t> sizes) const {
  const int64_t parts = mesh().block_count(spec().axes(dim));
  if (spec().axes(dim).empty() || std::cmp_not_equal(sizes.size(), parts) ||
      std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; })) {
    throw ShapeError(cat("Sharding: block sizes (", join(sizes), ") for dimension ", dim, " of ",
                         *this, "; needed are ", spec().axes(dim).empty() ? 0 : parts,
                         " sizes of at least 0, for a dimension that is split"));
  }
  Said said = *said_;
  said.blocks[dim] = std::move(sizes);
  return Sharding(std::move(said));
}

bool Sharding::is_replicated() const {
  if (single_rank() >= 0 || mesh().idle() > 0) return mesh().size() == 1;
  for (int dim = 0; dim < spec().ndim(); ++dim) {
    for (const std::string& axis : spec().axes(dim)) {
      if (mesh().axis_size(axis) > 1) return false;
    }
  }
  return true;
}

void Sharding::check_fits(const Shape& shape, const char* who) const {
  for (const int64_t size : shape) {
    if (size < 0) throw ShapeError(cat(who, ": sizes must not be negative, given shape ", shape));
  }
  for (int dim = shape.ndim(); dim < spec().ndim(); ++dim) {
    if (!spec().axes(dim).empty()) {
      throw ShapeError(
          cat(who, ": ", spec(), " splits dimension ", dim, " but the tensor has shape ", shape));
    }
  }
  for (const auto& [dim, sizes] : blocks()) {
    int64_t total = 0;
    for (const int64_t size : sizes) total += size;
    if (dim >= shape.ndim() || total != shape[dim]) {
      throw ShapeError(cat(who, ": blocks (", join(sizes), ") of dimension ", dim, " add up to ",
                           total, ", the tensor has shape ", shape));
    }
  }
}

Box Sharding::owner_box(const Shape& shape, int rank) const {
  if (single_rank() >= 0) return rank == single_rank() ? whole_box(shape) : empty_box(shape.ndim());
  if (mesh().is_idle(rank)) return empty_box(shape.ndim());
  Box box = whole_box(shape);
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    Interval interval = box.interval(dim);
    if (const auto given = blocks().find(dim); given != blocks().end()) {
      const auto own = given->second.begin() + mesh().block_number(rank, spec().axes(dim));
      interval.low = std::accumulate(given->second.begin(), own, int64_t{0});
      interval.high = interval.low + *own;
    } else {
      for (const std::string& name : spec().axes(dim)) {
        const int axis = mesh().axis(name);
        interval = split_evenly(interval, mesh().shape()[axis], mesh().coordinate(rank, axis));
      }
    }
    box.set_interval(dim, interval);
  }
  return box;
}

std::vector<Box> Sharding::owner_boxes(const Shape& shape) const {
  std::vector<Box> boxes;
  boxes.reserve(static_cast<size_t>(mesh().size()));
  for (int rank = 0; rank < mesh().size(); ++rank) boxes.push_back(owner_box(shape, rank));
  return boxes;
}

Sharding Sharding::swapped(int dim0, int dim1, int ndim) const {
  Said said{mesh(), spec().swapped(dim0, dim1, ndim), single_rank()};
  for (const auto& [dim, sizes] : blocks()) {
    said.blocks[dim == dim0 ? dim1 : dim == dim1 ? dim0 : dim] = sizes;
  }
  return Sharding(std::move(said));
}

bool same_owners(const Sharding& a, const Sharding& b, const Shape& shape) {
  return a == b ||
         (a.mesh().size() == b.mesh().size() && a.owner_boxes(shape) == b.owner_boxes(shape));
}

std::vector<Interval> blocks_of(const Sharding& sharding, const Shape& shape, int dim) {
  const Mesh& mesh = sharding.mesh();
  const Spec::Axes& axes = sharding.spec().axes(dim);
  std::vector<Interval> blocks(static_cast<size_t>(mesh.block_count(axes)));
  for (int rank = 0; rank < mesh.grid_size(); ++rank) {
    const int64_t number = mesh.block_number(rank, axes);
    blocks[static_cast<size_t>(number)] = sharding.owner_box(shape, rank).interval(dim);
  }
  return blocks;
}

Sharding in_blocks(const Sharding& even, const Shape& shape, int dim,
                   const std::vector<int64_t>& sizes) {
  const std::vector<Interval> blocks = blocks_of(even, shape, dim);
  const bool is_even =
      std::equal(blocks.begin(), blocks.end(), sizes.begin(), sizes.end(),
                 [](const Interval& block, int64_t size) { return block.length() == size; });
  return is_even ? even : even.with_blocks(dim, sizes);
}

std::ostream& operator<<(std::ostream& out, const Sharding& sharding) {
  if (sharding.single_rank() >= 0) {
    return out << "on rank " << sharding.single_rank() << " of " << sharding.mesh().size();
  }
  out << sharding.spec() << " on " << sharding.mesh();
  for (const auto& [dim, sizes] : sharding.blocks()) {
    out << " blocks of dim " << dim << " (" << join(sizes) << ')';
  }
  return out;
}

}  // namespace cuop::dist
