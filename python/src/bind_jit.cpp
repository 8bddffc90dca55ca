// Configuration, profile and statistics of the JIT wrappers.
#include <algorithm>
#include <memory>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/operators/tuned/engine.h"
#include "cuop/operators/tuned/no_effect.h"
#include "words.h"

namespace cuop::python {

namespace {

/// A class of plain fields, readable as attributes and as a mapping: dict(record), record["name"].
/// `row(name, member, doc)` adds one.
template <class T>
class RecordClass {
 public:
  RecordClass(Module& m, const char* name, const char* doc) : class_(m, name, doc) {}

  template <class Member>
  RecordClass& read(const char* name, Member member, const char* doc) {
    class_.def_ro(name, member, doc);
    return add(name);
  }
  template <class Member>
  RecordClass& read_write(const char* name, Member member, const char* doc) {
    class_.def_rw(name, member, doc);
    return add(name);
  }
  template <class Compute>
  RecordClass& computed(const char* name, Compute compute, const char* doc) {
    class_.def_prop_ro(name, compute, doc);
    return add(name);
  }
  template <class Get, class Set>
  RecordClass& property(const char* name, Get get, Set set, const char* doc) {
    class_.def_prop_rw(name, get, set, doc);
    return add(name);
  }

  void finish() {
    const auto names = std::make_shared<std::vector<std::string>>(std::move(names_));
    class_.def(
        "keys", [names](const T&) { return *names; }, "The names of the fields.");
    class_.def("__getitem__", [names](nb::handle self, const nb::str& name) {
      if (std::find(names->begin(), names->end(), text_of(name)) == names->end()) {
        PyErr_SetObject(PyExc_KeyError, name.ptr());
        nb::raise_python_error();
      }
      return nb::object(self.attr(name));
    });
    class_.def("__repr__", [names](nb::handle self) {
      std::vector<std::string> fields;
      for (const std::string& name : *names) {
        fields.push_back(cat(name, "=", message_of(nb::repr(self.attr(name.c_str())))));
      }
      return cat(class_name(self), "(", join(fields), ")");
    });
  }

  Class<T>& get() { return class_; }

