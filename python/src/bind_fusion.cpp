// Fused scopes and what they report. The decorator and `explain` are in cuop/fusion.py.
#include <memory>
#include <thread>

#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/jit/fusion.h"

namespace cuop::python {

namespace {

using jit::GroupReport;

/// A context manager around an object that must live from __enter__ to __exit__, and that belongs
/// to the thread which entered.
template <class Scope>
class Manager {
 public:
  Manager() = default;
  ~Manager() {
    if (scope_ && !is_own_thread()) leave_to_thread();
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  void enter() {
    if (scope_) throw ExecutionError("__enter__: the block of this object was entered already");
    scope_ = std::make_unique<Scope>();
    thread_ = std::this_thread::get_id();
  }
  /// Null when the block was left before.
  std::unique_ptr<Scope> leave() {
    if (scope_ && !is_own_thread()) {
      leave_to_thread();
      throw ExecutionError("__exit__: another thread has entered this block, and should leave it");
    }
    return std::move(scope_);
  }
  const Scope& scope(const char* who) const {
    if (!scope_) throw ExecutionError(cat(who, ": this is known inside of the block only"));
    check_thread(who);
    return *scope_;
  }

 private:
  /// The thread that entered may be in its block still: nothing of its own may be touched.
  void leave_to_thread() noexcept {
    Scope* const scope = scope_.release();
    if constexpr (requires { scope->abandon(); }) {
      scope->abandon();
      delete scope;
    }
  }
  bool is_own_thread() const { return thread_ == std::this_thread::get_id(); }
  void check_thread(const char* who) const {
    if (scope_ && !is_own_thread()) {
      throw ExecutionError(cat(who, ": another thread has entered this block, and must leave it"));
    }
  }

  std::unique_ptr<Scope> scope_;
  std::thread::id thread_;
};

void leave_fused(Manager<Fused>& manager) {
  const auto scope = manager.leave();
  const nb::gil_scoped_release released;
  if (scope) scope->close();
}

void bind_report(Module& m) {
  Class<GroupReport>(m, "FusedGroup", "What one fused group did.")
      .def_ro("ops", &GroupReport::ops, "Names of the operations in the order of their recording.")
      .def_prop_ro(
          "shape", [](const GroupReport& g) { return to_tuple(g.shape); }, "Iteration shape.")
      .def_ro("inputs", &GroupReport::inputs, "Arrays read.")
      .def_ro("outputs", &GroupReport::outputs, "Arrays written.")
      .def_ro("unfused_bytes", &GroupReport::unfused_bytes,
              "Bytes moved if each operation read its arguments and wrote its result.")
      .def_ro("fused_bytes", &GroupReport::fused_bytes, "Bytes that the group moved.")
      .def_ro("reason", &GroupReport::reason, "Why the group ended where it did.");
}

}  // namespace

void bind_fusion(Module& m) {
  Class<Manager<Fused>>(
      m, "fused",
      "Context manager: elementwise operations, casts and trailing reductions inside are recorded "
      "and run as few passes over memory when the block ends or a value is needed. Values nobody "
      "holds by then are never written. Memory shared with other libraries must not be written by "
      "them inside the block.")
      .def(nb::init<>())
      .def("__enter__", [](Manager<Fused>& self) { self.enter(); })
      .def(
          "__exit__", [](Manager<Fused>& self, nb::args) { leave_fused(self); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
  Class<Manager<jit::Reports>>(m, "_FusionReports",
                               "Context manager that collects what groups report.")
      .def(nb::init<>())
      .def("__enter__", [](Manager<jit::Reports>& self) { self.enter(); })
      .def(
          "__exit__", [](Manager<jit::Reports>& self, nb::args) { self.leave(); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def_prop_ro("groups",
                   [](const Manager<jit::Reports>& self) { return self.scope("groups").groups(); })
      .def_prop_ro("notes",
                   [](const Manager<jit::Reports>& self) { return self.scope("notes").notes(); });
  bind_report(m);
  m.def("_fusion_text", &to_text, "groups"_a, "The reports of groups as text.");
  m.def("set_kernel_fusion", &set_kernel_fusion, "on"_a,
        "Off: fused scopes run op by op through the same engine.");
  m.def("kernel_fusion", &kernel_fusion, "Whether fused scopes fuse.");
}

}  // namespace cuop::python
