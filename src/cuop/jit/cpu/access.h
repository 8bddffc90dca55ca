// How a tensor is walked in the order of an iteration space: in place, one value for all, or by
// strides.
#pragma once

#include <cstddef>
#include <optional>

#include "cuop/core/tensor.h"

namespace cuop::jit {

class Access {
 public:
  enum class Mode { kInPlace, kUniform, kStrided };

  /// `tensor` must be broadcastable to `shape`, whose last two axes may be those of planes
  /// (arrangement.h); runs its deferred work.
  Access(const Tensor& tensor, const Shape& shape, bool is_in_planes = false);

  Mode mode() const { return mode_; }
  int64_t itemsize() const { return itemsize_; }
  /// Address of element `index` of an in-place tensor; of the value of a uniform one.
  std::byte* at(int64_t index) const {
    return mode_ == Mode::kInPlace ? data_ + index * itemsize_ : data_;
  }
  /// Whether the innermost axis is one element again and again, or goes along memory.
  bool has_constant_runs() const { return mode_ == Mode::kStrided && walk_->strides.back() == 0; }
  bool has_packed_runs() const { return mode_ == Mode::kStrided && walk_->strides.back() == 1; }
  /// Of an access by strides the address of element `start` where `count` elements from there on
  /// lie in one run of the innermost axis, else null.
  std::byte* run_at(int64_t start, int64_t count) const;
  /// Copies `count` elements in iteration order from `start` on, to or from packed memory.
  void gather(int64_t start, int64_t count, void* packed) const;
  void scatter(int64_t start, int64_t count, const void* packed) const;

 private:
  template <int64_t Size, bool IsGather>
  void copy(int64_t start, int64_t count, std::byte* packed) const;
  template <bool IsGather>
  void copy_any(int64_t start, int64_t count, std::byte* packed) const;

  std::byte* data_;
  int64_t itemsize_;
  Mode mode_;
  bool is_in_planes_;
  std::optional<Layout> walk_;  // kStrided: merged axes with broadcast strides, in elements
};

/// Fills `count` elements with the one at `value`.
void fill(void* out, const void* value, int64_t itemsize, int64_t count);

}  // namespace cuop::jit
