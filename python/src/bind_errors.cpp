// C++ errors become the Python classes of cuop/errors.py.
#include <memory>
#include <new>
#include <typeinfo>

#include "binders.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"

namespace cuop::python {

namespace {

void raise(const char* class_name, const Error& error) {
  nb::object type = nb::module_::import_("cuop.errors").attr(class_name);
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
  PyErr_SetObject(type.ptr(), instance.ptr());
}

/// What a handler of a signal has raised, usually KeyboardInterrupt, until the call that it ends
/// has come back to Python. Used with the GIL.
std::unique_ptr<nb::python_error>& raised_by_signal() {
  static auto* raised = new std::unique_ptr<nb::python_error>;  // Python may be gone at the end
  return *raised;
}

unsigned long main_thread = 0;  // only this one runs Python's handlers of signals

/// Lets Python's handlers run, as Ctrl-C is at first nothing but a flag.
bool is_interrupted() {
  if (PyThread_get_thread_ident() != main_thread || Py_IsInitialized() == 0) return false;
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return false;
  raised_by_signal() = std::make_unique<nb::python_error>();
  return true;
}

void raise_interrupt() {
  const auto raised = std::move(raised_by_signal());
  if (raised) {
    raised->restore();
  } else {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

}  // namespace

void bind_errors(Module&) {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(main.attr("ident"));
  set_interrupt_check(&is_interrupted);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Interrupted&) {
      raise_interrupt();
    } catch (const MemoryError& error) {
      raise("MemoryError", error);
    } catch (const std::bad_alloc&) {
      raise("MemoryError",
            Error("the system has no memory for what this call needs besides tensors"));
    } catch (const std::bad_cast&) {  // nanobind's: an object that is not what its class promises
      raise("DTypeError", Error("an argument is out of range, or not what its class promises"));
    } catch (const NotImplementedError& error) {
      raise("NotImplementedError", error);
    } catch (const GatherError& error) {
      raise("GatherError", error);
    } catch (const ExecutionError& error) {
      raise("ExecutionError", error);
    } catch (const CompilationError& error) {
      raise("CompilationError", error);
    } catch (const ShapeError& error) {
      raise("ShapeError", error);
    } catch (const OverflowError& error) {
      raise("OverflowError", error);
    } catch (const DTypeError& error) {
      raise("DTypeError", error);
    } catch (const DeviceError& error) {
      raise("DeviceError", error);
    } catch (const IndexError& error) {
      raise("IndexError", error);
    } catch (const CommunicationError& error) {
      raise("CommunicationError", error);
    } catch (const Error& error) {
      raise("Error", error);
    }
  });
}

}  // namespace cuop::python
