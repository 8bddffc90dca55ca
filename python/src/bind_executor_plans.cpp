// cuop.executor: plans on paper, for machines that one need not have.
#include <nanobind/stl/shared_ptr.h>

#include <cmath>
#include <variant>

#include "binders.h"
#include "cuop/backend/current_device.h"
#include "cuop/core/byte_size.h"
#include "cuop/dist/comm/rank_limit.h"
#include "cuop/dist/exec/planned.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/dist/plan/map_plan.h"
#include "cuop/executor/grid_fft.h"
#include "cuop/executor/line_fft.h"
#include "cuop/executor/passes.h"
#include "cuop/executor/sweeps.h"
#include "executor_arguments.h"

namespace cuop::python {

using executor::CallPlan;
using executor::Header;
using executor::TileMachine;
using executor::TileOperation;
using executor::TilePass;
using executor::TilePlan;

/// What tiles are planned for.
struct PlannedFor {
  std::variant<TileMachine, RankDevices> devices;
};
template <>
struct ArgStub<PlannedFor> : StubName<"TileMachine | RankDevices"> {};

PlannedFor convert_argument(nb::handle object, TypeTag<PlannedFor>) {
  if (nb::isinstance<TileMachine>(object)) return {nb::cast<TileMachine>(object)};
  if (nb::isinstance<RankDevices>(object)) return {nb::cast<RankDevices>(object)};
  throw DTypeError(
      cat("machine: needed is a TileMachine or RankDevices, given ", class_name(object)));
}

namespace {

/// Bytes a second of a link, as here where they are not given.
double bandwidth(const std::optional<double>& given, const char* name, double here) {
  if (!given) return here;
  if (*given > 0 && std::isfinite(*given)) return *given;
  throw ExecutionError(
      cat("TileMachine: ", name, " is ", *given, " bytes a second; it must be a number above 0"));
}

TileMachine tile_machine(int64_t devices, int64_t memory,
                         const std::optional<dist::Machine>& device,
                         const std::optional<double>& upload, const std::optional<double>& download,
                         const std::optional<double>& duplex, double between,
                         const std::optional<double>& stretch) {
  const int count = dist::checked_ranks(devices, "TileMachine", "devices");
  if (memory < 1) {
    throw ExecutionError(
        cat("TileMachine: a limit of ", memory, " bytes a device was given; it must be above 0"));
  }
  if (duplex && !(*duplex >= 0 && *duplex <= 1)) {
    throw ExecutionError(cat("TileMachine: duplex is ", *duplex, "; it must be from 0 to 1"));
  }
  if (!(between >= 0 && std::isfinite(between))) {
    throw ExecutionError(
        cat("TileMachine: between is ", between, " bytes a second; it must be a number from 0"));
  }
  if (stretch && !(*stretch >= 0 && std::isfinite(*stretch))) {
    throw ExecutionError(
        cat("TileMachine: stretch is ", *stretch, " seconds; it must be a number from 0"));
  }
  const Device here = backend::current_device();
  const bool is_known = upload && download && duplex;
  const dist::HostLink link = is_known ? dist::HostLink{} : dist::host_link(here);
  return {count,
          memory,
          bandwidth(upload, "upload", link.upload),
          bandwidth(download, "download", link.download),
          duplex.value_or(link.duplex),
          stretch.value_or(dist::stretch_seconds(here)),
          between,
          device ? *device : dist::rank_machine(here, true),
          device ? WorkFigures{} : work_figures(here)};
}

executor::PlanPass on(const PlannedFor& machine) {
  if (const auto* ranks = std::get_if<RankDevices>(&machine.devices)) {
    return executor::on_ranks(ranks->comm, ranks->options);
  }
  return [machine = std::get<TileMachine>(machine.devices)](const TileOperation& operation,
                                                            const std::vector<Header>& inputs) {
    return executor::plan_tiles(operation.describe(inputs), machine);
  };
}

/// Inputs of the operation: errors unless they are, and its result fits some memory.
std::vector<Header> inputs_of(const TileOperation& operation, const Shapes& shapes,
                              const DTypes& dtypes) {
  std::vector<Header> inputs = headers_of(shapes, dtypes);
  if (inputs.empty() || inputs.size() > operation.names.size()) {
    throw ExecutionError(cat(operation.text, ": ", inputs.size(),
                             " shapes were given, its inputs are ", join(operation.names)));
  }
  check_bytes(operation.describe(inputs).output);
  return inputs;
}

Header header_of(const Arg<Shape>& shape, const Arg<DType>& dtype) {
  Header header{*shape, *dtype};
  check_bytes(header);
  return header;
}

void bind_plan_values(Module& m) {
  Class<TileMachine>(
      m, "TileMachine",
      "Devices to plan tiles for: so many alike, `memory` bytes that may be used on "
      "each, its figures, bytes a second from the host to one (upload) and back, and "
      "how much of the shorter way the other one hides (duplex, 0 to 1), and seconds that a row of "
      "the host's memory takes beside its bytes where it lies apart (stretch). What is not given "
      "is "
      "as on the current device. With bytes a second from one to another (between) those that read "
      "the same bring it from the host once and share it.")
      .def_static("of", &tile_machine, "devices"_a = 1, nb::kw_only(), "memory"_a,
                  "device"_a = nb::none(), "upload"_a = nb::none(), "download"_a = nb::none(),
                  "duplex"_a = nb::none(), "between"_a = 0.0, "stretch"_a = nb::none(), Released(),
                  "ExecutionError for what no machine has.")
      .def_ro("devices", &TileMachine::devices)
      .def_ro("memory", &TileMachine::memory)
      .def_ro("upload", &TileMachine::upload)
      .def_ro("download", &TileMachine::download)
      .def_ro("duplex", &TileMachine::duplex)
      .def_ro("between", &TileMachine::between)
      .def_ro("stretch", &TileMachine::stretch)
      .def_ro("device", &TileMachine::device)
      .def("__repr__", [](const TileMachine& machine) {
        return cat("TileMachine(", machine.devices, " devices, ", format_bytes(machine.memory),
                   " on each, upload ", machine.upload / 1e9, " GB/s, download ",
                   machine.download / 1e9, " GB/s)");
      });
  Class<RankDevices>(m, "RankDevices",
                     "The devices of ranks, to plan for instead of a TileMachine: collective then.")
      .def_static(
          "of",
          [](const dist::CommunicatorPtr& comm, Limit memory_limit, double safety_margin) {
            return RankDevices{comm, tiled_options(memory_limit, safety_margin)};
          },
          "comm"_a, nb::kw_only(), "memory_limit"_a = nb::none(), "safety_margin"_a = 0.2);
  Class<TilePass>(m, "TilePass", "Passes of one kind over arrays of the host.")
      .def_ro("text", &TilePass::text)
      .def_ro("times", &TilePass::times)
      .def_ro("plan", &TilePass::plan);
  Class<CallPlan>(m, "CallPlan", "How a call goes that may need several passes.")
      .def_ro("op", &CallPlan::op)
      .def_ro("way", &CallPlan::way, "\"at once\", \"four steps\", \"chirp\", ...")
      .def_ro("passes", &CallPlan::passes,
              "[TilePass]; none where the grid fits and the ranks sweep it as it is.")
      .def_ro("limit", &CallPlan::limit, "Bytes that a device may use.")
      .def_ro("smallest", &CallPlan::smallest, "With less there is no way.")
      .def_prop_ro("feasible", &CallPlan::is_feasible)
      .def_prop_ro("memory", &CallPlan::memory, "Bytes on a device, at most.")
      .def_prop_ro("seconds", &CallPlan::seconds, "Predicted.")
      .def_ro("floor", &CallPlan::floor, "No plan on these devices takes less.")
      .def_ro("data_bytes", &CallPlan::data_bytes, "Of all inputs and the result.")
      .def_ro("scratch", &CallPlan::scratch,
              "Bytes on the host that passes keep beside inputs and result.")
      .def_ro("kept_scratch", &CallPlan::kept_scratch,
              "The same where a later run may go on with them.");
}

void bind_plans(Module& m) {
  m.def(
      "plan_ranks",
      [](const TileOperation& operation, const Shapes& shapes, const DTypes& dtypes, int64_t ranks,
         bool in_parts, const std::optional<dist::Machine>& machine, const std::string& strategy) {
        const std::vector<Header> inputs = inputs_of(operation, shapes, dtypes);
        const dist::Mesh mesh = dist::Mesh::line(dist::checked_ranks(ranks, "plan_ranks"));
        if (!operation.over_ranks) {
          throw ExecutionError(cat("plan_ranks: ", operation.text, " is only a part of a call"));
        }
        const dist::Operation call = operation.over_ranks();
        const auto rows = [&](const Header& input) {
          return input.shape.ndim() == 0
                     ? dist::Sharding::replicated(mesh)
                     : dist::split_over_ranks(mesh.size(), input.shape.ndim(), 0);
        };
        const dist::Sharding root = dist::Sharding::on_rank(mesh, 0);
        std::vector<dist::Placement> lying = dist::placements_on(call.names, inputs, root);
        for (size_t i = 0; i < lying.size() && in_parts; ++i) lying[i].sharding = rows(inputs[i]);
        const std::optional<dist::Sharding> wanted = in_parts ? std::nullopt : std::optional(root);
        const dist::Machine figures =
            machine ? *machine : dist::rank_machine(device_or_current(std::nullopt), true);
        return dist::planned(call, {strategy, wanted, std::nullopt}, lying, wanted, figures)->plan;
      },
      "operation"_a, "shapes"_a, "dtypes"_a, nb::kw_only(), "ranks"_a = 4, "in_parts"_a = false,
      "machine"_a = nb::none(), "strategy"_a = "", Released(),
      "The plan of the operation over so many ranks, of arrays that fit: from rank 0 to rank 0, or "
      "of arrays in rows over the ranks (`in_parts`), whose result stays where it is made; on "
      "ranks as `machine`, None: as this process's device (Machine.of_device). "
      "MemoryError when nothing fits machine.memory.");
  m.def(
      "plan_tiles",
      [](const TileOperation& operation, const Shapes& shapes, const DTypes& dtypes,
         const TileMachine& machine) {
        const std::vector<Header> inputs = inputs_of(operation, shapes, dtypes);
        return executor::plan_tiles(operation.describe(inputs), machine);
      },
      "operation"_a, "shapes"_a, "dtypes"_a, "machine"_a, Released(),
      "The plan of the operation in tiles; `feasible` is False where the memory does not suffice.");
  m.def(
      "result_of",
      [](const TileOperation& operation, const Shapes& shapes, const DTypes& dtypes) {
        const Header result = operation.describe(inputs_of(operation, shapes, dtypes)).output;
        return std::pair(to_tuple(result.shape), PyDType{result.dtype});
      },
      "operation"_a, "shapes"_a, "dtypes"_a,
      "Shape and dtype of the result; the errors of arrays that do not fit.");
  m.def(
      "plan_call",
      [](const TileOperation& operation, const Shapes& shapes, const DTypes& dtypes,
         Arg<PlannedFor> machine) {
        return executor::at_once(on(machine)(operation, inputs_of(operation, shapes, dtypes)));
      },
      "operation"_a, "shapes"_a, "dtypes"_a, "machine"_a, Released(),
      "The plan of the operation in tiles, as that of a call of one pass.");
  m.def(
      "plan_fft_line",
      [](Arg<Shape> shape, Arg<DType> dtype, Limit n, int64_t dim, std::string_view norm,
         std::string_view kind, Arg<PlannedFor> machine) {
        const Header x = header_of(shape, dtype);
        return executor::fft_line_plan(line_batch(n, dim, norm, kind), x, on(machine));
      },
      "shape"_a, "dtype"_a, "n"_a = nb::none(), "dim"_a = -1, "norm"_a = "backward",
      "kind"_a = "fft", nb::kw_only(), "machine"_a, Released(),
      "The passes of 1-D transforms (fft_line): at once, or of one line in four steps or by a "
      "chirp.");
  m.def(
      "plan_fft2d_grid",
      [](Arg<Shape> shape, Arg<DType> dtype, Arg<PlannedFor> machine) {
        return executor::fft2d_plan(header_of(shape, dtype), FftNorm::kBackward, on(machine));
      },
      "shape"_a, "dtype"_a, "machine"_a, Released(),
      "The passes of a 2-D transform of one grid: at once, or rows and then columns.");
  m.def(
      "plan_stencil_2d",
      [](const Shapes& shapes, const DTypes& dtypes, std::string_view boundary, int64_t iterations,
         Arg<PlannedFor> machine) {
        const std::vector<Header> inputs = headers_of(shapes, dtypes);
        const Boundary sides = parse_boundary(boundary, "stencil_2d");
        return executor::stencil_plan(sides, iterations, inputs, on(machine));
      },
      "shapes"_a, "dtypes"_a, "boundary"_a, "iterations"_a, "machine"_a, Released(),
      "The passes of a kernel applied so often to a grid; none for one that fits.");
  m.def(
      "plan_jacobi_2d",
      [](const Shapes& shapes, const DTypes& dtypes, double dx, std::string_view boundary,
         int64_t iterations, Arg<PlannedFor> machine) {
        const std::vector<Header> inputs = headers_of(shapes, dtypes);
        const Boundary sides = parse_boundary(boundary, "jacobi_2d");
        return executor::jacobi_plan({dx, sides, iterations, 0.0}, inputs, on(machine));
      },
      "shapes"_a, "dtypes"_a, "dx"_a, "boundary"_a, "iterations"_a, "machine"_a, Released(),
      "The passes of so many sweeps of Jacobi's method over a grid; none for one that fits.");
  m.def(
      "whole_grid_bytes",
      [](Arg<Shape> shape, Arg<DType> dtype) {
        return executor::whole_grid_bytes({*shape, *dtype});
      },
      "shape"_a, "dtype"_a,
      "Bytes of a device with which a grid is swept as it is and not in passes.");
}

}  // namespace

dist::FftBatch line_batch(Limit n, int64_t dim, std::string_view norm, std::string_view kind) {
  for (const auto& [name, each] : kLineTransforms) {
    if (kind == name) return {each, n, dim, parse_fft_norm(norm, name)};
  }
  throw ExecutionError(cat("fft_line: kind is \"", kind,
                           "\"; possible are \"fft\", \"ifft\", \"rfft\" and \"irfft\""));
}

void bind_executor_plans(Module& m) {
  bind_plan_values(m);
  bind_plans(m);
}

}  // namespace cuop::python
