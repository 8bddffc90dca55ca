// The memory of a device: figures, limits, callbacks, debugging, snapshots.
#include "binders.h"
#include "call_end.h"
#include "callback.h"
#include "cuop/backend/memory_debugging.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/text.h"
#include "cuop/memory/current.h"
#include "cuop/memory/pool.h"
#include "cuop/memory/sites.h"
#include "cuop/memory/snapshot.h"

namespace cuop::python {

namespace {

Record record_of_statistics(const memory::Statistics& s) {
  return record_of("allocated_bytes", s.allocated_bytes, "peak_allocated_bytes",
                   s.peak_allocated_bytes, "peak_active_bytes", s.peak_active_bytes,
                   "reserved_bytes", s.reserved_bytes, "peak_reserved_bytes", s.peak_reserved_bytes,
                   "cached_bytes", s.cached_bytes, "allocation_count", s.allocation_count,
                   "free_count", s.free_count, "out_of_memory_count", s.out_of_memory_count,
                   "pending_bytes", s.pending_bytes, "thread_cached_bytes", s.thread_cached_bytes,
                   "largest_free_bytes", s.largest_free_bytes, "fragmentation", s.fragmentation,
                   "capacity_bytes", s.capacity_bytes, "map_count", s.map_count, "unmap_count",
                   s.unmap_count, "waits_for_pending", s.waits_for_pending, "cache_flushes",
                   s.cache_flushes, "idle_releases", s.idle_releases, "takes_from_streams",
                   s.takes_from_streams, "callback_calls", s.callback_calls);
}

// Setters look at the value before the device: without the device the value is still checked.
void set_callback(const Arg<Device>& device, nb::object function, std::vector<double> thresholds) {
  memory::check_thresholds(thresholds);
  memory::MemoryCallback callback;
  if (!function.is_none()) {
    callback = [held = shared_function(std::move(function))](const memory::MemoryEvent& event) {
      if (Py_IsInitialized() == 0) return;
      const nb::gil_scoped_acquire gil;
      call_shared(
          *held, "the memory callback",
          record_of("kind", memory::name(event.kind), "device", PyDevice{event.device}, "threshold",
                    event.threshold, "requested", event.requested, "allocated", event.allocated,
                    "reserved", event.reserved, "capacity", event.capacity));
    };
  }
  memory::Pool& pool = memory::device_pool(device);
  const nb::gil_scoped_release release;
  pool.set_callback(std::move(callback), std::move(thresholds));
}

/// The owner remembers the resource and the stream of the block, whatever is current when it goes.
nb::tuple allocate_memory(Arg<Device> device, int64_t bytes) {
  const Device where = device;
  std::shared_ptr<Storage> storage =
      without_gil([&] { return memory::allocate_storage(bytes, where); });
  const auto address = reinterpret_cast<intptr_t>(storage->data());
  auto owner = std::make_unique<std::shared_ptr<Storage>>(std::move(storage));
  nb::capsule held(owner.get(), [](void* block) noexcept {
    const std::unique_ptr<std::shared_ptr<Storage>> dropped(
        static_cast<std::shared_ptr<Storage>*>(block));
  });
  owner.release();
  return nb::make_tuple(address, std::move(held));
}

/// The names of the files that were written.
std::pair<std::string, std::string> write_files(const memory::PoolSnapshot& snapshot,
                                                const std::string& path) {
  try {
    const nb::gil_scoped_release released;
    return memory::write_snapshot(snapshot, path);
  } catch (const ExecutionError& error) {
    raise_file_error(error.what());
  }
}

/// "file.py:17 in function" of the innermost frame outside of cuOP's own packages.
std::string python_site() {
  if (Py_IsInitialized() == 0) return "";
  const nb::gil_scoped_acquire gil;
  try {
    const std::string package = message_of(nb::module_::import_("cuop").attr("__file__"));
    const std::string root = package.substr(0, package.rfind("cuop/"));
    nb::object frame = nb::module_::import_("sys").attr("_getframe")(0);
    while (!frame.is_none()) {
      const nb::object code = frame.attr("f_code");
      const std::string file = message_of(code.attr("co_filename"));
      if (!file.starts_with(root + "cuop/") && !file.starts_with(root + "genesis/")) {
        return cat(file, ':', nb::cast<int>(frame.attr("f_lineno")), " in ",
                   message_of(code.attr("co_name")));
      }
      frame = frame.attr("f_back");
    }
  } catch (const nb::python_error&) {
    // This thread runs no Python.
  }
  return "";
}

}  // namespace

void bind_memory(Module& m) {
  m.def(
      "memory_statistics",
      [](Arg<Device> device) {
        return record_of_statistics(backend::counted_resource(device).statistics());
      },
      "device"_a, "Figures of the device's memory; sizes in bytes.");
  m.def(
      "reset_peak_memory",
      [](Arg<Device> device) { backend::counted_resource(device).reset_peak(); }, "device"_a,
      "Makes the present use the peak.");
  m.def(
      "set_memory_limit",
      [](Arg<Device> device, std::optional<int64_t> bytes) {
        memory::check_bound("memory limit", bytes.value_or(0));
        memory::device_pool(device).set_limit(bytes.value_or(memory::kUnlimited));
      },
      "device"_a, "bytes"_a.none(), Released());
  m.def(
      "set_memory_fraction",
      [](Arg<Device> device, double fraction) {
        memory::check_fraction(fraction);
        memory::device_pool(device).set_fraction(fraction);
      },
      "device"_a, "fraction"_a, Released());
  m.def(
      "set_cache_size",
      [](Arg<Device> device, std::optional<int64_t> bytes) {
        memory::check_bound("cache size", bytes.value_or(0));
        memory::device_pool(device).set_cache_size(bytes.value_or(memory::kUnlimited));
      },
      "device"_a, "bytes"_a.none(), Released());
  m.def(
      "parse_bytes",
      [](const std::string& text, const std::string& who) {
        return parse_bytes(without_zeros(text), without_zeros(who));
      },
      "text"_a, "who"_a, "'2GB' -> 2147483648; ExecutionError when it is no size.");
  m.def(
      "set_memory_callback",
      [](Arg<Device> device, nb::object function, std::vector<double> thresholds) {
        set_callback(device, std::move(function), std::move(thresholds));
      },
      "device"_a, "function"_a.none(), "thresholds"_a,
      nb::sig("def set_memory_callback(device: DeviceLike, function: Any, thresholds: list[float]) "
              "-> None"));
  m.def(
      "set_memory_debugging",
      [](Arg<Device> device, bool is_on) {
        backend::set_memory_debugging(device, is_on);
        const bool is_any_on = backend::is_memory_debugging();
        memory::set_site_provider(is_any_on ? memory::SiteProvider(&python_site)
                                            : memory::SiteProvider());
      },
      "device"_a, "is_on"_a,
      "Begins or ends guarding new tensors of the device; see `enable_memory_debugging`.");
  m.def(
      "is_memory_debugging",
      [](Arg<Device> device) { return backend::is_memory_debugging(device); }, "device"_a,
      "Whether new tensors of the device are guarded.");
  m.def(
      "check_memory", [](Arg<Device> device) { return backend::check_memory(device); }, "device"_a,
      Released());
  m.def(
      "memory_leaks",
      [](Arg<Device> device) {
        nb::typed<nb::list, nb::typed<nb::tuple, int64_t, double, nb::str>> rows;
        for (const auto& leak : backend::memory_leaks(device)) {
          rows.append(nb::make_tuple(leak.bytes, leak.age_s, leak.site));
        }
        return rows;
      },
      "device"_a, "(bytes, age in seconds, site) of guarded blocks that are live, largest first.");
  m.def(
      "write_memory_snapshot",
      [](Arg<Device> device, const std::string& path) {
        return write_files(without_gil([&] { return memory::device_pool(device).snapshot(); }),
                           path);
      },
      "device"_a, "path"_a,
      "Writes the state of the device's memory and its history to `path` with .json and with "
      ".html; "
      "returns both names. Raises FileError.");
  m.def(
      "write_empty_snapshot",
      [](const std::string& device, const std::string& path) {
        memory::PoolSnapshot nothing;
        nothing.device = device;
        return write_files(nothing, path);
      },
      "device"_a, "path"_a, "Of a device that is not there, which holds nothing.");
  m.def("allocate_memory", &allocate_memory, "device"_a, "bytes"_a,
        nb::sig("def allocate_memory(device: DeviceLike, bytes: int) -> tuple[int, Any]"),
        "Address of a new block, 0 for 0 bytes, and its owner, with which it goes.");
}

}  // namespace cuop::python
