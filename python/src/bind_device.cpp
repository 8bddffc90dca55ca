#include "binders.h"
#include "cuop/backend/cache.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/cuda/library_search.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/env.h"
#include "cuop/jit/fusion.h"
#include "cuop/memory/current.h"
#include "cuop/system/info.h"
#include "exchange_release.h"

namespace cuop::python {

namespace {

/// NVIDIA's libraries may have come as Python packages.
void tell_package_folders() {
  std::vector<std::string> folders;
  for (nb::handle entry : nb::module_::import_("sys").attr("path")) {
    if (PyUnicode_Check(entry.ptr()) == 0) continue;
    const std::string folder = text_of(entry);
    if (folder.ends_with("site-packages") || folder.ends_with("dist-packages")) {
      folders.push_back(folder);
    }
  }
  backend::set_package_folders(std::move(folders));
}

}  // namespace

void bind_device(Module& m) {
  tell_package_folders();
  m.def(
      "device_count",
      [](const std::string& type) {
        return named_call("device_count: type",
                          [&] { return backend::device_count(parse_device(type).type); });
      },
      "type"_a, "How many devices of the type ('cpu' or 'cuda') this process can use.");
  m.def(
      "current_device", [] { return PyDevice{backend::current_device()}; },
      "The device on which this thread makes new tensors. Raises DeviceError when CUOP_DEVICE "
      "names "
      "one that cannot be used.");
  m.def(
      "set_current_device", [](Arg<Device> device) { backend::set_current_device(device); },
      "device"_a,
      "Chooses the device on which this thread makes new tensors. Raises DeviceError when it is "
      "not "
      "there.");
  m.def(
      "synchronize",
      [](Arg<Device> device) {
        jit::flush_pending("the device is waited for");
        backend::runtime(device).synchronize();
        release_borrowed();
      },
      "device"_a, Released(),
      "Waits until all work of the device is done. Raises what that work failed with.");
  m.def(
      "memory_info",
      [](Arg<Device> device) {
        const auto info = backend::runtime(device).memory_info();
        return std::pair{info.free, info.total};
      },
      "device"_a, "(free, total) bytes of the device.");
  m.def(
      "device_description",
      [](Arg<Device> device) { return backend::runtime(device).description(); }, "device"_a,
      "The device in words, as its name and its memory. Raises DeviceError when it is not there.");
  m.def(
      "release_cached", [](Arg<Device> device) { return empty_cache(device); }, "device"_a,
      Released(), "Returns idle cached memory to the system; returns the bytes.");
  m.def(
      "env_table",
      [] {
        return records_of<TextRecord>(env_table(), [](const EnvRow& row) {
          return record_of("name", row.name, "alias", row.alias, "default", row.default_value,
                           "current", row.current, "what", row.what);
        });
      },
      "Every environment variable that cuOP reads.");

  m.def(
      "cpu_isa", [] { return isa::name(isa::current()); },
      "Instruction set of the CPU kernels: 'baseline', 'v3' or 'v4'.");
  m.def("thread_count", &backend::thread_count, "Threads that work of this thread is split over.");
  m.def("cuda_absence_reason", &backend::cuda_absence_reason,
        "Why no GPU can be used, and how to use the CPU.");

  m.def(
      "cuda_libraries",
      [] {
        return records_of<TextRecord>(
            backend::cuda_libraries(), [](const backend::LibraryStatus& library) {
              return record_of("title", library.title, "version", library.version, "path",
                               library.path, "reason", library.reason);
            });
      },
      "The CUDA libraries that were looked for: title, version, path, and the reason when absent.");

  m.def(
      "system_parts",
      [] {
        nb::typed<nb::list, nb::typed<nb::tuple, nb::str, bool, nb::str>> rows;
        for (const SystemPart& part : system_info()) {
          rows.append(nb::make_tuple(part.name, part.is_found, part.detail));
        }
        return rows;
      },
      "What this machine and this process have to offer: name, whether it is there, and the detail "
      "or the reason.");
}

}  // namespace cuop::python
