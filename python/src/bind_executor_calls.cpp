// cuop.executor: calls that may need several passes over the host's memory.
#include "binders.h"
#include "cuop/executor/grid_fft.h"
#include "cuop/executor/line_fft.h"
#include "cuop/executor/passes.h"
#include "cuop/executor/sweeps.h"
#include "executor_arguments.h"

namespace cuop::python {

namespace {

using dist::CommunicatorPtr;
using executor::DoneTile;
using executor::PassState;
using executor::TiledOptions;

std::vector<int64_t> numbers(const Dims& dims) { return {dims.begin(), dims.end()}; }

nb::tuple header_tuple(const executor::Header& header) {
  return nb::make_tuple(to_tuple(header.shape), cat(header.dtype));
}

nb::tuple state_tuple(const PassState& state) {
  nb::list counts;
  for (const int64_t count : state.counts) counts.append(count);
  return nb::make_tuple(state.number, state.way, counts);
}

/// Calls the methods of an object of Python, whose errors go on.
class PythonLog : public executor::PassLog {
 public:
  explicit PythonLog(const nb::object& log)
      : held_(shared_function(log)), is_kept_(nb::cast<bool>(log.attr("is_kept"))) {}

  bool is_kept() const override { return is_kept_; }

  std::optional<PassState> left() override {
    const nb::gil_scoped_acquire gil;
    const nb::object found = held_->attr("left")();
    if (found.is_none()) return std::nullopt;
    PassState state{nb::cast<int64_t>(found[0]), nb::cast<std::string>(found[1])};
    for (nb::handle count : nb::list(nb::object(found[2]))) {
      state.counts.push_back(nb::cast<int64_t>(count));
    }
    return state;
  }
  void open(const std::vector<executor::Header>& arrays) override {
    const nb::gil_scoped_acquire gil;
    nb::list headers;
    for (const executor::Header& array : arrays) headers.append(header_tuple(array));
    held_->attr("open")(headers);
  }
  Tensor array(int64_t number) override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<Tensor>(held_->attr("array")(number));
  }
  std::vector<DoneTile> begin(const PassState& state) override {
    const nb::gil_scoped_acquire gil;
    std::vector<DoneTile> tiles;
    for (nb::handle each : held_->attr("begin")(state_tuple(state))) {
      DoneTile tile{
          {named_argument<Shape>(each[0], "done"), named_argument<Shape>(each[1], "done")}, {}};
      for (nb::handle figure : nb::list(nb::object(each[2]))) {
        tile.figures.push_back(nb::cast<double>(figure));
      }
      tiles.push_back(std::move(tile));
    }
    return tiles;
  }
  std::string place() override {
    const nb::gil_scoped_acquire gil;
    return nb::cast<std::string>(held_->attr("place")());
  }
  Tensor join(const std::string& place, const executor::Header& array) override {
    const nb::gil_scoped_acquire gil;
    const nb::object made = held_->attr("join")(place, header_tuple(array));
    return made.is_none() ? Tensor() : nb::cast<Tensor>(made);
  }
  void note(const DoneTile& tile) override {
    if (Py_IsInitialized() == 0) return;
    const nb::gil_scoped_acquire gil;
    nb::list figures;
    for (const double figure : tile.figures) figures.append(figure);
    call_at_work(nb::object(held_->attr("note")), "the log of a call", numbers(tile.box.low),
                 numbers(tile.box.high), figures);
  }

