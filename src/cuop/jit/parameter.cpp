#include "cuop/jit/parameter.h"

#include <type_traits>

#include "cuop/jit/kernels/conversion.h"

namespace cuop::jit {

template <class Real>
Real rounded_number(const Scalar& value) {
  if (value.is_large()) return convert<Real>(value.to_bits64());
  if (value.is_integer()) return convert<Real>(value.to_int64());
  return convert<Real>(value.to_double());
}
template Half rounded_number<Half>(const Scalar&);
template BFloat16 rounded_number<BFloat16>(const Scalar&);
template float rounded_number<float>(const Scalar&);
template double rounded_number<double>(const Scalar&);

void store_parameter(const Scalar& value, DType dtype, void* out) {
  visit_dtype(AllTypes{}, dtype, "elementwise", [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      *static_cast<bool*>(out) = value.to_complex() != 0.0;
    } else if constexpr (std::is_integral_v<T>) {
      *static_cast<T*>(out) = static_cast<T>(value.to_bits64());
    } else if constexpr (is_narrow_type<T>) {
      *static_cast<float*>(out) = rounded_number<T>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      *static_cast<T*>(out) = rounded_number<T>(value);
    } else if (value.is_complex()) {
      *static_cast<T*>(out) = static_cast<T>(value.to_complex());
    } else {
      *static_cast<T*>(out) = rounded_number<typename T::value_type>(value);
    }
  });
}

}  // namespace cuop::jit
