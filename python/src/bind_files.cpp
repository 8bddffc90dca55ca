// Mapped files, and the error of calls that read one which was cut off meanwhile.
#include <atomic>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/memory/mapped_file.h"
#include "cuop/ops/create/create.h"
#include "mapped_files.h"

namespace cuop::python {

namespace {

Tensor map_file(int descriptor, int64_t offset, int64_t bytes, const std::string& name) {
  const auto file = std::make_shared<memory::MappedFile>(descriptor, offset, bytes, name);
  return from_memory(file->data(), contiguous_layout({bytes}), DType::kUInt8, kCpu, file, true);
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
  const nb::object error = nb::module_::import_("cuop.errors").attr("FileError");
  const nb::object text = make_message(
      cat("load: ", *name, " was cut off by another program while its elements were in use"));
  PyErr_SetObject(error.ptr(), text.ptr());
  return false;
}

void bind_files(Module& m) {
  m.def("_map_file", &map_file, "descriptor"_a, "offset"_a, "bytes"_a, "name"_a,
        "The bytes of an open file as a read-only tensor over the mapped file.");
  m.def(
      "_cut_off_file",
      [](uintptr_t address) {
        return memory::cut_off_file(reinterpret_cast<const void*>(address));
      },
      "address"_a, "The name of the mapped file at an address, if it was cut off meanwhile.");
}

}  // namespace cuop::python
