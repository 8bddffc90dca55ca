#include "cuop/dist/mesh.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/rank_limit.h"

namespace cuop::dist {

Mesh::Mesh(const Dims& shape, std::vector<std::string> names, int idle)
    : shape_(shape), names_(std::move(names)), idle_(idle) {
  if (idle < 0)
    throw ShapeError(cat("Mesh: ", idle, " idle ranks were given; 0 or more are needed"));
  if (static_cast<size_t>(shape_.ndim()) != names_.size()) {
    throw ShapeError(cat("Mesh: ", names_.size(), " names were given for shape ", shape_,
                         "; one name an axis is needed"));
  }
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].empty() || std::count(names_.begin(), names_.end(), names_[i]) != 1) {
      throw ShapeError(
          cat("Mesh: axis names must be distinct and not empty, given (", join(names_), ")"));
    }
    if (shape_[static_cast<int>(i)] < 1) {
      throw ShapeError(cat("Mesh: every axis needs at least one rank, given shape ", shape_));
    }
  }
  const int64_t count = element_count(shape_);
  if (count > kMostRanks - idle) {
    throw ShapeError(cat("Mesh: shape ", shape_, " and ", idle,
                         " idle ranks were given; there can be ", kMostRanks, " ranks in all"));
  }
  size_ = static_cast<int>(count) + idle;
}

Mesh Mesh::line(int size, const std::string& name) { return Mesh(Dims{size}, {name}); }

bool Mesh::has_axis(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

int Mesh::axis(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) {
    throw ShapeError(
        cat("Mesh: there is no axis \"", name, "\"; the axes are (", join(names_), ")"));
  }
  return static_cast<int>(found - names_.begin());
}

int Mesh::axis_size(std::string_view name) const { return static_cast<int>(shape_[axis(name)]); }

Dims Mesh::coordinates(int rank) const {
  if (rank < 0 || is_idle(rank)) {
    throw IndexError(cat("Mesh: rank ", rank, " has no coordinates in ", *this, "; ranks 0 to ",
                         grid_size() - 1, " have"));
  }
  Dims result = Dims::filled(ndim(), 0);
  int64_t rest = rank;
  for (int a = ndim() - 1; a >= 0; --a) {
    result[a] = rest % shape_[a];
    rest /= shape_[a];
  }
  return result;
}

int Mesh::coordinate(int rank, int axis) const {
  int64_t rest = rank;
  for (int a = ndim() - 1; a > axis; --a) rest /= shape_[a];
  return static_cast<int>(rest % shape_[axis]);
}

int Mesh::rank(const Dims& coordinates) const {
  int64_t result = 0;
  for (int a = 0; a < ndim(); ++a) result = result * shape_[a] + coordinates[a];
  return static_cast<int>(result);
}

int64_t Mesh::block_count(std::span<const std::string> axes) const {
  int64_t count = 1;
  for (const std::string& name : axes) count *= axis_size(name);
  return count;
}

int64_t Mesh::block_number(int rank, std::span<const std::string> axes) const {
  int64_t number = 0;
  for (const std::string& name : axes) {
    const int position = axis(name);
    number = number * shape_[position] + coordinate(rank, position);
  }
  return number;
}

std::ostream& operator<<(std::ostream& out, const Mesh& mesh) {
  out << "Mesh(";
  for (int a = 0; a < mesh.ndim(); ++a) {
    out << (a > 0 ? ", " : "") << mesh.names()[static_cast<size_t>(a)] << '=' << mesh.shape()[a];
  }
  if (mesh.idle() > 0) out << ", " << mesh.idle() << " idle";
  return out << ')';
}

Grid2d compute_2d_grid(int ranks) {
  if (ranks < 1) {
    throw ShapeError(cat("compute_2d_grid: ", ranks, " ranks were given; at least 1 is needed"));
  }
  Grid2d best{1, ranks};
  for (int rows = 1; rows <= ranks / rows; ++rows) {
    if (ranks % rows == 0) best = {rows, ranks / rows};
  }
  return best;
}

}  // namespace cuop::dist
