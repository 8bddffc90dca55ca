#include "cuop/dist/comm/fabric_messages.h"

#include <algorithm>
#include <span>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist::fabric {

TensorNote note_of(const Tensor& tensor) {
  TensorNote note;
  note.dtype = static_cast<int32_t>(tensor.dtype());
  note.ndim = tensor.ndim();
  std::ranges::copy(tensor.shape(), note.shape.begin());
  std::ranges::copy(tensor.strides(), note.strides.begin());
  return note;
}

std::string text_of(const TensorNote& note) {
  const auto axes = static_cast<size_t>(std::clamp(note.ndim, 0, kMaxDims));
  const bool is_dtype = note.dtype >= 0 && note.dtype < kDTypeCount;
  return cat(Shape(std::span(note.shape).first(axes)), " of ",
             is_dtype ? name(static_cast<DType>(note.dtype)) : "no dtype");
}

void check_fits(const TensorNote& note, DType dtype, const Shape& shape) {
  const bool is_alike = note.dtype == static_cast<int32_t>(dtype) && note.ndim == shape.ndim();
  if (is_alike && std::equal(shape.begin(), shape.end(), note.shape.begin())) return;
  throw CommunicationError(cat("expects ", shape, " of ", dtype, ", and was sent ", text_of(note)));
}

}  // namespace cuop::dist::fabric
