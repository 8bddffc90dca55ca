// dtype and device objects.
#include "binders.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace {

const char* kind(DType dtype) {
  if (is_bool(dtype)) return "b";
  if (is_signed_integer(dtype)) return "i";
  if (is_unsigned_integer(dtype)) return "u";
  return is_complex(dtype) ? "c" : "f";
}

template <class T, class Object>
bool equals(const Object& self, nb::handle other) {
  try {
    return self.value == convert_argument(other, TypeTag<T>{});
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void bind_types(Module& m) {
  Class<PyDType>(m, "dtype",
                 "An element type. Compares equal to its name and to NumPy's dtype of that "
                 "name.\n\nArgs: a name, a NumPy dtype or a Python type. Raises DTypeError.")
      .def(
          "__init__", [](PyDType* self, Arg<DType> d) { new (self) PyDType{*d}; }, "dtype"_a)
      .def_prop_ro(
          "name", [](const PyDType& d) { return name(d.value); }, "The NumPy name.")
      .def_prop_ro(
          "itemsize", [](const PyDType& d) { return itemsize(d.value); }, "Bytes of one element.")
      .def_prop_ro(
          "kind", [](const PyDType& d) { return kind(d.value); },
          "'b', 'i', 'u', 'f' or 'c', as NumPy's.")
      .def_prop_ro(
          "__numpy_dtype__",
          [](const PyDType& d) {
            if (d.value == DType::kBFloat16) {
              throw DTypeError("dtype: NumPy has no bfloat16; float32 holds its numbers");
            }
            return nb::module_::import_("numpy").attr("dtype")(name(d.value));
          },
          "NumPy's dtype, which NumPy 2.4 and later ask for.")
      .def("__str__", [](const PyDType& d) { return name(d.value); })
      .def("__repr__", [](const PyDType& d) { return cat("cuop.", d.value); })
      .def(
          "__eq__", [](const PyDType& d, nb::handle other) { return equals<DType>(d, other); },
          nb::arg().none())
      .def("__hash__", [](const PyDType& d) { return nb::hash(nb::str(name(d.value))); })
      .def(
          "__reduce__",
          [](const PyDType& d) {
            return nb::make_tuple(nb::type<PyDType>(), nb::make_tuple(name(d.value)));
          },
          nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    m.attr(is_bool(dtype) ? "bool_" : name(dtype)) = PyDType{dtype};
  }
  Class<PyDevice>(
      m, "Device",
      "A device: 'cpu', or 'cuda:N'; 'cuda' is the GPU that this thread has chosen, else "
      "the one of this process among those of its host. Compares equal to its name.")
      .def(
          "__init__", [](PyDevice* self, Arg<Device> d) { new (self) PyDevice{*d}; }, "name"_a)
      .def_prop_ro(
          "type", [](const PyDevice& d) { return name(d.value.type); }, "'cpu' or 'cuda'.")
      .def_prop_ro(
          "index", [](const PyDevice& d) { return d.value.index; }, "Which one of its type.")
      .def("__str__", [](const PyDevice& d) { return cat(d.value); })
      .def("__repr__", [](const PyDevice& d) { return cat("cuop.Device('", d.value, "')"); })
      .def(
          "__eq__", [](const PyDevice& d, nb::handle other) { return equals<Device>(d, other); },
          nb::arg().none())
      .def(
          "__reduce__",
          [](const PyDevice& d) {
            return nb::make_tuple(nb::type<PyDevice>(), nb::make_tuple(cat(d.value)));
          },
          nb::sig("def __reduce__(self) -> tuple[Any, ...]"))
      .def("__hash__", [](const PyDevice& d) { return nb::hash(nb::str(cat(d.value).c_str())); });
}

}  // namespace cuop::python
