#include "cuop/jit/parameter.h"

#include <type_traits>

namespace cuop::jit {

void store_parameter(const Scalar& value, DType dtype, void* out) {
  visit_dtype(AllTypes{}, dtype, "elementwise", [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      *static_cast<bool*>(out) = value.to_complex() != 0.0;
    } else if constexpr (std::is_integral_v<T>) {
      *static_cast<T*>(out) = static_cast<T>(value.to_bits64());
    } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      *static_cast<float*>(out) = T(static_cast<float>(value.to_double()));
    } else if constexpr (std::is_floating_point_v<T>) {
      *static_cast<T*>(out) = static_cast<T>(value.to_double());
    } else {
      *static_cast<T*>(out) = static_cast<T>(value.to_complex());
    }
  });
}

}  // namespace cuop::jit
