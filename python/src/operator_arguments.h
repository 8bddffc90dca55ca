// Arguments of the operator objects.
#pragma once

#include "bindings.h"
#include "cuop/operators/operator.h"

namespace cuop::python {

/// A Python object that is looked at when the call runs, where errors are the operator's. `As` is
/// what the stubs say of it.
template <class As>
struct Object {
  nb::handle object;
};
struct AsInput : StubName<"ArrayLike"> {};
struct AsOutput : StubName<"Tensor"> {};
struct AsPath : StubName<"PathLike"> {};
struct AsUplo : StubName<"UploLike | int"> {};  // an integer too, where a class gives it a meaning
using InputObject = Object<AsInput>;
using OutputObject = Object<AsOutput>;
using PathObject = Object<AsPath>;
using UploObject = Object<AsUplo>;

/// op.guarded(work), after which errors have the cause that they had.
template <class Work>
std::invoke_result_t<Work> guarded(const Operator& op, Work&& work) {
  Raised cause;
  try {
    return op.guarded([&] {
      try {
        return work();
      } catch (const Caused& caused) {
        cause = caused.cause();
        throw;
      }
    });
  } catch (const DTypeError& error) {
    if (cause != nullptr) refuse<DTypeError>(error.what(), cause);
    throw;
  } catch (const ShapeError& error) {
    if (cause != nullptr) refuse<ShapeError>(error.what(), cause);
    throw;
  }
}

/// An input: a tensor as it is, anything else converted to the operator's dtype.
Tensor operator_input(InputObject input, const Operator& op);
/// An output or a tensor that is changed: must be a Tensor, because a converted copy would be lost.
Tensor operator_output(OutputObject output, const char* argument);
/// A path as text: of a str or an os.PathLike.
std::string operator_path(PathObject path, const char* argument);

/// A choice of uplo for a class whose documentation gives its integers a meaning: `meaning[0]` is
/// what 0 stands for, `meaning[1]` what 1 does. Names and enum members mean the same everywhere.
/// Messages begin with the name of `type`.
Uplo uplo_argument(nb::handle object, const Uplo (&meaning)[2], nb::handle type);

}  // namespace cuop::python

namespace nanobind::detail {

template <class As>
struct type_caster<cuop::python::Object<As>> {
  NB_TYPE_CASTER(cuop::python::Object<As>, As::kStub)

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
  static handle from_cpp(const cuop::python::Object<As>& source, auto, cleanup_list*) noexcept {
    return source.object.inc_ref();
  }
};

}  // namespace nanobind::detail
