// cuop.executor: work on arrays that may be larger than memory.
#include "binders.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/plan/plan.h"
#include "cuop/executor/operations.h"
#include "cuop/executor/passes.h"
#include "cuop/executor/sweeps.h"
#include "cuop/executor/tiled_call.h"
#include "dist_arguments.h"
#include "einsum_arguments.h"
#include "executor_arguments.h"

namespace cuop::python {

namespace {

using dist::CommunicatorPtr;
using executor::DeviceStatus;
using executor::MemoryLimits;
using executor::TileCandidate;
using executor::TiledOptions;
using executor::TiledReport;
using executor::TileOperation;
using executor::TilePlan;

/// Tensors of rank 0, undefined for None, in the first step of the call.
std::vector<Tensor> given_list(const CommunicatorPtr& comm, const std::string& call,
                               const nb::sequence& inputs) {
  std::vector<Tensor> tensors;
  for (nb::handle input : inputs) {
    tensors.push_back(input.is_none() ? Tensor()
                                      : named_argument<Unplaced>(input, "inputs").tensor);
  }
  const nb::gil_scoped_release released;
  return dist::make_together(*comm, call, [&] { return tensors; });
}

/// Pairs of lowest and highest indices.
std::vector<Box> boxes_of(const nb::sequence& pairs) {
  std::vector<Box> boxes;
  for (nb::handle pair : pairs) {
    if (nb::len(pair) != 2) throw ExecutionError("run: done: pairs (low, high) are needed");
    Box box{named_argument<Shape>(pair[0], "done"), named_argument<Shape>(pair[1], "done")};
    if (box.low.ndim() != box.high.ndim()) {
      throw ExecutionError("run: done: low and high must have as many indices");
    }
    boxes.push_back(box);
  }
  return boxes;
}

void bind_values(Module& m) {
  Class<DeviceStatus>(m, "DeviceStatus", "The memory of one rank's device, in bytes.")
      .def_ro("rank", &DeviceStatus::rank)
      .def_prop_ro("device", [](const DeviceStatus& status) { return PyDevice{status.device}; })
      .def_ro("name", &DeviceStatus::name)
      .def_ro("total", &DeviceStatus::total)
      .def_ro("free", &DeviceStatus::free, "Of the whole device, other processes' use included.")
      .def_ro("usable", &DeviceStatus::usable, "By this rank's work: limit and margin kept.");
  Class<TileCandidate>(m, "TileCandidate",
                       "A way in which devices might share the work, chosen or not.")
      .def_ro("strategy", &TileCandidate::strategy)
      .def_ro("detail", &TileCandidate::detail, "Of a grid its parts of each dimension, else \"\".")
      .def_ro("tiles", &TileCandidate::tiles, "Of a device.")
      .def_ro("steps", &TileCandidate::steps, "Of a tile.")
      .def_ro("memory", &TileCandidate::memory)
      .def_ro("smallest", &TileCandidate::smallest, "With less it cannot be.")
      .def_ro("seconds", &TileCandidate::seconds, "Predicted.")
      .def_ro("feasible", &TileCandidate::is_feasible);
  Class<TilePlan>(m, "TilePlan", "How an operation is cut into tiles. Bytes and seconds.")
      .def_ro("op", &TilePlan::op)
      .def_ro("strategy", &TilePlan::strategy,
              "How the devices share the work: \"one\", \"dim 0\", \"grid\", \"steps\".")
      .def_ro("detail", &TilePlan::detail, "Of a grid its parts of each dimension, else \"\".")
      .def_ro("cuts", &TilePlan::cuts, "Parts of each dimension of a device's share.")
      .def_ro("order", &TilePlan::order, "Dimensions from the outermost loop to the innermost.")
      .def_ro("steps", &TilePlan::steps, "Of a tile: parts of the range that is summed over.")
      .def_prop_ro(
          "shape", [](const TilePlan& plan) { return to_tuple(plan.result.shape); },
          "Of the result.")
      .def_prop_ro("dtype", [](const TilePlan& plan) { return PyDType{plan.result.dtype}; })
      .def_ro("memory", &TilePlan::memory, "On a device, at most.")
      .def_ro("limit", &TilePlan::limit, "That a device may use.")
      .def_ro("smallest", &TilePlan::smallest, "With less there is no plan.")
      .def_ro("feasible", &TilePlan::is_feasible)
      .def_ro("uploaded", &TilePlan::uploaded, "From the host to the device that gets most.")
      .def_ro(
          "shared", &TilePlan::shared,
          "To it from other devices, which bring what several read from the host for each other.")
      .def_ro("downloaded", &TilePlan::downloaded)
      .def_ro("data_bytes", &TilePlan::data_bytes, "Of all inputs and the result.")
      .def_ro("seconds", &TilePlan::seconds, "Predicted.")
      .def_ro("floor", &TilePlan::floor, "No plan on these devices takes less.")
      .def_ro("lengths", &TilePlan::lengths,
              "Of a device's share: its dimensions, then the range that is summed over.")
      .def_ro("busy", &TilePlan::busy, "Devices that have something to do.")
      .def_prop_ro("devices", &TilePlan::devices)
      .def_prop_ro("tiles", &TilePlan::tiles, "Of a device.")
      .def_ro("candidates", &TilePlan::candidates,
              "Ways in which the devices might share the work.")
      .def("explain", &TilePlan::explain,
           "Cuts, bytes, memory, predicted time and floor, and the candidates with theirs.")
      .def("to_json", &TilePlan::to_json)
      .def("__repr__", &TilePlan::to_string);
  Class<TiledReport>(m, "TiledReport", "What came of a call.")
      .def_ro("plan", &TiledReport::plan, "Of several passes that which takes most memory.")
      .def_prop_ro("device", [](const TiledReport& report) { return PyDevice{report.device}; })
      .def_ro("seconds", &TiledReport::seconds, "Measured.")
      .def_ro("peak", &TiledReport::peak, "Bytes on the device that had most at a time.")
      .def_ro("halvings", &TiledReport::halvings, "How often memory was short.")
      .def_ro("passes", &TiledReport::passes,
              "Over the host's memory; 0 where the ranks shared the arrays as they are.")
      .def_ro("predicted", &TiledReport::predicted, "Seconds, of all passes.")
      .def_ro("shared", &TiledReport::shared, "Bytes from other devices to that which got most.");
  Class<TileOperation>(m, "TileOperation", "An operation with its arguments, for any arrays.")
      .def_prop_ro("text", [](const TileOperation& operation) { return operation.text; });
}

void bind_operations(Module& m) {
  m.def(
      "matmul",
      [](const std::optional<dist::Wire>& wire) {
        return executor::matmul_tiles(wire.value_or(dist::Wire{}));
      },
      "wire"_a = nb::none(), "a [M, K] @ b [K, N]; `wire`: the form in which they reach GPUs.");
  m.def("batch_matmul", &executor::batch_matmul_tiles, "a [..., M, K] @ b [..., K, N] or [K, N].");
  m.def("add", &executor::add_tiles, "a + b with broadcasting.");
  m.def("transpose", &executor::transpose_tiles, "dim0"_a = 0, "dim1"_a = 1,
        "Two dimensions exchanged.");
  m.def(
      "einsum",
      [](const std::string& equation, nb::handle optimize) {
        return executor::einsum_tiles(equation, path_options(optimize, nb::none(), std::nullopt));
      },
      "equation"_a, "optimize"_a = "auto",
      nb::sig("def einsum(equation: str, optimize: object = 'auto') -> TileOperation"),
      "cuop.einsum.");
  m.def(
      "tensordot",
      [](nb::handle dims) {
        const TensordotAxes axes = tensordot_axes(dims, "dims");
        return executor::tensordot_tiles(
            {axes.count, axes.lists.of_a, axes.lists.of_b, axes.are_listed});
      },
      "dims"_a = 2, nb::sig("def tensordot(dims: object = 2) -> TileOperation"),
      "Over the last and first `dims` dimensions, or pairs of lists.");
  m.def(
      "conv",
      [](Arg<Shape> stride, Arg<Shape> padding, Arg<Shape> dilation, int64_t groups) {
        return executor::conv_tiles({*stride, *padding, *dilation, groups});
      },
      "stride"_a = 1, "padding"_a = 0, "dilation"_a = 1, "groups"_a = 1,
      "Inputs: [N, C, ...], [O, C / groups, ...] and, if there is one, a bias [O].");
  for (const auto& [name, kind] : kLineTransforms) {
    m.def(
        name,
        [name, kind](Limit n, int64_t dim, std::string_view norm) {
          return executor::fft_tiles({kind, n, dim, parse_fft_norm(norm, name)});
        },
        "n"_a = nb::none(), "dim"_a = -1, "norm"_a = "backward", "Transforms along `dim`.");
  }
  m.def(
      "fft2d",
      [](std::optional<Arg<Shape>> s, Arg<Shape> dim, std::string_view norm) {
        return executor::fft2d_tiles({converted(s), *dim, {parse_fft_norm(norm, "fft2d"), false}});
      },
      "s"_a = nb::none(), "dim"_a = nb::make_tuple(-2, -1), "norm"_a = "backward",
      "2-D transforms.");
  m.def(
      "stencil_pass",
      [](std::string_view boundary, int64_t sweeps) {
        return executor::stencil_tiles(parse_boundary(boundary, "stencil_pass"), sweeps);
      },
      "boundary"_a = "zero", "sweeps"_a = 1,
      "A kernel applied `sweeps` times to bands of rows in one pass. Inputs: grid, kernel.");
  m.def(
      "jacobi_pass",
      [](double dx, std::string_view boundary, int64_t sweeps, double tol) {
        const JacobiOptions options{dx, parse_boundary(boundary, "jacobi_pass"), sweeps, tol};
        return executor::jacobi_tiles(options, sweeps, nullptr);
      },
      "dx"_a = 1.0, "boundary"_a = "zero", "sweeps"_a = 1, "tol"_a = 0.0,
      "Sweeps of Jacobi's method over bands of rows in one pass. Inputs: grid, rhs. `tol` counts "
      "in "
      "plan_ranks alone: where it is above 0, norms are looked at.");
  for (const auto& [name, kind] : {std::pair{"sum", ReduceKind::kSum},
                                   {"mean", ReduceKind::kMean},
                                   {"max", ReduceKind::kMax},
                                   {"min", ReduceKind::kMin}}) {
    m.def(
        name,
        [name, kind](std::optional<Arg<Axes>> dim, bool keepdim, std::string_view mode) {
          return executor::reduce_tiles(reduce_options(kind, dim, keepdim, mode));
        },
        "dim"_a = nb::none(), "keepdim"_a = false, "mode"_a = "plain",
        "Over `dim` (None: all, (): each element alone).");
  }
}

void bind_calls(Module& m) {
  m.def(
      "run",
      [](const CommunicatorPtr& comm, const TileOperation& operation, const nb::sequence& inputs,
         Limit memory_limit, double safety_margin, int64_t least_tiles, std::optional<Tensor> out,
         const nb::object& on_progress, const nb::sequence& done, const nb::object& on_tile,
         const nb::object& log) {
        TiledOptions options = tiled_options(memory_limit, safety_margin, least_tiles, on_progress);
        options.done = boxes_of(done);
        if (!on_tile.is_none()) {
          options.on_tile = [held = shared_function(on_tile)](const Box& box) {
            call_at_work(*held, "the tiles of a call", std::vector(box.low.begin(), box.low.end()),
                         std::vector(box.high.begin(), box.high.end()));
          };
        }
        const std::vector<Tensor> tensors = given_list(comm, operation.text, inputs);
        options.log = pass_log(log);
        const nb::gil_scoped_release released;
        if (options.log && out)
          throw ExecutionError("run: a log has its own array, and out is given");
        return outcome(options.log ? executor::run_logged(comm, operation, tensors, options)
                                   : executor::run_tiled(comm, operation, tensors, options,
                                                         out.value_or(Tensor())),
                       options);
      },
      "comm"_a, "operation"_a, "inputs"_a, nb::kw_only(), "memory_limit"_a = nb::none(),
      "safety_margin"_a = 0.2, "least_tiles"_a = 1, "out"_a = nb::none(),
      "on_progress"_a = nb::none(), "done"_a = nb::tuple(), "on_tile"_a = nb::none(),
      "log"_a = nb::none(),
      nb::sig("def run(comm: cuop._core._dist.Communicator, operation: TileOperation, inputs: "
              "list[ArrayLike | None], *, memory_limit: int | None = None, "
              "safety_margin: float = 0.2, least_tiles: int = 1, out: cuop._core.Tensor | None = "
              "None, on_progress: "
              "object = None, done: list[tuple[ShapeLike, ShapeLike]] = ..., on_tile: object = "
              "None, log: object = None) -> tuple[cuop._core.Tensor | None, TiledReport]"),
      "The operation of arrays on rank 0's host (None elsewhere), made in tiles by all ranks: the "
      "result there, and what it did. `memory_limit`: bytes a device may use, beside what is free "
      "of it less the margin. on_progress(done, all) is called on rank 0. on_tile(low, high) is "
      "called where a tile has been made when it is in its place; `done` are those of an earlier "
      "call that `out` has already. Other processes may give an `out` of "
      "their own over the same memory, such as a file that all map. `log`: see fft_line. "
      "Collective.");
  m.def(
      "plan",
      [](const CommunicatorPtr& comm, const TileOperation& operation, const Shapes& shapes,
         const DTypes& dtypes, Limit memory_limit, double safety_margin) {
        return executor::plan_tiled(comm, operation, headers_of(shapes, dtypes),
                                    tiled_options(memory_limit, safety_margin));
      },
      "comm"_a, "operation"_a, "shapes"_a, "dtypes"_a, nb::kw_only(), "memory_limit"_a = nb::none(),
      "safety_margin"_a = 0.2, Released(),
      "The plan for arrays of these shapes and dtypes, the same on all ranks. Collective.");
  m.def(
      "scan_devices",
      [](const CommunicatorPtr& comm, Limit memory_limit, double safety_margin) {
        const MemoryLimits limits{safety_margin, memory_limit};
        dist::prepare_together(*comm, "scan_devices",
                               [&] { check_limits(limits, "scan_devices"); });
        return executor::scan_devices(*comm, limits);
      },
      "comm"_a, nb::kw_only(), "memory_limit"_a = nb::none(), "safety_margin"_a = 0.2, Released(),
      "The memory of every rank's device, in rank order; of a plain process that of all its GPUs. "
      "Collective.");
}

}  // namespace

void bind_executor(Module& m) {
  bind_values(m);
  bind_operations(m);
  bind_calls(m);
  bind_executor_plans(m);
  bind_executor_calls(m);
}

}  // namespace cuop::python
