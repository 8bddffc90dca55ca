// Ranks arranged in a grid with named axes. A mesh is a plain value: it knows how many ranks there
// are, not how they talk.
#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/dims.h"

namespace cuop::dist {

class Mesh {
 public:
  /// Ranks in row-major order over `shape`; the last axis varies fastest. The last `idle` ranks
  /// stand outside of the grid and hold nothing. ShapeError unless every size is at least 1, there
  /// is one distinct, non-empty name an axis, and `idle` is not negative.
  Mesh(const Dims& shape, std::vector<std::string> names, int idle = 0);
  /// One axis over all ranks.
  static Mesh line(int size, const std::string& name = "r");

  /// All ranks, idle ones too.
  int size() const { return size_; }
  int idle() const { return idle_; }
  /// Ranks of the grid.
  int grid_size() const { return size_ - idle_; }
  bool is_idle(int rank) const { return rank >= grid_size(); }
  int ndim() const { return shape_.ndim(); }
  const Dims& shape() const { return shape_; }
  const std::vector<std::string>& names() const { return names_; }

  bool has_axis(std::string_view name) const;
  /// Position of the named axis; ShapeError naming the axes there are.
  int axis(std::string_view name) const;
  int axis_size(std::string_view name) const;

  /// IndexError unless the rank stands in the grid.
  Dims coordinates(int rank) const;
  int coordinate(int rank, int axis) const;
  int rank(const Dims& coordinates) const;

  /// Axes that split something, the first outermost: into how many blocks, and which of them `rank`
  /// has. Without axes there is one block.
  int64_t block_count(std::span<const std::string> axes) const;
  int64_t block_number(int rank, std::span<const std::string> axes) const;

  bool operator==(const Mesh&) const = default;

 private:
  Dims shape_;
  std::vector<std::string> names_;
  int size_ = 1;
  int idle_ = 0;
};

/// As Mesh(r=2, c=3) or Mesh(r=2, c=3, 1 idle).
std::ostream& operator<<(std::ostream& out, const Mesh& mesh);

struct Grid2d {
  int rows = 1;
  int cols = 1;
};
/// The most nearly square rows x cols = ranks with rows <= cols; 1 x P for a prime.
Grid2d compute_2d_grid(int ranks);

}  // namespace cuop::dist
