// In which order the interpreter computes the elements of tensors that do not lie in the order of
// the iteration's axes: as most of them lie and, where others lie across it, in planes of elements
// whose cache lines the interpreter uses up at once.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cuop/core/tensor.h"
#include "cuop/jit/bindings.h"

namespace cuop::jit {

/// Some of a run's elements, or all: its tensors seen along other axes.
class Part {
 public:
  /// Leaves first, then outputs; all of them are broadcastable to `shape`.
  Part(const Bindings& whole, const Shape& shape, std::vector<Tensor> tensors, bool is_in_planes);
  Part(Part&&) = default;  // a copy would point to the tensors of another one

  Bindings bindings() const;
  bool is_in_planes() const { return is_in_planes_; }

 private:
  std::span<const Scalar> parameters_;
  size_t leaves_;
  Shape shape_;
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> pointers_;
  bool is_in_planes_;
};

/// All elements as one line, where every tensor lies alike and without gaps, but not in rows.
std::optional<Part> as_one_line(const Bindings& bindings);

/// Whether the elements of some tensor lie in another order than they are computed in, and are so
/// many that another order pays.
bool is_worth_arranging(const Bindings& bindings);

/// The parts of a run without reductions, each element in one of them. A plane has `plane_bytes` of
/// elements of `widest` bytes, a power of two.
std::vector<Part> arranged(const Bindings& bindings, int64_t plane_bytes, int64_t widest);

}  // namespace cuop::jit
