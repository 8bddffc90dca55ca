#include "cuop/core/tensor.h"

#include <cstddef>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

void* Tensor::data() const {
  if (!storage_) throw ExecutionError("tensor: an undefined tensor has no data");
  auto* bytes = static_cast<std::byte*>(storage_->data());
  return bytes == nullptr ? nullptr : bytes + layout_.offset * itemsize(dtype_);
}

void Tensor::check_dtype(DType expected) const {
  if (dtype_ != expected) {
    throw DTypeError(
        cat("tensor: data of dtype ", expected, " was asked of a ", dtype_, " tensor"));
  }
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (!a.is_defined() || !b.is_defined() || a.size() == 0 || b.size() == 0) return false;
  if (a.device() != b.device()) return false;
  if (a.storage() != b.storage() && (a.storage()->is_deferred() || b.storage()->is_deferred())) {
    return false;
  }
  const auto range = [](const Tensor& t) {
    const Extent e = extent(t.layout());
    const auto base = reinterpret_cast<intptr_t>(t.storage()->data());
    return std::pair{base + e.begin * itemsize(t.dtype()), base + e.end * itemsize(t.dtype())};
  };
  const auto [a_begin, a_end] = range(a);
  const auto [b_begin, b_end] = range(b);
  return a_begin < b_end && b_begin < a_end;
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.strides() == b.strides() &&
         a.is_defined() && b.is_defined() && a.data() == b.data();
}

}  // namespace cuop
