// Elementwise calls with a DistTensor among their operands.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "cuop/dist/algo/elementwise.h"
#include "define.h"

namespace cuop::python {

/// Whether an object is a DistTensor: what every call of an elementwise function asks first, hence
/// without looking for its type.
inline bool is_parts(nb::handle object) {
  static auto* const type = reinterpret_cast<PyTypeObject*>(nb::type<dist::DistTensor>().ptr());
  return PyObject_TypeCheck(object.ptr(), type) != 0 && nb::inst_ready(object);
}

/// A DistTensor, whatever stands beside it.
struct Parts {
  nb::handle object;
};
/// What may stand beside a DistTensor: another one, or a number. PartsOperands says whether it is.
struct Beside {
  nb::handle object;
};

/// The operands of a call, at least one of which is a DistTensor. Python's numbers follow the
/// tensors' dtype; those of NumPy, and tensors of no dimension, have one of their own and count as
/// lying on every rank. DTypeError for anything else.
class PartsOperands {
 public:
  explicit PartsOperands(std::span<const nb::handle> objects);
  std::span<const dist::DistOperand* const> list() const { return list_; }
  /// Of the operand at this place, which is one.
  const dist::DistTensor& tensor(size_t place) const { return *list_[place]->tensor(); }

 private:
  std::deque<dist::DistTensor> tensors_;
  std::deque<dist::DistOperand> operands_;
  std::vector<const dist::DistOperand*> list_;
};

/// Adds the forms of an elementwise function that take a DistTensor, before the one that takes
/// tensors.
void bind_for_parts(Module& m, const char* name, int code, const std::string& doc);
/// The same of clip.
void bind_clip_for_parts(Module& m, const char* name, const std::string& doc);

}  // namespace cuop::python

namespace nanobind::detail {

template <>
struct type_caster<cuop::python::Parts> {
  NB_TYPE_CASTER(cuop::python::Parts, const_name("cuop._core._dist.DistTensor"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value.object = source;
    return cuop::python::is_parts(source);
  }
};

template <>
struct type_caster<cuop::python::Beside> {
  NB_TYPE_CASTER(cuop::python::Beside, const_name("cuop._core._dist.DistTensor | Number"))

  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value.object = source;
    return true;
  }
};

}  // namespace nanobind::detail
