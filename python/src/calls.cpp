// nanobind has no hook for the error of a call that fits no signature. But Python finds the code of
// its functions through a pointer in the object, at the offset that the type publishes for this
// purpose (tp_vectorcall_offset), so that a wrapper can stand before it: for a call that succeeds
// it costs two stores.
#include "calls.h"

#include <structmember.h>

#include <array>
#include <cstring>
#include <typeinfo>

#include "bindings.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/memory/mapped_file.h"
#include "cuop/operators/operator.h"
#include "mapped_files.h"
#include "refusals.h"

namespace cuop::python {

namespace {

/// One call as Python's vectorcall protocol hands it over.
struct Call {
  PyObject* function;
  PyObject* const* arguments;
  size_t count_and_flags;
  PyObject* keywords;
  Call* outer;
  std::optional<std::pair<int64_t, int64_t>> range;
};

thread_local Call* current = nullptr;

/// How many arguments came by position; the upper bits are flags of Python and of nanobind.
size_t count_of(const Call& call) { return static_cast<uint32_t>(call.count_and_flags); }

nb::tuple positional(const Call& call) {
  nb::list list;
  for (size_t i = 0; i < count_of(call); ++i) list.append(nb::handle(call.arguments[i]));
  return nb::tuple(list);
}

nb::dict by_name(const Call& call) {
  nb::dict dict;
  if (call.keywords == nullptr) return dict;
  size_t next = count_of(call);
  for (nb::handle name : nb::borrow<nb::tuple>(call.keywords)) {
    dict[name] = nb::handle(call.arguments[next++]);
  }
  return dict;
}

std::span<PyObject* const> arguments_of(const Call& call) noexcept {
  const auto named = call.keywords == nullptr ? 0 : nb::len(nb::handle(call.keywords));
  return {call.arguments, count_of(call) + named};
}

nb::object words() { return nb::module_::import_("cuop._calls"); }

/// Replaces nanobind's error, when it is that, by one that cuop._calls makes.
void explain(const Call& call) {
  nb::python_error error;
  if (!error.type().is(PyExc_TypeError) ||
      message_of(error.value()).find("(): incompatible function arguments.") == std::string::npos) {
    error.restore();
    return;
  }
  const nb::object range = call.range ? nb::cast(*call.range) : nb::none();
  const nb::object better =
      words().attr("explain")(nb::handle(call.function), positional(call), by_name(call), range);
  const bool has_self = PyVectorcall_NARGS(call.count_and_flags) > 0;
  const nb::handle self = has_self ? call.arguments[0] : nullptr;
  if (has_self && nb::isinstance<Operator>(self) && nb::inst_ready(self)) {
    nb::inst_ptr<Operator>(self)->remember_error(message_of(better));
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(better.ptr())), better.ptr());
}

/// The functions that nanobind has for calls of different shapes, and one wrapper for each.
constexpr size_t kMaxOriginals = 16;
std::array<vectorcallfunc, kMaxOriginals> originals{};

template <size_t index>
PyObject* watched(PyObject* function, PyObject* const* arguments, size_t count,
                  PyObject* keywords) {
  Call call{function, arguments, count, keywords, current, std::nullopt};
  current = &call;
  const int64_t collectives = dist::collective_calls();
  PyObject* result = originals[index](function, arguments, count, keywords);
  current = call.outer;
  const bool has_lost_pages = memory::lost_page_count() != 0;
  if (result == nullptr || has_lost_pages) [[unlikely]] {
    try {
      if (result == nullptr) {
        explain(call);
        if (dist::collective_calls() == collectives) {
          refuse_together(function, arguments_of(call));
        }
      } else if (!check_mapped_files(arguments_of(call))) {
        Py_CLEAR(result);
      }
    } catch (nb::python_error& error) {
      error.restore();
    } catch (const std::exception& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what());
    }
  }
  return result;
}

template <size_t... indices>
constexpr std::array<vectorcallfunc, kMaxOriginals> make_wrappers(std::index_sequence<indices...>) {
  return {&watched<indices>...};
}
constexpr auto wrappers = make_wrappers(std::make_index_sequence<kMaxOriginals>{});

vectorcallfunc wrapper_of(vectorcallfunc original) {
  for (size_t i = 0; i < kMaxOriginals; ++i) {
    if (original == wrappers[i]) return original;  // an alias of a function that was met before
    if (originals[i] == nullptr) originals[i] = original;
    if (originals[i] == original) return wrappers[i];
  }
  return original;
}

void watch(nb::handle function) {
  const auto* members =
      static_cast<PyMemberDef*>(PyType_GetSlot(Py_TYPE(function.ptr()), Py_tp_members));
  for (; members != nullptr && members->name != nullptr; ++members) {
    if (std::strcmp(members->name, "__vectorcalloffset__") != 0) continue;
    auto* code = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function.ptr()) +
                                                   members->offset);
    *code = wrapper_of(*code);
    return;
  }
}

void watch_all(nb::handle scope, const std::string& module_name) {
  for (nb::handle value : nb::list(scope.attr("__dict__").attr("values")())) {
    const std::string kind = class_name(value);
    if (kind == "nb_func" || kind == "nb_method") {
      watch(value);
    } else if (kind == "property" || kind == "nb_static_property") {
      for (const char* accessor : {"fget", "fset"}) {
        const nb::object function = value.attr(accessor);
        if (!function.is_none() && class_name(function) != "function") watch(function);
      }
    } else if (PyModule_Check(value.ptr()) || PyType_Check(value.ptr())) {
      const char* name = PyType_Check(value.ptr()) ? "__module__" : "__name__";
      const std::string home = message_of(value.attr(name));
      if (home.rfind(module_name, 0) == 0) watch_all(value, module_name);
    }
  }
}

/// A message without its first word and colon ("shape: a value ..."), which name_argument replaces.
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

std::exception_ptr name_argument(nb::handle object) noexcept {
  std::exception_ptr error = std::current_exception();
  if (current == nullptr) return error;
  try {
    const std::string who = message_of(words().attr("place")(
        nb::handle(current->function), positional(*current), by_name(*current), object));
    return renamed(who);
  } catch (nb::python_error& failure) {
    failure.discard_as_unraisable("cuop._calls.place");
  } catch (...) {
    // The error without the argument's name says more than this one.
  }
  return error;
}

void note_range(int64_t low, int64_t high) noexcept {
  if (current != nullptr) current->range = {low, high};
}

std::span<PyObject* const> arguments_of_call() noexcept {
  return current == nullptr ? std::span<PyObject* const>() : arguments_of(*current);
}

void explain_calls(nb::module_& m) { watch_all(m, text_of(m.attr("__name__"))); }

}  // namespace cuop::python
