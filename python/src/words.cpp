#include "words.h"

#include <typeinfo>

#include "casters.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "raised.h"

namespace cuop::python {

namespace {

/// A message without its first word and colon ("shape: a value ..."), which `who` replaces.
std::string without_head(const std::string& message) {
  const size_t colon = message.find(": ");
  return colon < message.find(' ') ? message.substr(colon + 2) : message;
}

/// An E whose message begins with `who`, of class As: an error that lacked a name is its base then.
template <class E, class As = E>
void restate(std::exception_ptr& error, const std::string& who) {
  try {
    std::rethrow_exception(error);
  } catch (const E& given) {
    const auto text = [&] { return cat(who, ": ", without_head(given.what())); };
    if (typeid(given) == typeid(E)) {  // a class derived from it has its own turn
      error = std::make_exception_ptr(As(text()));
    } else if (const auto* caused = dynamic_cast<const CausedBy<E>*>(&given)) {
      error = std::make_exception_ptr(CausedBy<E>(text(), caused->cause()));
    }
  } catch (...) {
  }
}

}  // namespace

std::string class_name(nb::handle object) noexcept { return name_of_class(object.type()); }

std::string describe(nb::handle object) {
  const bool is_scalar = object.is_none() || PyFloat_CheckExact(object.ptr()) ||
                         PyLong_Check(object.ptr()) || PyUnicode_CheckExact(object.ptr());
  if (is_scalar) {
    const nb::object text = nb::steal(PyObject_Repr(object.ptr()));
    if (!text.is_valid()) python_answer();  // of integers of some thousand digits
    const std::string words = text.is_valid() ? text_of(text) : "";
    if (text.is_valid() && words.size() <= 40) return words;
  }
  if (PyType_Check(object.ptr())) return cat("the class ", name_of_class(object));
  return class_name(object);
}

std::exception_ptr renamed(const std::string& who) noexcept {
  std::exception_ptr error = std::current_exception();
  try {
    restate<DTypeError>(error, who);
    restate<OverflowError>(error, who);
    restate<ShapeError>(error, who);
    restate<UnnamedShapeError, ShapeError>(error, who);
    restate<DeviceError>(error, who);
    restate<IndexError>(error, who);
    restate<ExecutionError>(error, who);
  } catch (...) {  // no memory: the error as it was says more than that
  }
  return error;
}

}  // namespace cuop::python
