// Ranks arranged in a grid with named axes. A mesh is a plain value: it knows how many ranks there
// are, not how they talk.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/dims.h"

namespace cuop::dist {

class Mesh {
 public:
  /// Ranks in row-major order over `shape`; the last axis varies fastest. ShapeError unless every
  /// size is at least 1 and there is one distinct, non-empty name an axis.
  Mesh(const Dims& shape, std::vector<std::string> names);
  /// One axis over all ranks.
  static Mesh line(int size, const std::string& name = "r");

  int size() const { return size_; }
  int ndim() const { return shape_.ndim(); }
  const Dims& shape() const { return shape_; }
  const std::vector<std::string>& names() const { return names_; }

  bool has_axis(std::string_view name) const;
  /// Position of the named axis; ShapeError naming the axes there are.
  int axis(std::string_view name) const;
  int axis_size(std::string_view name) const;

  Dims coordinates(int rank) const;
  int coordinate(int rank, int axis) const;
  int rank(const Dims& coordinates) const;

  bool operator==(const Mesh&) const = default;

 private:
  Dims shape_;
  std::vector<std::string> names_;
  int size_ = 1;
};

/// As Mesh(r=2, c=3).
std::ostream& operator<<(std::ostream& out, const Mesh& mesh);

struct Grid2d {
  int rows = 1;
  int cols = 1;
};
/// The most nearly square rows x cols = ranks with rows <= cols; 1 x P for a prime.
Grid2d compute_2d_grid(int ranks);

}  // namespace cuop::dist
