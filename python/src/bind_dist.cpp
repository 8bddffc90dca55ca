// cuop.dist: meshes, shardings and distributed tensors.
#include "binders.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/pipelined.h"
#include "cuop/dist/comm/rank_limit.h"
#include "cuop/dist/exec/redistribute.h"
#include "dist_arguments.h"

namespace cuop::python {

namespace {

using dist::DistTensor;
using dist::Mesh;
using dist::Sharding;
using dist::Spec;
using dist::Wire;

/// Of None, the name of a mesh axis or several of them.
Spec::Axes to_axes(nb::handle entry) {
  if (entry.is_none()) return {};
  if (nb::isinstance<nb::str>(entry)) return {text_of(entry)};
  Raised why;
  const nb::object items = items_of(entry);
  if (!items.is_valid() && PyErr_Occurred() != nullptr) why = wrong_kind();
  bool are_names = items.is_valid();
  Spec::Axes names;
  for (size_t i = 0; are_names && i < nb::len(items); ++i) {
    const nb::object name = items[i];
    are_names = nb::isinstance<nb::str>(name);
    if (are_names) names.push_back(text_of(name));
  }
  if (are_names) return names;
  refuse<ShapeError>(cat("P: ", describe(entry),
                         " was given; needed is None, the name of a mesh axis or a tuple of names"),
                     why);
}

Spec to_spec(const nb::args& entries) {
  std::vector<Spec::Axes> dims;
  for (nb::handle entry : entries) dims.push_back(to_axes(entry));
  return Spec(std::move(dims));
}

using Interval = std::pair<int64_t, int64_t>;

std::vector<Interval> to_intervals(const Box& box) {
  std::vector<Interval> intervals;
  for (int axis = 0; axis < box.ndim(); ++axis)
    intervals.push_back({box.low[axis], box.high[axis]});
  return intervals;
}

void bind_mesh(Module& m) {
  Class<Mesh>(
      m, "Mesh",
      "Ranks in a grid with named axes, numbered in row-major order.\n\nMesh((2, 3), "
      "(\"r\", \"c\"), idle=1) is a grid of 7 ranks, the last of which holds nothing; "
      "ShapeError unless sizes are positive, names distinct, idle is 0 or more, and the ranks "
      "are at most 32768.")
      .def(
          "__init__",
          [](Mesh* self, Arg<Shape> shape, std::vector<std::string> names, int idle) {
            new (self) Mesh(*shape, std::move(names), idle);
          },
          "shape"_a, "names"_a, "idle"_a = 0)
      .def_static(
          "line", [](int64_t size, const std::string& name) { return Mesh(Dims{size}, {name}); },
          "size"_a, "name"_a = "r", "One axis over all ranks.")
      .def_prop_ro("size", &Mesh::size, "Number of ranks, idle ones too.")
      .def_prop_ro("idle", &Mesh::idle, "How many of the last ranks stand outside of the grid.")
      .def_prop_ro(
          "shape", [](const Mesh& mesh) { return to_tuple(mesh.shape()); },
          "Ranks along each axis.")
      .def_prop_ro("names", &Mesh::names, "Names of the axes.")
      .def(
          "coordinates",
          [](const Mesh& mesh, int rank) { return to_tuple(mesh.coordinates(rank)); }, "rank"_a,
          "Position of a rank in the grid; IndexError for one that is not in it.")
      .def(
          "__eq__", [](const Mesh& a, const Mesh& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Mesh& mesh) { return cat(mesh); });
  m.def(
      "compute_2d_grid",
      [](int64_t ranks) {
        const dist::Grid2d grid =
            dist::compute_2d_grid(dist::checked_ranks(ranks, "compute_2d_grid"));
        return std::pair(grid.rows, grid.cols);
      },
      "ranks"_a, "The most nearly square (rows, cols) with rows * cols = ranks and rows <= cols.");
}

void bind_sharding(Module& m) {
  Class<Spec>(m, "P",
              "For each tensor dimension the mesh axes it is split over: P(\"r\", None) splits "
              "dimension 0 over axis r; a tuple of names splits over several axes.")
      .def(
          "__init__", [](Spec* self, const nb::args& dims) { new (self) Spec(to_spec(dims)); },
          nb::sig("def __init__(self, *dims: str | tuple[str, ...] | None) -> None"))
      .def(
          "__eq__", [](const Spec& a, const Spec& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Spec& spec) { return cat(spec); });
  Class<Wire>(m, "Wire",
              "In what form the elements of a tensor travel between ranks; what stays on its rank "
              "is left as it is.")
      .def_static(
          "narrow", [](Arg<DType> dtype) { return Wire::narrow(*dtype, "narrow"); },
          "dtype"_a = "float16",
          "Floats rounded to float16 or bfloat16. Those of a row (of the inner dimension of a "
          "product) are scaled by a power of two, so that none overflows; infinities and NaN "
          "pass. DTypeError for another dtype.")
      .def_static(
          "sparse",
          [](std::optional<double> threshold) {
            return threshold ? Wire::sparse(*threshold, "sparse") : Wire::sparse_by_cost();
          },
          "threshold"_a = nb::none(),
          "Without the zeros of pieces of which at least the part `threshold` is zero, or (None) "
          "where that is predicted to be faster on these ranks' links: as coordinates of 4 bytes "
          "or "
          "a bitmap beside the values, whichever is shorter. -0 arrives as 0. ExecutionError "
          "unless "
          "0 <= threshold <= 1.")
      .def("__repr__", [](const Wire& wire) {
        return wire.form == Wire::Form::kNarrow ? cat("Wire.narrow('", wire.dtype, "')")
               : wire.is_by_cost                ? "Wire.sparse()"
                                                : cat("Wire.sparse(", wire.threshold, ')');
      });
  Class<Sharding>(m, "Sharding",
                  "How a tensor lies over the ranks of a mesh; the owner boxes are the truth "
                  "about who holds what. Blocks are even, the first n % p are one longer.")
      .def(nb::init<Mesh, Spec>(), "mesh"_a, "spec"_a)
      .def_static("replicated", &Sharding::replicated, "mesh"_a, "Every rank holds all of it.")
      .def_static("on_rank", &Sharding::on_rank, "mesh"_a, "rank"_a, "One rank holds all of it.")
      .def("with_blocks", &Sharding::with_blocks, "dim"_a, "sizes"_a,
           "The same with given block sizes for a split dimension.")
      .def_prop_ro("mesh", &Sharding::mesh)
      .def_prop_ro("spec", &Sharding::spec)
      .def_prop_ro("single_rank", &Sharding::single_rank, "The rank of on_rank, else -1.")
      .def_prop_ro("is_replicated", &Sharding::is_replicated)
      .def(
          "owner_box",
          [](const Sharding& sharding, Arg<Shape> shape, int rank) {
            sharding.check_fits(*shape, "owner_box");
            return to_intervals(sharding.owner_box(*shape, rank));
          },
          "shape"_a, "rank"_a, "(low, high) along each dimension of what a rank holds.")
      .def(
          "__eq__", [](const Sharding& a, const Sharding& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Sharding& sharding) { return cat(sharding); });
}

void bind_dist_tensor(Module& m) {
  Class<DistTensor>(
      m, "DistTensor",
      "A tensor in parts over the ranks of a communicator. All ranks make the same calls, most of "
      "which are collective; what only computes or cuts the parts where they lie waits for nobody. "
      "Results stay in parts; `gather` brings them together.")
      .def(
          "__init__",
          [](DistTensor* self, dist::CommunicatorPtr comm, const Sharding& sharding,
             Arg<Shape> shape, Arg<DType> dtype, std::optional<Tensor> local) {
            new (self)
                DistTensor(std::move(comm), sharding, *shape, *dtype, local.value_or(Tensor()));
          },
          "comm"_a, "sharding"_a, "shape"_a, "dtype"_a, "local"_a = nb::none())
      .def_static(
          "from_root",
          [](const dist::CommunicatorPtr& comm, MaybeTensor tensor, int root) {
            const nb::gil_scoped_release released;
            return DistTensor::from_root(comm, given(comm, "DistTensor.from_root", {&tensor})[0],
                                         root);
          },
          "comm"_a, "tensor"_a.none(), "root"_a = 0,
          "A tensor given on rank `root` (None elsewhere), whose memory that rank's part shares. "
          "Collective.")
      .def_static(
          "from_parts",
          [](const dist::CommunicatorPtr& comm, Arg<Unplaced> local, int64_t dim) {
            return DistTensor::from_parts(comm, local->tensor, dim);
          },
          "comm"_a, "local"_a, "dim"_a = 0, Released(),
          "Parts that the ranks hold, stacked along `dim` in rank order; they share the memory of "
          "what is given. Collective.")
      .def_prop_ro("shape", [](const DistTensor& x) { return to_tuple(x.shape()); })
      .def_prop_ro("ndim", &DistTensor::ndim)
      .def_prop_ro("dtype", [](const DistTensor& x) { return PyDType{x.dtype()}; })
      .def_prop_ro("sharding", &DistTensor::sharding)
      .def_prop_ro("comm", &DistTensor::comm_ptr)
      .def_prop_ro(
          "local", [](const DistTensor& x) { return or_none(x.local()); },
          "This rank's part; None where a tensor of no dimension lies elsewhere.")
      .def_prop_ro(
          "box", [](const DistTensor& x) { return to_intervals(x.box()); },
          "(low, high) along each dimension of this rank's part.")
      .def(
          "redistribute",
          [](const DistTensor& x, const Sharding& sharding, const std::optional<Wire>& wire) {
            return dist::redistribute(x, sharding, wire.value_or(Wire{}));
          },
          "sharding"_a, nb::kw_only(), "wire"_a = nb::none(), Released(),
          "The same tensor under another sharding; only pieces that are not there travel, in the "
          "form that `wire` says. A part that its rank had already shares the memory of the old "
          "one.")
      .def(
          "gather",
          [](const DistTensor& x, int64_t root) { return or_none(dist::gather(x, root)); },
          "root"_a = 0, Released(),
          "The whole tensor on rank `root`, in memory of its own, None elsewhere.")
      .def("gather_all", &dist::gather_all, Released(),
           "The whole tensor on every rank, in memory of its own.")
      .def(
          "astype", [](const DistTensor& x, Arg<DType> dtype) { return dist::cast(x, *dtype); },
          "dtype"_a, Released(), "Converted where it lies; not collective.")
      .def(
          "transpose",
          [](const DistTensor& x, int64_t dim0, int64_t dim1) {
            return dist::transposed(x, dim0, dim1);
          },
          "dim0"_a = 0, "dim1"_a = 1, "Two dimensions exchanged, nothing moved; not collective.")
      .def_prop_ro(
          "T", [](const DistTensor& x) { return dist::transposed(x, 0, 1); },
          "The transpose of a matrix, nothing moved.")
      .def("__repr__", &DistTensor::to_string);
}

ReduceKind parse_reduce_op(std::string_view text) {
  for (const ReduceKind op :
       {ReduceKind::kSum, ReduceKind::kProd, ReduceKind::kMax, ReduceKind::kMin}) {
    if (text == name(op)) return op;
  }
  throw ExecutionError(cat("reduce: op \"", text, "\"; possible are sum, prod, max, min"));
}

void bind_whole_tensors(Module& m) {
  m.def(
      "fail_together",
      [](const dist::CommunicatorPtr& comm, const std::string& call, const std::string& message) {
        dist::prepare_together(*comm, call, [&] { throw ExecutionError(message); });
      },
      "comm"_a, "call"_a, "message"_a, Released(),
      "Tells the other ranks, which are in a collective call of cuop.dist or about to make one, "
      "that "
      "this one cannot take part: they raise CommunicationError with the message, this one "
      "ExecutionError.");
  m.def(
      "all_reduce",
      [](const dist::CommunicatorPtr& comm, Arg<Unplaced> array, std::string_view op) {
        return dist::all_reduce(comm, array->tensor, parse_reduce_op(op));
      },
      "comm"_a, "tensor"_a, "op"_a = "sum", Released(),
      "The ranks' tensors combined element by element, in rank order, on every rank. Collective.");
  m.def(
      "all_reduce_pipelined",
      [](const dist::CommunicatorPtr& comm, Arg<Unplaced> tensor, std::string_view op,
         int64_t chunks, bool overlap, int64_t ahead) {
        return dist::all_reduce_pipelined(comm, tensor->tensor, parse_reduce_op(op), chunks,
                                          {overlap, ahead});
      },
      "comm"_a, "tensor"_a, "op"_a = "sum", "chunks"_a = 4, nb::kw_only(), "overlap"_a = true,
      "ahead"_a = 1, Released(),
      "As all_reduce, bit by bit, in chunks: while one is combined the next is fetched.");
  m.def(
      "reduce_to",
      [](const dist::CommunicatorPtr& comm, Arg<Unplaced> array, std::string_view op, int root) {
        return or_none(dist::reduce_to(comm, array->tensor, parse_reduce_op(op), root));
      },
      "comm"_a, "tensor"_a, "op"_a = "sum", "root"_a = 0, Released(),
      "The same on rank `root` only, None elsewhere. Collective.");
}

}  // namespace

void bind_dist(Module& m) {
  bind_mesh(m);
  bind_sharding(m);
  bind_dist_tensor(m);
  bind_whole_tensors(m);
}

}  // namespace cuop::python
