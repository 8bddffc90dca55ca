// cuop.dist: plans, what they assume of the machine, reports, and profiles of all ranks (which
// users get from cuop/dist/profile.py).
#include <iomanip>
#include <sstream>

#include "binders.h"
#include "cuop/backend/current_device.h"
#include "cuop/core/json.h"
#include "cuop/core/text.h"
#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/exec/calibration.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/exec/rank_profile.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/dist/plan/overlap.h"
#include "cuop/dist/plan/pipeline_plan.h"
#include "cuop/dist/plan/redistribute_plan.h"
#include "dist_arguments.h"

namespace cuop::python {

namespace {

using dist::Candidate;
using dist::Machine;
using dist::Measured;
using dist::OperationCost;
using dist::Plan;
using dist::PlanStep;
using dist::RankProfile;
using dist::Report;
using dist::Sharding;

/// The last one that cuop/cli/machine_file.py knows.
constexpr int kMachineFileVersion = 9;

/// What `cuop plan --machine` reads.
std::string json_of(const Machine& machine) {
  std::ostringstream out;
  out << std::setprecision(17);
  JsonWriter json(out);
  json.open('{').members("version", kMachineFileVersion);
  for (const dist::MachineFigure& figure : dist::kMachineFigures) {
    json.members(figure.name, machine.*figure.member);
  }
  if (machine.ranks_per_host > 0) json.members("ranks_per_host", machine.ranks_per_host);
  json.members("memory", machine.memory).close();
  return out.str();
}

void bind_machine(Module& m) {
  Class<Machine> bound(m, "Machine",
                       "The figures that planners reckon with, of one rank: float32 flops a "
                       "second, bytes a second to memory and over a link, seconds of latency and "
                       "for each message, bytes that may be used.");
  for (const dist::MachineFigure& figure : dist::kMachineFigures) {
    bound.def_rw(figure.name, figure.member, figure.what);
  }
  bound.def(nb::init<>())
      .def("__copy__", [](const Machine& self) { return self; })
      .def_static("local", &dist::local_machine, "Figures of this process.")
      .def_static(
          "of_device",
          [](const OptionalDevice& device) {
            return dist::rank_machine(device_or_current(device), true);
          },
          "device"_a = nb::none(), Released(),
          "What is assumed of a rank whose tensors are on the device (default: the current one): "
          "of a GPU by its clocks and by a copy to the next one.")
      .def_static(
          "figures",
          [] {
            nb::dict ranges;
            for (const auto& figure : dist::kMachineFigures) {
              ranges[figure.name] = dist::name(figure.range);
            }
            return ranges;
          },
          "Names of the figures beside `ranks_per_host` and `memory`, and what each may be.")
      .def_rw("ranks_per_host", &Machine::ranks_per_host,
              "So many ranks in a row share a host, and what goes to others takes the network; 0: "
              "all ranks share one, or all links are alike.")
      .def_rw("memory", &Machine::memory, "Bytes that one rank may use.")
      .def("to_json", &json_of,
           "All figures as `cuop plan --machine` reads them from a file, with the version of its "
           "form.")
      .def("__repr__", [](const Machine& machine) {
        return cat("Machine(", machine.flops / 1e9, " GFLOP/s, memory ",
                   machine.memory_bandwidth / 1e9, " GB/s, link ", machine.link_bandwidth / 1e9,
                   " GB/s, latency ", machine.latency * 1e6, " us",
                   machine.ranks_per_host > 0
                       ? cat("; hosts of ", machine.ranks_per_host, " ranks, network ",
                             machine.network_bandwidth / 1e9, " GB/s, latency ",
                             machine.network_latency * 1e6, " us")
                       : "",
                   ")");
      });
}

void bind_plan_class(Module& m) {
  Class<PlanStep>(m, "PlanStep", "One step of a plan.")
      .def_prop_ro(
          "kind", [](const PlanStep& step) { return name(step.kind); }, "move, compute or combine.")
      .def_ro("text", &PlanStep::text)
      .def_ro("bytes", &PlanStep::bytes, "Over all links between ranks.")
      .def_ro("rank_bytes", &PlanStep::rank_bytes, "Sent or received by the busiest rank.")
      .def_ro("network_bytes", &PlanStep::network_bytes,
              "Sent to or received from other hosts by the rank that has most of that.")
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
  Class<Measured>(m, "Measured", "What a call has cost on one rank: the host's seconds, and bytes.")
      .def_ro("rank", &Measured::rank, "That measured.")
      .def_ro("is_on_gpu", &Measured::is_on_gpu,
              "The host starts the work and goes on before it is done.")
      .def_ro("seconds", &Measured::seconds, "Of the whole call: agreement, planning and work.")
      .def_ro("work_seconds", &Measured::work_seconds, "Of following the plan.")
      .def_ro("move_seconds", &Measured::move_seconds,
              "Of the work in calls to other ranks, waits for them included.")
      .def_prop_ro("compute_seconds", &Measured::compute_seconds,
                   "The rest of the work: arithmetic, and copies on this rank.")
      .def_ro("gpu_seconds", &Measured::gpu_seconds,
              "What streams needed for the call; 0 unless a trace was recorded.")
      .def_ro("bytes_sent", &Measured::bytes_sent, "By this rank, of the work alone.");
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
      .def_prop_ro(
          "seconds", [](const Plan& plan) { return plan.seconds(); }, "Predicted, of the steps.")
      .def_ro("call_seconds", &Plan::call_seconds,
              "Predicted, of the call beside its steps: 0 where it was not measured.")
      .def_prop_ro(
          "floor", [](const Plan& plan) { return plan.floor.seconds; },
          "Seconds below which nothing on these ranks can be.")
      .def_prop_ro(
          "floor_flops", [](const Plan& plan) { return plan.floor.flops; },
          "The least flops, of all ranks together.")
      .def_prop_ro(
          "floor_memory_bytes", [](const Plan& plan) { return plan.floor.memory_bytes; },
          "The least that all ranks together read from memory and write to it.")
      .def_prop_ro(
          "floor_link_bytes", [](const Plan& plan) { return plan.floor.link_bytes; },
          "The least that the rank which most have to reach sends or receives.")
      .def_ro("measured", &Plan::measured,
              "What following it has cost; None unless it is a report's.")
      .def("explain", &Plan::explain,
           "Steps, bytes, memory, predicted time, and the candidates with theirs; of a report's "
           "plan also what was measured.")
      .def("to_json", &Plan::to_json)
      .def("__repr__", &Plan::to_string);
  Class<Report>(m, "Report", "What a distributed call of this rank did.")
      .def_ro("plan", &Report::plan, "The plan that was followed, with what was measured.")
      .def_ro("bytes_sent", &Report::bytes_sent, "By this rank.")
      .def_ro("seconds", &Report::seconds, "Wall time on this rank.")
      .def("__repr__", &Report::to_string);
}

Record record_of_cost(const OperationCost& cost) {
  nb::dict links;
  for (const auto& [ends, bytes] : cost.links) {
    links[nb::make_tuple(ends.first, ends.second)] = bytes;
  }
  return record_of("category", cost.category, "name", cost.name, "calls", cost.calls, "seconds",
                   cost.seconds, "slowest_rank", cost.slowest, "least_seconds", cost.least_seconds,
                   "move_seconds", cost.move_seconds, "predicted_seconds", cost.predicted,
                   "floor_seconds", cost.floor, "share_of_floor", cost.share_of_floor(), "flops",
                   cost.flops, "bytes", cost.bytes, "links", links);
}

Record record_of_profile(const RankProfile& profile) {
  return record_of("rank", profile.rank, "events", profile.events.size(), "left_out",
                   profile.left_out, "clock_offset_seconds",
                   static_cast<double>(profile.clock.offset_ns) * 1e-9, "clock_error_seconds",
                   static_cast<double>(profile.clock.error_ns) * 1e-9);
}

void bind_profiles(Module& m) {
  m.def(
      "_gather_profiles",
      [](const dist::CommunicatorPtr& comm, int64_t most_events) -> nb::object {
        std::vector<RankProfile> profiles;
        std::vector<OperationCost> costs;
        std::string trace;
        {
          const nb::gil_scoped_release released;
          dist::ProfileLimits limits;
          limits.events = most_events;
          profiles = dist::gather_profiles(comm, 0, limits);
          costs = dist::operation_costs(profiles);
          if (comm->rank() == 0) trace = dist::to_chrome_json(profiles);
        }
        if (comm->rank() != 0) return nb::none();
        return nb::make_tuple(records_of(costs, record_of_cost),
                              records_of(profiles, record_of_profile), trace);
      },
      "comm"_a, "most_events"_a);
}

}  // namespace

void bind_dist_plan(Module& m) {
  bind_machine(m);
  bind_plan_class(m);
  bind_profiles(m);
  m.def(
      "last_report", [] { return dist::last_report(); },
      "The report of the calling thread's last distributed call.");
  m.def("recorded_reports", &dist::recorded_reports, Released(),
        "The reports of the distributed calls of this process's ranks that are recorded so far, in "
        "the order in which they began: those inside `cuop.profile()`. Waits for GPUs.");
  m.def(
      "calibrate",
      [](const dist::CommunicatorPtr& comm, bool again) {
        return dist::calibrate(comm, backend::current_device(), again);
      },
      "comm"_a, nb::kw_only(), "again"_a = false, Released(),
      "The figures of these ranks, by which their calls are planned from now on: what ranks like "
      "them measured before, or what they measure now (about a second), kept for the next "
      "process among the tuner's choices. The slowest rank counts. Calls that take longer than "
      "20 ms do so by themselves. `again` measures in any case. Collective.");
  m.def(
      "overlapped_seconds", &dist::overlapped_seconds, "compute"_a, "moves"_a, "chunks"_a,
      "each"_a = 0.0,
      "The time of chunks whose moves overlap with their arithmetic, `compute` and `moves` in all "
      "and `each` for a chunk by itself: max + min / chunks + chunks * each.");
  m.def("best_chunks", &dist::best_chunks, "compute"_a, "moves"_a, "each"_a, nb::kw_only(),
        "most"_a = 64, "The number of chunks of the least such time, from 1 to `most`.");
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
  m.def(
      "plan_redistribute",
      [](Arg<Shape> shape, const Sharding& from, const Sharding& to, Arg<DType> dtype,
         std::optional<Machine> machine, const std::optional<dist::Wire>& wire) {
        return plan_redistribute({"x", *shape, *dtype, from}, to, machine.value_or(Machine{}),
                                 wire.value_or(dist::Wire{}));
      },
      "shape"_a, "from_"_a, "to"_a, "dtype"_a = "float32", "machine"_a = nb::none(),
      "wire"_a = nb::none(),
      "What `DistTensor.redistribute` of a tensor of this shape moves, on any pretended number of "
      "ranks.");
}

}  // namespace cuop::python
