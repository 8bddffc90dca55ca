// C++ errors become the Python classes of cuop/errors.py.
#include <memory>
#include <new>
#include <system_error>
#include <typeinfo>
#include <utility>

#include "binders.h"
#include "callback.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace {

/// By name. Kept: where finalizers run as Python ends, modules are empty and none can be imported.
nb::object& error_classes() {
  static auto* classes =
      new nb::object(nb::module_::import_("cuop.errors").attr("__dict__").attr("copy")());
  return *classes;
}

void raise(const char* class_name, const Error& error) {
  nb::object type = error_classes()[class_name];
  nb::object instance = type(make_message(error.what()));
  if (const auto* memory = dynamic_cast<const MemoryError*>(&error)) {
    const MemoryError::Figures& figures = memory->figures();
    instance.attr("requested") = figures.requested;
    instance.attr("live") = figures.live;
    instance.attr("reserved") = figures.reserved;
    instance.attr("largest_hole") = figures.largest_hole;
  }
  if (const auto* communication = dynamic_cast<const CommunicationError*>(&error)) {
    instance.attr("rank") = communication->rank();
    instance.attr("operation") = make_message(communication->call().operation);
    instance.attr("sequence") = communication->call().number;
  }
  if (const auto* caused = dynamic_cast<const Caused*>(&error)) {
    PyException_SetCause(instance.ptr(), caused->cause()->value().inc_ref().ptr());
  }
  PyErr_SetObject(type.ptr(), instance.ptr());
}

template <class E>
bool is(const Error& error) {
  return dynamic_cast<const E*>(&error) != nullptr;
}

/// The class of cuop/errors.py; of an error derived from another one the derived one.
const char* class_of(const Error& error) {
  constexpr std::pair<bool (*)(const Error&), const char*> kClasses[] = {
      {is<MemoryError>, "MemoryError"},
      {is<NotImplementedError>, "NotImplementedError"},
      {is<GatherError>, "GatherError"},
      {is<ExecutionError>, "ExecutionError"},
      {is<CompilationError>, "CompilationError"},
      {is<ShapeError>, "ShapeError"},
      {is<OverflowError>, "OverflowError"},
      {is<DTypeError>, "DTypeError"},
      {is<DeviceError>, "DeviceError"},
      {is<IndexError>, "IndexError"},
      {is<CommunicationError>, "CommunicationError"}};
  for (const auto& [is_of, name] : kClasses) {
    if (is_of(error)) return name;
  }
  return "Error";
}

/// What a handler of a signal has raised, usually KeyboardInterrupt, until the call that it ends
/// has come back to Python. Used with the GIL.
std::unique_ptr<nb::python_error>& raised_by_signal() {
  static auto* raised = new std::unique_ptr<nb::python_error>;  // Python may be gone at the end
  return *raised;
}

bool is_kept = false;  // of a function that was called meanwhile, and nobody knows of it yet

unsigned long main_thread = 0;  // only this one runs Python's handlers of signals

/// Lets Python's handlers run, as Ctrl-C is at first nothing but a flag.
bool is_interrupted() {
  if (PyThread_get_thread_ident() != main_thread || Py_IsInitialized() == 0) return false;
  const nb::gil_scoped_acquire gil;
  if (std::exchange(is_kept, false)) return true;
  if (PyErr_CheckSignals() == 0) return false;
  raised_by_signal() = std::make_unique<nb::python_error>();
  return true;
}

void raise_interrupt() {
  is_kept = false;
  const auto raised = std::move(raised_by_signal());
  if (raised) {
    raised->restore();
  } else {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace

void keep_interrupt(nb::python_error&& error) {
  raised_by_signal() = std::make_unique<nb::python_error>(std::move(error));
  is_kept = true;
}

void bind_errors(Module&) {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(main.attr("ident"));
  error_classes();
  set_interrupt_check(&is_interrupted);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Interrupted&) {
      raise_interrupt();
    } catch (const Error& error) {
      raise(class_of(error), error);
    } catch (const std::bad_alloc&) {
      raise("MemoryError",
            Error("the system has no memory for what this call needs besides tensors"));
    } catch (const std::system_error& error) {  // as of a thread that cannot be started
      raise("ExecutionError",
            Error(cat("the system refuses what this call needs: ", error.what())));
    } catch (const std::bad_cast&) {  // nanobind's: an object that is not what its class promises
      raise("DTypeError", Error("an argument is out of range, or not what its class promises"));
    }
  });
}

}  // namespace cuop::python