 private:
  RecordClass& add(const char* name) {
    names_.emplace_back(name);
    return *this;
  }
  Class<T> class_;
  std::vector<std::string> names_;
};

/// A constructor that takes fields by name; an unknown one is Python's AttributeError.
template <class T, class Default>
void def_init_by_name(Class<T>& c, Default make_default) {
  c.def(
      "__init__",
      [make_default](nb::handle self, const nb::args& unnamed, const nb::kwargs& fields) {
        if (unnamed.size() > 0) {
          const std::string text =
              cat(class_name(self), ": fields are given by name, as enable_jit=True; given ",
                  unnamed.size(), " without a name");
          throw nb::type_error(text.c_str());
        }
        if (!nb::isinstance<T>(self) || nb::inst_ready(self)) {
          throw DTypeError(
              cat("__init__: needed is a new object of the class, given ", class_name(self)));
        }
        new (nb::inst_ptr<T>(self)) T(make_default());
        nb::inst_mark_ready(self);
        for (const auto& [name, value] : fields) nb::setattr(self, name, value);
      },
      nb::sig("def __init__(self, **fields: Any) -> None"),
      "Fields that are not given have their defaults.");
}

/// Configurations are values: equal when their fields are, and copied, also by copy and pickle.
template <class T>
void def_value(Class<T>& c) {
  c.def(
       "__eq__", [](const T& a, const T& b) { return a == b; }, nb::is_operator(),
       nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def(
          "__reduce__",
          [](nb::handle self) {
            const nb::object partial = nb::module_::import_("functools").attr("partial");
            const auto fields =
                nb::cast<nb::dict>(nb::module_::import_("builtins").attr("dict")(self));
            return nb::make_tuple(partial(self.type(), **fields), nb::tuple());
          },
          nb::sig("def __reduce__(self) -> tuple[Any, ...]"));
  c.attr("__hash__") = nb::none();  // fields change
}

void warn_in_python(const std::string& text) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire gil;
  const nb::object category = nb::module_::import_("cuop.errors").attr("NoEffectWarning");
  if (PyErr_WarnEx(category.ptr(), text.c_str(), 1) != 0) nb::raise_python_error();
}

void bind_configs(Module& m) {
  RecordClass<JitConfig> config(m, "JITConfig", "How one JIT wrapper chooses and runs kernels.");
  def_init_by_name(config.get(), [] { return JitConfig{}; });
  def_value(config.get());
  config.read_write("enable_jit", &JitConfig::enable_jit, "False: the operator's own kernel.")
      .property(
          "kernel_type", [](const JitConfig& c) { return name(c.kernel_type); },
          [](JitConfig& c, const std::string& text) {
            c.kernel_type = named_call("JITConfig.kernel_type",
                                       [&] { return backend::parse_kernel_type(text); });
          },
          "'auto', 'simple', 'tiled' or 'tensor_core'.")
      .read_write("tile_size", &JitConfig::tile_size,
                  "Edge of the tile of products, which are then tiled; 0: chosen.")
      .read_write(
          "block_size", &JitConfig::block_size,
          "Threads of a GPU's block: of products a power of two from 32 on, of the operator's own "
          "kernels 128, 256, 512 or 1024; 0: chosen.")
      .read_write("num_stages", &JitConfig::num_stages,
                  "Steps of the depth that a GPU's products have in shared memory at a time; 0: "
                  "chosen. Refused elsewhere with the reason.")
      .read_write("optimization_level", &JitConfig::optimization_level,
                  "'O0' simple kernel; 'O1', 'O2', 'fast' by rule; 'O3', 'auto' measured when "
                  "auto-tuning is on; 'best' always measured. There is something to measure while "
                  "neither kernel_type nor tile_size has settled the matter. GPU kernels of the "
                  "operator's own are assembled with 'O1' and 'O2' as they say.")
      .read_write("enable_tensor_core", &JitConfig::enable_tensor_core,
                  "A permission; False leaves products algorithms without tensor cores.")
      .read_write(
          "enable_tma", &JitConfig::enable_tma,
          "True: the copy engine brings the rows of a GPU's products. Refused elsewhere with "
          "the reason.")
      .read_write("max_registers", &JitConfig::max_registers,
                  "Of a thread of a GPU kernel of the operator's own, from 24; 0: no limit.")
      .read_write("enable_shared_memory_opt", &JitConfig::enable_shared_memory_opt,
                  "False: the simple kernel of a GPU's products without shared memory. Refused "
                  "elsewhere with the reason.")
      .read_write("enable_loop_unroll", &JitConfig::enable_loop_unroll,
                  "False: loops of GPU kernels of the operator's own are not unrolled.")
      .read_write(
          "enable_memory_coalescing", &JitConfig::enable_memory_coalescing,
          "False: the simple kernel of a GPU's products, whose neighbouring threads read far "
          "apart. Refused elsewhere with the reason.")
      .finish();

  using Global = GlobalJitConfig;
  RecordClass<Global> global(m, "GlobalJITConfig", "How all JIT wrappers of the process work.");
  def_init_by_name(global.get(), [] { return default_global_jit_config(); });
  def_value(global.get());
  global.read_write("enable_jit", &Global::enable_jit, "False: operators' own kernels only.")
      .read_write("enable_auto_tuning", &Global::enable_auto_tuning,
                  "False: 'auto' follows the operator's rule; nothing is measured.")
      .read_write("enable_caching", &Global::enable_caching, "False: every call chooses anew.")
      .read_write("cache_dir", &Global::cache_dir, "Of wrappers without a directory of their own.")
      .read_write("max_cache_size", &Global::max_cache_size,
                  "Bytes; the least recently used choices go first.")
      .read_write("compilation_timeout", &Global::compilation_timeout,
                  "Seconds for choosing one kernel, waiting for a turn included. Candidates not "
                  "reached do not win; a choice made without them is not kept on disk.")
      .read_write("max_compilation_threads", &Global::max_compilation_threads,
                  "Threads that may choose kernels at a time; others wait.")
      .read_write(
          "enable_debug", &Global::enable_debug,
          "Writes a log of every choice and, beside every kernel that is compiled, its source "
          "and the compiler's log into the cache directory; waits for every launch on a GPU; "
          "compares every result with the simple kernel's, on a GPU with the CPU's: "
          "ExecutionError where they disagree. While a graph is captured nothing is waited "
          "for or compared.")
      .finish();

  m.def(
      "get_default_jit_config", [] { return JitConfig{}; }, "A new JITConfig of defaults.");
  m.def("get_default_global_jit_config", &default_global_jit_config,
        "A new GlobalJITConfig of defaults.");
  m.def("get_global_jit_config", &global_jit_config, "A copy of the configuration in use.");
  m.def("set_global_jit_config", &set_global_jit_config, "config"_a,
        "Takes effect on the next call of every wrapper. Raises CompilationError for a value that "
        "makes no sense, or a new cache_dir that can be neither made nor written to.");
  m.def("clear_kernel_cache", &clear_kernel_cache, Released(),
        "Forgets all chosen kernels and removes those in the global cache directory; returns how "
        "many that were.");
}

nb::typed<nb::dict, nb::str, double> measured(const TuningReport& report) {
  nb::typed<nb::dict, nb::str, double> times;
  for (const tune::Measurement& one : report.candidates) {
    if (one.median_ms > 0.0) times[one.name.c_str()] = one.median_ms;
  }
  return times;
}

nb::typed<nb::dict, nb::str, nb::str> not_measured(const TuningReport& report) {
  nb::typed<nb::dict, nb::str, nb::str> reasons;
  for (const tune::Measurement& one : report.candidates) {
    if (!one.why_out.empty()) reasons[one.name.c_str()] = one.why_out;
  }
  return reasons;
}

void bind_records(Module& m) {
  using Profile = PerformanceProfile;
  RecordClass<Profile>(m, "PerformanceProfile", "Times and rates of a JIT wrapper's last call.")
      .read("execution_time", &Profile::execution_time,
            "ms of the whole call without choosing or compiling the kernel.")
      .read("kernel_time_ms", &Profile::kernel_time_ms,
            "ms of the kernel alone; on a GPU by its stream's own time, for which reading the "
            "profile waits. 0 for a call that a graph recorded.")
      .read("launch_overhead_ms", &Profile::launch_overhead_ms,
            "ms of checks, look-ups and, on a GPU, starting the kernel.")
      .read("compilation_time_ms", &Profile::compilation_time_ms,
            "ms that choosing this kernel cost when it was chosen, and compiling in this call.")
      .read("gflops", &Profile::gflops, "1e9 operations a second of the kernel.")
      .read("bandwidth_gb_s", &Profile::bandwidth_gb_s,
            "1e9 bytes a second that the kernel must move at least.")
      .read("used_tensor_core", &Profile::used_tensor_core, "False on the CPU.")
      .read("kernel_type", &Profile::kernel_type,
            "'simple', 'tiled', 'tiled/32' (its tile), 'library', or of a GPU's own products also "
            "threads and stages: 'tiled/64/256/3'.")
      .read(
          "precision", &Profile::precision,
          "Of the numbers computed with: the dtype, or 'tf32x3' for products of float32 on matrix "
          "units.")
      .read("percent_of_roof", &Profile::percent_of_roof,
            "Of the measured roof of memory and arithmetic; data in caches can exceed 100. NaN "
            "until measured_roof has measured it, on this machine once: reading a profile does "
            "not.")
      .read("no_effect", &Profile::no_effect,
            "Fields of the configuration that mean nothing to the device that ran, each with the "
            "reason: 'block_size=256: no effect on cpu (...)'.")
      .finish();
  RecordClass<TuningReport>(m, "TuningReport",
                            "How a JIT wrapper came to the kernel of its last call.")
      .read("source", &TuningReport::source,
            "'measured', 'memory', 'disk', 'put off' (nothing may be measured now); '' before the "
            "first call.")
      .read("kernel", &TuningReport::kernel, "As kernel_type of the profile.")
      .read("gain", &TuningReport::gain, "Part of the default kernel's time that the choice saves.")
      .read("made_in_ms", &TuningReport::made_in_ms, "What finding it cost.")
      .read("text", &TuningReport::text,
            "What was measured when it was found, one line a candidate; or why nothing was.")
      .computed("measured", &measured,
                "ms of one run of each candidate that was measured, by name; the default first.")
      .computed("not_measured", &not_measured,
                "Of each candidate that was not, or not to the end, the reason, by name.")
      .finish();
  using Statistics = JitStatistics;
  RecordClass<Statistics>(m, "JITStatistics", "What a JIT wrapper's calls found in the caches.")
      .read("compilations", &Statistics::compilations,
            "Of kernels, during calls; on the CPU, which compiles none, choices that no cache had.")
      .read("cache_hits", &Statistics::cache_hits, "Calls whose kernel a cache had.")
      .read("cache_misses", &Statistics::cache_misses, "Calls whose kernel no cache had.")
      .read("persistent_cache_hits", &Statistics::persistent_cache_hits,
            "Those of cache_hits that came from disk.")
      .read("damaged_entries", &Statistics::damaged_entries,
            "Files of the persistent cache that could not be used.")
      .read("compilation_time_ms", &Statistics::compilation_time_ms, "Of all compilations.")
      .read("time_saved_ms", &Statistics::time_saved_ms,
            "What the hits would have cost as compilations.")
      .finish();
}

}  // namespace

void bind_jit(Module& m) {
  set_no_effect_output(&warn_in_python);
  bind_configs(m);
  bind_records(m);
}

}  // namespace cuop::python
