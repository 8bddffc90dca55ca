#include "operator_class.h"

namespace cuop::python {

namespace {

/// Of the wrapper `op`; DTypeError for an operator that is none.
JitControls& controls(Operator& op) {
  if (auto* found = dynamic_cast<JitControls*>(&op)) return *found;
  throw DTypeError(cat("this is a method of JIT wrappers, given a ", op.name()));
}

}  // namespace

void refuse_operator(const Operator& op, nb::handle wanted_class) {
  throw DTypeError(cat("this method of ", nb::cast<std::string>(wanted_class.attr("__name__")),
                       " was given ", op.name()));
}

void def_tensor_setter(nb::handle operator_class, const char* name,
                       void (*set)(Operator& op, const Tensor& value), const char* argument,
                       const char* doc) {
  nb::borrow<Class<Operator>>(operator_class)
      .def(
          name,
          [set](Operator& op, InputObject value) {
            guarded(op, [&] { set(op, operator_input(value, op)); });
          },
          nb::arg(argument), doc);
}

void def_jit_members(nb::handle jit_class) {
  auto c = nb::borrow<Class<Operator>>(jit_class);
  c.def(
       "enable_jit", [](Operator& op, bool is_on) { controls(op).enable_jit(is_on); },
       "is_on"_a = true, "False runs the operator's own kernel without choosing.")
      .def(
          "enable_persistent_cache",
          [](Operator& op, bool is_on) { controls(op).enable_persistent_cache(is_on); },
          "is_on"_a = true,
          "Keeps measured choices and, on a GPU, compiled kernels on disk, for the next process. "
          "Off, the default, what is there is read and nothing is written.")
      .def(
          "set_persistent_cache_directory",
          [](Operator& op, PathObject path) {
            controls(op).set_persistent_cache_directory(
                guarded(op, [&] { return operator_path(path, "path"); }));
          },
          "path"_a,
          "Where this wrapper keeps its choices and its kernels; GlobalJITConfig.cache_dir "
          "otherwise. Made, while the cache is on, if it is not there: ExecutionError for one that "
          "can be neither made nor written to, here or when the cache is switched on. One that "
          "other users can write to is not used: a warning says so, and choices stay in memory.")
      .def(
          "set_jit_config",
          [](Operator& op, const JitConfig& config) { controls(op).set_jit_config(config); },
          "config"_a,
          "Raises CompilationError, saying why, when the configuration cannot be met. On the CPU "
          "what describes a GPU has no effect: NoEffectWarning, of each field once a process.")
      .def(
          "get_jit_config", [](Operator& op) { return controls(op).jit_config(); },
          "A copy of the configuration.")
      .def(
          "get_performance_profile", [](Operator& op) { return controls(op).profile(); },
          Released(), "Times, rates and kernel of the last call.")
      .def(
          "get_statistics", [](Operator& op) { return controls(op).statistics(); },
          "Compilations, cache hits and misses, time saved.")
      .def(
          "get_tuning_report", [](Operator& op) { return controls(op).tuning_report(); },
          "How the wrapper came to the kernel of its last call, and what was measured for it.")
      .def(
          "warmup", [](Operator& op) { controls(op).warm_up(); }, Released(),
          "Opens libraries and starts threads. With forward's arguments it chooses the kernel for "
          "them too, and leaves the output as it is.");
}

}  // namespace cuop::python
