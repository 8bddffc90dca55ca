// How a tensor lies over the ranks of a mesh. The owner boxes are the only truth about who holds
// what; everything else (messages, memory, plans) is derived from them.
//
// Worked example: a 5 x 4 tensor on Mesh(r=3) sharded P("r", None) has the owner boxes
// [0:2, 0:4] on rank 0, [2:4, 0:4] on rank 1, [4:5, 0:4] on rank 2.
#pragma once

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "cuop/core/box.h"
#include "cuop/dist/mesh.h"

namespace cuop::dist {

/// For each tensor dimension the mesh axes it is split over, outermost first; none means that it is
/// not split. Missing trailing dimensions are not split.
class Spec {
 public:
  using Axes = std::vector<std::string>;

  Spec() = default;
  explicit Spec(std::vector<Axes> dims) : dims_(std::move(dims)) {}

  /// Axes that split tensor dimension `dim`.
  const Axes& axes(int dim) const;
  int ndim() const { return static_cast<int>(dims_.size()); }
  /// The same split written for exactly `ndim` dimensions.
  Spec padded_to(int ndim) const;
  Spec swapped(int dim0, int dim1, int ndim) const;
  bool operator==(const Spec& other) const;

 private:
  std::vector<Axes> dims_;
};

/// P({"r"}, {}) writes P("r", None).
template <class... Dim>
Spec P(Dim&&... dims) {
  std::vector<Spec::Axes> all;
  (all.push_back(Spec::Axes(std::forward<Dim>(dims))), ...);
  return Spec(std::move(all));
}
/// `ndim` dimensions of which only `dim` is split, over mesh axis `axis`.
Spec split_dim(int ndim, int dim, const std::string& axis = "r");

std::ostream& operator<<(std::ostream& out, const Spec& spec);

/// A handle: copies share what it says, which does not change.
class Sharding {
 public:
  /// Even blocks (the first n % p are one longer). A dimension over several axes is split by the
  /// first, each block by the second, and so on. ShapeError when an axis is unknown or used twice.
  Sharding(Mesh mesh, Spec spec);
  /// Nothing split: every rank holds all of it.
  static Sharding replicated(Mesh mesh);
  /// All of it on one rank, nothing elsewhere.
  static Sharding on_rank(Mesh mesh, int rank);
  /// The same with given block sizes for a split dimension: one size for each block in the order of
  /// the mesh coordinates.
  Sharding with_blocks(int dim, std::vector<int64_t> sizes) const;

  const Mesh& mesh() const { return said_->mesh; }
  const Spec& spec() const { return said_->spec; }
  /// The rank of `on_rank`, -1 for a sharding by spec.
  int single_rank() const { return said_->single_rank; }
  bool is_replicated() const;
  /// Explicit block sizes by tensor dimension.
  const std::map<int, std::vector<int64_t>>& blocks() const { return said_->blocks; }

  /// ShapeError "who: ..." when a tensor of this shape cannot be sharded so.
  void check_fits(const Shape& shape, const char* who) const;
  /// What `rank` holds of a tensor of this shape (as `check_fits` demands).
  Box owner_box(const Shape& shape, int rank) const;
  std::vector<Box> owner_boxes(const Shape& shape) const;
  /// The sharding of the tensor with two dimensions exchanged, no data moved.
  Sharding swapped(int dim0, int dim1, int ndim) const;

  bool operator==(const Sharding& other) const {
    return said_ == other.said_ || *said_ == *other.said_;
  }

 private:
  struct Said {
    Mesh mesh;
    Spec spec;
    int single_rank = -1;
    std::map<int, std::vector<int64_t>> blocks = {};
    bool operator==(const Said&) const = default;
  };
  explicit Sharding(Said said) : said_(std::make_shared<const Said>(std::move(said))) {}

  std::shared_ptr<const Said> said_;
};

/// True when every rank holds the same box under both.
bool same_owners(const Sharding& a, const Sharding& b, const Shape& shape);

/// The blocks of a split dimension in the order of the mesh coordinates of its axes.
std::vector<Interval> blocks_of(const Sharding& sharding, const Shape& shape, int dim);
/// `even` with blocks of these sizes along `dim`, or as it is where it has such blocks.
Sharding in_blocks(const Sharding& even, const Shape& shape, int dim,
                   const std::vector<int64_t>& sizes);

/// As P("r", None) on Mesh(r=4), or "on rank 0 of 4".
std::ostream& operator<<(std::ostream& out, const Sharding& sharding);

}  // namespace cuop::dist
