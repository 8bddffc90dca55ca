#include "words.h"

#include <typeinfo>

#include "casters.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace {

/// A message without its first word and colon ("shape: a value ..."), which `who` replaces.
std::string without_head(const std::string& message) {
  const size_t colon = message.find(": ");
  return colon < message.find(' ') ? message.substr(colon + 2) : message;
}

template <class E>
void restate(std::exception_ptr& error, const std::string& who) {
  try {
    std::rethrow_exception(error);
  } catch (const E& given) {
    if (typeid(given) != typeid(E)) return;  // a class derived from it has its own turn
    error = std::make_exception_ptr(E(cat(who, ": ", without_head(given.what()))));
  } catch (...) {
  }
}

}  // namespace

std::string class_name(nb::handle object) {
  return message_of(nb::handle(object.type()).attr("__name__"));
}

std::string describe(nb::handle object) {
  const bool is_scalar = object.is_none() || PyFloat_CheckExact(object.ptr()) ||
                         PyLong_Check(object.ptr()) || PyUnicode_CheckExact(object.ptr());
  if (is_scalar) {
    const std::string text = message_of(nb::repr(object));
    if (text.size() <= 40) return text;
  }
  if (PyType_Check(object.ptr())) return cat("the class ", message_of(object.attr("__name__")));
  return class_name(object);
}

std::exception_ptr renamed(const std::string& who) noexcept {
  std::exception_ptr error = std::current_exception();
  try {
    restate<DTypeError>(error, who);
    restate<OverflowError>(error, who);
    restate<ShapeError>(error, who);
    restate<DeviceError>(error, who);
    restate<IndexError>(error, who);
    restate<ExecutionError>(error, who);
  } catch (...) {  // no memory: the error as it was says more than that
  }
  return error;
}

}  // namespace cuop::python
