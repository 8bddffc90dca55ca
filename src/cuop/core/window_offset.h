// Where a window of a tensor begins (operators/windows.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "cuop/core/dims.h"

namespace cuop {

/// Where a window begins: so many elements into the tensor in row-major order, or at one index of
/// each axis.
class WindowOffset {
 public:
  WindowOffset(int64_t elements = 0) : elements_(elements) {}
  WindowOffset(const Dims& indices) : indices_(indices) {}
  WindowOffset(std::initializer_list<int64_t> indices) : indices_(Dims(indices)) {}

  bool is_per_axis() const { return indices_.has_value(); }
  int64_t elements() const { return elements_; }
  const Dims& indices() const { return *indices_; }

 private:
  int64_t elements_ = 0;
  std::optional<Dims> indices_;
};

}  // namespace cuop