 private:
  std::shared_ptr<nb::object> held_;
  bool is_kept_;
};

/// Binds work(comm, options, arguments...), of which `names` are the arguments'.
template <class Work, class Made, class... Arguments, class... Names>
void define_call(Module& m, const char* name, Work work,
                 Form<Made, const CommunicatorPtr&, const TiledOptions&, Arguments...>,
                 const char* doc, const Names&... names) {
  m.def(
      name,
      [work](const CommunicatorPtr& comm, Arguments... arguments, Limit memory_limit,
             double safety_margin, const nb::object& on_progress, const nb::object& log) {
        TiledOptions options = tiled_options(memory_limit, safety_margin, 1, on_progress);
        options.log = pass_log(log);
        const nb::gil_scoped_release released;
        return work(comm, options, arguments...);
      },
      "comm"_a, names..., nb::kw_only(), "memory_limit"_a = nb::none(), "safety_margin"_a = 0.2,
      "on_progress"_a = nb::none(), "log"_a = nb::none(), doc);
}

void bind_executor_transforms(Module& m) {
  const auto line = [](const CommunicatorPtr& comm, const TiledOptions& options,
                       const MaybeTensor& x, Limit n, int64_t dim, std::string_view norm,
                       std::string_view kind) {
    const dist::FftBatch batch = line_batch(n, dim, norm, kind);
    const Tensor input = given(comm, "fft", {&x})[0];
    return outcome(executor::fft_line(comm, input, batch, options), options);
  };
  define_call(
      m, "fft_line", line, form_of(line),
      "1-D transforms, kind \"fft\", \"ifft\", \"rfft\" or \"irfft\"; of one line in two passes "
      "over the "
      "host's memory where it fits on no device: the result on rank 0, and what was done.\n\n"
      "log: an object with the methods of PartialOutput (cuop/cli/partial_output.py), which keeps "
      "the arrays and what is done, so that a later call goes on with it. Collective.",
      "x"_a.none(), "n"_a = nb::none(), "dim"_a = -1, "norm"_a = "backward", "kind"_a = "fft");
  const auto grid = [](const CommunicatorPtr& comm, const TiledOptions& options,
                       const MaybeTensor& x, std::string_view norm) {
    const Tensor input = given(comm, "fft2d", {&x})[0];
    return outcome(executor::fft2d_grid(comm, input, parse_fft_norm(norm, "fft2d"), options),
                   options);
  };
  define_call(
      m, "fft2d_grid", grid, form_of(grid),
      "The 2-D transform of one grid: at once, or rows and then columns; the result on rank 0, and "
      "what was done. log: see fft_line. Collective.",
      "x"_a.none(), "norm"_a = "backward");
}

void bind_sweeps(Module& m) {
  const auto stencil = [](const CommunicatorPtr& comm, const TiledOptions& options,
                          const MaybeTensor& grid, const MaybeTensor& kernel,
                          std::string_view boundary, int64_t iterations) {
    const std::vector<Tensor> inputs = given(comm, "stencil_2d", {&grid, &kernel});
    return outcome(
        executor::stencil_2d(comm, inputs[0], inputs[1], parse_boundary(boundary, "stencil_2d"),
                             iterations, options),
        options);
  };
  define_call(
      m, "stencil_2d", stencil, form_of(stencil),
      "cuop.dist.stencil_2d_from_root of a grid on the host; the result on rank 0, and what was "
      "done. log: see fft_line; with one a grid that fits is swept in passes too. Collective.",
      "grid"_a.none(), "kernel"_a.none(), "boundary"_a = "zero", "iterations"_a = 1);
  const auto jacobi = [](const CommunicatorPtr& comm, const TiledOptions& options,
                         const MaybeTensor& grid, const MaybeTensor& rhs, double dx,
                         std::string_view boundary, int64_t iterations, double tol,
                         bool with_info) {
    const std::vector<Tensor> inputs = given(comm, "jacobi_2d", {&grid, &rhs});
    const JacobiOptions call{dx, parse_boundary(boundary, "jacobi_2d"), iterations, tol};
    dist::SolveInfo info;
    Tensor u =
        executor::jacobi_2d(comm, inputs[0], inputs[1], call, with_info ? &info : nullptr, options);
    return std::tuple(or_none(std::move(u)), with_info ? std::optional(info) : std::nullopt,
                      *options.report);
  };
  define_call(
      m, "jacobi_2d", jacobi, form_of(jacobi),
      "cuop.dist.jacobi_2d_from_root of a grid on the host: u on rank 0, its info (None without "
      "`with_info`, which takes a pass for the residual), and what was done. log: see fft_line; "
      "with one a grid that fits is swept in passes too. Collective.",
      "grid"_a.none(), "rhs"_a.none(), "dx"_a = 1.0, "boundary"_a = "zero", "iterations"_a = 1000,
      "tol"_a = 1e-6, "with_info"_a = true);
}

}  // namespace

std::shared_ptr<executor::PassLog> pass_log(const nb::object& log) {
  if (log.is_none()) return nullptr;
  check_python_goes_on("executor: log");
  for (const char* name : {"is_kept", "left", "open", "begin", "array", "place", "join", "note"}) {
    if (has_attribute(log, name)) continue;
    throw DTypeError(cat("executor: log: needed is an object with the methods of ",
                         "cuop.cli.partial_output.PartialOutput, given ", class_name(log),
                         " has no ", name));
  }
  return std::make_shared<PythonLog>(log);
}

void bind_executor_calls(Module& m) {
  bind_executor_transforms(m);
  bind_sweeps(m);
}

}  // namespace cuop::python
