// Functions of tensors that are methods as well.
#pragma once

#include "define.h"

namespace cuop::python {

/// Binds f, whose first argument is the tensor x, as the function cuop.`name` and as the method of
/// Tensor.
template <class F, class... Extra>
void define_both(Module& m, const char* name, F f, const Extra&... extra) {
  m.def(name, f, "x"_a, extra...);
  nb::borrow<Class<Tensor>>(m.attr("Tensor")).def(name, f, extra...);
}

}  // namespace cuop::python
