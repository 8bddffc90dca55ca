// cuop.dist: plans, what they assume of the machine, and reports.
#include "binders.h"
#include "cuop/backend/current_device.h"
#include "cuop/core/text.h"
#include "cuop/dist/exec/calibration.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "dist_arguments.h"

namespace cuop::python {

namespace {

using dist::Candidate;
using dist::Machine;
using dist::Plan;
using dist::PlanStep;
using dist::Report;
using dist::Sharding;

void bind_machine(Module& m) {
  Class<Machine>(m, "Machine",
                 "The figures that planners reckon with, of one rank: float32 flops a second, "
                 "bytes a second to memory and over a link, seconds of latency and for each "
                 "message, bytes that may be used.")
      .def(nb::init<>())
      .def_static("local", &dist::local_machine, "Figures of this process.")
      .def_rw("flops", &Machine::flops)
      .def_rw("half_speed", &Machine::half_speed,
              "Flops of the 16-bit floats in parts of those of float32.")
      .def_rw("double_speed", &Machine::double_speed, "Flops of float64 in the same parts.")
      .def_rw("memory_bandwidth", &Machine::memory_bandwidth)
      .def_rw("link_bandwidth", &Machine::link_bandwidth)
      .def_rw("latency", &Machine::latency)
      .def_rw("message_overhead", &Machine::message_overhead)
      .def_rw("memory", &Machine::memory)
      .def("__repr__", [](const Machine& machine) {
        return cat("Machine(", machine.flops / 1e9, " GFLOP/s, memory ",
                   machine.memory_bandwidth / 1e9, " GB/s, link ", machine.link_bandwidth / 1e9,
                   " GB/s, latency ", machine.latency * 1e6, " us)");
      });
}

void bind_plan_class(Module& m) {
  Class<PlanStep>(m, "PlanStep", "One step of a plan.")
      .def_prop_ro(
          "kind", [](const PlanStep& step) { return name(step.kind); }, "move, compute or combine.")
      .def_ro("text", &PlanStep::text)
      .def_ro("bytes", &PlanStep::bytes, "Over all links between ranks.")
      .def_ro("rank_bytes", &PlanStep::rank_bytes, "Sent or received by the busiest rank.")
      .def_ro("messages", &PlanStep::messages, "Of the rank that has most.")
      .def_ro("flops", &PlanStep::flops, "Of the busiest rank.")
      .def_ro("seconds", &PlanStep::seconds, "Predicted.");
  Class<Candidate>(m, "Candidate", "A strategy that was weighed, chosen or not.")
      .def_ro("strategy", &Candidate::strategy)
      .def_ro("detail", &Candidate::detail)
      .def_ro("bytes", &Candidate::bytes)
      .def_ro("memory", &Candidate::memory)
      .def_ro("seconds", &Candidate::seconds)
      .def_ro("is_feasible", &Candidate::is_feasible);
  Class<Plan>(m, "Plan",
              "What will be moved and computed, where, at which predicted cost, and what else "
              "was considered.")
      .def_ro("op", &Plan::op)
      .def_ro("strategy", &Plan::strategy)
      .def_ro("detail", &Plan::detail)
      .def_ro("ranks", &Plan::ranks)
      .def_ro("steps", &Plan::steps)
      .def_ro("settings", &Plan::settings)
      .def_ro("memory_per_rank", &Plan::memory_per_rank, "Bytes of the rank that needs most.")
      .def_ro("candidates", &Plan::candidates)
      .def_prop_ro("bytes", &Plan::bytes, "Moved between ranks.")
      .def_prop_ro("flops", &Plan::flops, "Of the busiest rank.")
      .def_prop_ro("seconds", &Plan::seconds, "Predicted.")
      .def("explain", &Plan::explain,
           "Steps, bytes, memory, predicted time, and the candidates with theirs.")
      .def("to_json", &Plan::to_json)
      .def("__repr__", &Plan::to_string);
  Class<Report>(m, "Report", "What a distributed call of this rank did.")
      .def_ro("plan", &Report::plan, "The plan that was followed.")
      .def_ro("bytes_sent", &Report::bytes_sent, "By this rank.")
      .def_ro("seconds", &Report::seconds, "Wall time on this rank.")
      .def("__repr__", &Report::to_string);
}

}  // namespace

void bind_dist_plan(Module& m) {
  bind_machine(m);
  bind_plan_class(m);
  m.def(
      "last_report", [] { return dist::last_report(); },
      "The report of the calling thread's last distributed call.");
  m.def(
      "calibrate",
      [](const dist::CommunicatorPtr& comm, bool again) {
        return dist::calibrate(comm, backend::current_device(), again);
      },
      "comm"_a, nb::kw_only(), "again"_a = false, Released(),
      "The figures of these ranks, by which their calls are planned from now on: what ranks like "
      "them measured before, or what they measure now (some tenths of a second), kept for the next "
      "process among the tuner's choices. The slowest rank counts. Calls that take longer than "
      "20 ms do so by themselves. `again` measures in any case. Collective.");
  m.def(
      "plan_matmul",
      [](int64_t rows, int64_t columns, int64_t inner, const Sharding& a, const Sharding& b,
         std::optional<Sharding> output, Arg<DType> dtype, std::optional<Machine> machine,
         const std::string& strategy) {
        return plan_matmul({rows, columns, inner, *dtype, a, b, std::move(output)},
                           machine.value_or(Machine{}), strategy);
      },
      "m"_a, "n"_a, "k"_a, "a"_a, "b"_a, "output"_a = nb::none(), "dtype"_a = "float32",
      "machine"_a = nb::none(), "strategy"_a = "",
      "Plans C [m, n] = A [m, k] @ B [k, n] for operands that lie as the shardings `a` and `b` "
      "say, "
      "on any pretended number of ranks. MemoryError when nothing fits machine.memory.");
}

}  // namespace cuop::python
