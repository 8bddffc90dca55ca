// For functions that take a plain object and convert it themselves.
#pragma once

#include "exchange.h"

namespace cuop::python {

/// convert_argument, whose error names the function that is being called and the argument.
template <class T>
T named_argument(nb::handle object) {
  try {
    return convert_argument(object, TypeTag<T>{});
  } catch (...) {
    std::rethrow_exception(name_argument(object));
  }
}

/// import_values, likewise.
inline Tensor named_values(nb::handle object, DType dtype) {
  try {
    return import_values(object, dtype);
  } catch (...) {
    std::rethrow_exception(name_argument(object));
  }
}

}  // namespace cuop::python
