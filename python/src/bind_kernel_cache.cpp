// The cache of compiled kernels on disk.
#include "binders.h"
#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/core/error.h"
#include "cuop/jit/compilations.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/warm.h"

namespace cuop::python {

namespace {

Record record_of_entry(const jit::DiskCache::Entry& entry) {
  return record_of("key", entry.key, "name", entry.name, "bytes", entry.bytes, "made_in_ms",
                   entry.made_in_ms, "used", entry.used);
}

void check_file(const std::string& file, const char* who) {
  if (file.find('\0') == std::string::npos) return;
  throw ExecutionError(
      cat(who, ": file: ", without_zeros(file), " holds a zero character, which no file name may"));
}

}  // namespace

void bind_kernel_cache(Module& m) {
  // Python ends before the process does, and before anything that threads may still use.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(
      [] {
        jit::end_compiling();
        backend::await_gated_calls();
      },
      nb::call_guard<nb::gil_scoped_release>()));
  m.def(
      "kernel_cache_entries",
      [] {
        return records_of(without_gil([] { return jit::kernel_disk_cache()->entries(); }),
                          record_of_entry);
      },
      "Every kernel that the cache on disk holds and that can be used, the last used first: key, "
      "name, bytes, made_in_ms, used (seconds since 1970).");
  m.def(
      "kernel_cache_info",
      [] {
        const auto cache = jit::kernel_disk_cache();
        const jit::CompileSettings settings = jit::compile_settings();
        const jit::CompileStatistics statistics = jit::compile_statistics();
        return record_of("directory", cache->directory(), "problem", cache->problem(), "max_bytes",
                         settings.max_bytes, "is_used", settings.is_caching, "compilations",
                         statistics.compilations, "disk_hits", statistics.disk_hits,
                         "damaged_entries", statistics.damaged_entries, "compile_ms",
                         statistics.compile_ms, "saved_ms", statistics.saved_ms);
      },
      "Where compiled kernels are kept, why not ('problem'), and what this process compiled and "
      "found there.");
  m.def(
      "kernel_cache_clear", [] { return jit::kernel_disk_cache()->clear(); }, Released(),
      "Removes every compiled kernel from disk; returns how many there were.");
  m.def(
      "kernel_cache_export",
      [](const std::string& file) {
        check_file(file, "kernel_cache_export");
        return jit::kernel_disk_cache()->export_to(file);
      },
      "file"_a, Released(),
      "Writes every kernel into one file; returns how many. Raises ExecutionError.");
  m.def(
      "kernel_cache_import",
      [](const std::string& file) {
        check_file(file, "kernel_cache_import");
        return jit::kernel_disk_cache()->import_from(file);
      },
      "file"_a, Released(),
      "Takes the kernels of such a file whose checksums hold; returns how many. Only import what "
      "you would run. Raises ExecutionError when it is no such file.");
  m.def(
      "kernel_cache_warm",
      [](const std::vector<std::string>& ops, const std::vector<std::string>& dtypes,
         const std::string& arch) {
        jit::WarmUp wanted;
        wanted.ops = ops;
        wanted.arch = arch;
        if (!dtypes.empty()) wanted.dtypes.clear();
        named_call("kernel_cache_warm: dtypes", [&] {
          for (const std::string& dtype : dtypes) wanted.dtypes.push_back(parse_dtype(dtype));
        });
        return named_call("kernel_cache_warm", [&] { return jit::warm_kernels(wanted); });
      },
      "ops"_a = std::vector<std::string>{}, "dtypes"_a = std::vector<std::string>{}, "arch"_a = "",
      Released(),
      "Compiles kernels into the cache before they are needed; returns how many. All operations "
      "when none is named; float32, float16 and bfloat16 when no dtype is; for the first GPU when "
      "no architecture ('sm_90a') is.");
}

}  // namespace cuop::python
