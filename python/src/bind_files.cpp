// Mapped files, and the error of calls that read one which was cut off meanwhile.
#include <atomic>

#include "binders.h"
#include "call_end.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/mapped_file.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop::python {

namespace {

Tensor map_file(int descriptor, int64_t offset, int64_t bytes, const std::string& name) {
  const auto file = std::make_shared<memory::MappedFile>(descriptor, offset, bytes, name);
  return from_memory(file->data(), contiguous_layout({bytes}), DType::kUInt8, kCpu, file, true);
}

/// Bytes as numbers, read-only: over the same memory, or a copy where they do not begin at a
/// multiple of a number's size.
Tensor numbers_of(const Tensor& bytes, DType dtype, const Shape& shape) {
  const int64_t count = element_count(shape);
  const bool fits = bytes.dtype() == DType::kUInt8 && bytes.ndim() == 1 && bytes.is_contiguous() &&
                    bytes.device().is_cpu() && count == bytes.size() / itemsize(dtype) &&
                    bytes.size() % itemsize(dtype) == 0;
  if (!fits) {
    throw ExecutionError(cat("_numbers_of: ", bytes.size(), " bytes of ", bytes.dtype(),
                             " are not the elements of ", shape, " ", dtype));
  }
  const bool is_aligned =
      reinterpret_cast<uintptr_t>(bytes.data()) % static_cast<uintptr_t>(itemsize(dtype)) == 0;
  const Tensor there = is_aligned ? bytes : clone(bytes);
  return from_memory(there.data(), contiguous_layout(shape), dtype, kCpu, there.storage(), true);
}

/// The cut-off file in which the elements of an argument, or of an entry of a list, lie. Lists are
/// looked into as deep as calls take tensors from them: some hold themselves.
std::optional<std::string> cut_off_file_of(nb::handle object, int depth = 2) {
  if (nb::isinstance<Tensor>(object) && nb::inst_ready(object)) {
    Storage& storage = *nb::inst_ptr<Tensor>(object)->storage();
    if (storage.is_deferred()) return std::nullopt;  // no file's, and not to be computed for this
    return memory::cut_off_file(storage.data());
  }
  if (depth > 0 && (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object))) {
    for (nb::handle entry : nb::tuple(object)) {
      if (const auto name = cut_off_file_of(entry, depth - 1)) return name;
    }
  }
  return std::nullopt;
}

void set_file_error(const std::string& message) {
  const nb::object error = nb::module_::import_("cuop.errors").attr("FileError");
  PyErr_SetObject(error.ptr(), make_message(message).ptr());
}

/// Losses that an error has told of.
std::atomic<uint64_t> told = 0;

}  // namespace

bool check_mapped_files(std::span<PyObject* const> arguments) {
  std::optional<std::string> name;
  for (PyObject* argument : arguments) {
    if (!name && argument != nullptr) name = cut_off_file_of(argument);
  }
  // What was recorded for fusion, or read by NumPy, is told of by the next call.
  const uint64_t count = memory::lost_page_count();
  if (told.exchange(count) != count && !name) name = memory::cut_off_file(nullptr);
  if (!name) return true;
  set_file_error(
      cat("load: ", *name, " was cut off by another program while its elements were in use"));
  return false;
}

void raise_file_error(const std::string& message) {
  set_file_error(message);
  nb::raise_python_error();
}

void bind_files(Module& m) {
  m.def("_map_file", &map_file, "descriptor"_a, "offset"_a, "bytes"_a, "name"_a,
        "The bytes of an open file as a read-only tensor over the mapped file.");
  m.def(
      "_numbers_of",
      [](Arg<Unplaced> bytes, Arg<DType> dtype, Arg<Shape> shape) {
        return numbers_of(bytes->tensor, *dtype, *shape);
      },
      "bytes"_a, "dtype"_a, "shape"_a,
      "A contiguous uint8 tensor of the host as a read-only tensor of another dtype, over the same "
      "memory where that is aligned for it.");
  m.def(
      "_cut_off_file",
      [](uintptr_t address) {
        return memory::cut_off_file(reinterpret_cast<const void*>(address));
      },
      "address"_a, "The name of the mapped file at an address, if it was cut off meanwhile.");
}

}  // namespace cuop::python
