// Arguments of the operator objects.
#pragma once

#include "bindings.h"
#include "cuop/operators/operator.h"

namespace cuop::python {

/// A Python object that becomes an input, and one that must be a Tensor because it is written to.
/// They are looked at when the call runs, where errors are the operator's; the types tell the
/// stubs.
struct InputObject {
  nb::handle object;
};
struct OutputObject {
  nb::handle object;
};

/// An input: a tensor as it is, anything else converted to the operator's dtype.
Tensor operator_input(InputObject input, const Operator& op);
/// An output or a tensor that is changed: must be a Tensor, because a converted copy would be lost.
Tensor operator_output(OutputObject output, const char* argument);
/// True or False, or 1 or 0.
bool operator_flag(nb::handle object, const char* argument);

}  // namespace cuop::python

namespace nanobind::detail {

template <>
struct type_caster<cuop::python::InputObject> {
  NB_TYPE_CASTER(cuop::python::InputObject, const_name("ArrayLike"))
  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
};

template <>
struct type_caster<cuop::python::OutputObject> {
  NB_TYPE_CASTER(cuop::python::OutputObject, const_name("Tensor"))
  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
  static handle from_cpp(const cuop::python::OutputObject& source, auto, cleanup_list*) noexcept {
    return source.object.inc_ref();
  }
};

}  // namespace nanobind::detail
