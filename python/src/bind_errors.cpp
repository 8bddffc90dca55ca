// C++ errors become the Python classes of cuop/errors.py.
#include "binders.h"
#include "cuop/core/error.h"

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
  }
  PyErr_SetObject(type.ptr(), instance.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const MemoryError& error) {
      raise("MemoryError", error);
    } catch (const NotImplementedError& error) {
      raise("NotImplementedError", error);
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
