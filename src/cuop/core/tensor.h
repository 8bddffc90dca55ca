// The tensor: a handle on storage with a layout and a dtype. Copying a Tensor copies the handle;
// views share storage.
#pragma once

#include <memory>
#include <ostream>

#include "cuop/core/dtype.h"
#include "cuop/core/layout.h"
#include "cuop/core/storage.h"

namespace cuop {

class Tensor {
 public:
  /// An undefined tensor; only assignment and `is_defined` are allowed on it.
  Tensor() = default;
  Tensor(std::shared_ptr<Storage> storage, const Layout& layout, DType dtype)
      : storage_(std::move(storage)), layout_(layout), dtype_(dtype) {}

  bool is_defined() const { return storage_ != nullptr; }
  const Layout& layout() const { return layout_; }
  const Shape& shape() const { return layout_.shape; }
  int64_t shape(int axis) const { return layout_.shape[axis]; }
  const Strides& strides() const { return layout_.strides; }
  int ndim() const { return layout_.ndim(); }
  int64_t size() const { return layout_.size(); }
  /// ShapeError when it does not fit int64, which views of ours never need.
  int64_t nbytes() const { return checked_multiply(size(), itemsize(dtype_), "nbytes"); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_->device(); }
  bool is_contiguous() const { return layout_.is_contiguous(); }
  const std::shared_ptr<Storage>& storage() const { return storage_; }

  /// Address of the element at index (0, 0, ...); runs deferred work first.
  void* data() const;
  /// The same, typed; DTypeError when T is not the tensor's dtype.
  template <class T>
  T* data() const {
    check_dtype(dtype_of<T>);
    return static_cast<T*>(data());
  }

  /// The same storage under another layout.
  Tensor with_layout(const Layout& layout) const { return {storage_, layout, dtype_}; }

 private:
  void check_dtype(DType expected) const;

  std::shared_ptr<Storage> storage_;
  Layout layout_;
  DType dtype_ = DType::kFloat32;
};

/// True when the two may touch a common byte.
bool may_overlap(const Tensor& a, const Tensor& b);
/// True when both name exactly the same elements in the same order.
bool is_same_view(const Tensor& a, const Tensor& b);

}  // namespace cuop
