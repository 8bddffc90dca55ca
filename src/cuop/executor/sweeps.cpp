#include "cuop/executor/sweeps.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <numeric>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/algo/poisson_internal.h"
#include "cuop/executor/passes.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {
namespace {

using Outside = TileProblem::Outside;

/// Sweeps that one pass over the grid may make.
constexpr int64_t kMostSweeps = 64;
constexpr const char* kWhole = "swept whole";
constexpr const char* kSweeps = "sweeps";

/// A band of rows while it is swept: rows [low, high) of a grid of `height` rows.
struct Band {
  Tensor rows;
  Interval at;  ///< the rows that `rows` holds; those outside of the grid are zero, or wrapped
  int64_t height = 0;
  bool is_periodic = false;

  Tensor slice_of(Interval wanted) const {
    return slice(rows, 0, wanted.low - at.low, wanted.high - at.low);
  }

  /// `sweep(padded, out, rows)` makes `out`, rows `made` of the grid, from those and `reach` more
  /// on both sides; then the band is `wanted`.
  template <class Sweep>
  void replace(Interval wanted, int64_t reach, int64_t sweeps, const Sweep& sweep) {
    const Interval made = is_periodic ? wanted : clipped(wanted, height);
    Shape shape = rows.shape();
    shape[0] = wanted.length();
    const Tensor next = zeros(shape, rows.dtype(), rows.device());
    const Tensor out = slice(next, 0, made.low - wanted.low, made.high - wanted.low);
    RowSweeps in_grid{sweeps};
    if (!is_periodic) {
      in_grid.first = -made.low;
      in_grid.last = height - made.low;
    }
    sweep(slice_of({made.low - reach, made.high + reach}), made, out, in_grid);
    rows = next;
    at = wanted;
  }
};

/// Rows that sweeps of a band have beside its input and its result, where each is made by itself:
/// of two between them, of which one becomes the other; the result has its room already.
int64_t rows_between(Interval own, int64_t radius, int64_t sweeps) {
  return own.length() + 2 * radius * std::max(sweeps, 2 * sweeps - 3);
}

Interval grown(Interval rows, int64_t by) { return {rows.low - by, rows.high + by}; }

Box rows_box(const Shape& shape, Interval rows) {
  Box box = whole_box(shape);
  box.set_interval(0, rows);
  return box;
}

Outside outside_of(Boundary boundary) {
  return boundary == Boundary::kPeriodic ? Outside::kWrapped : Outside::kZero;
}

void check_sweeps(const char* who, int64_t sweeps) {
  if (sweeps >= 1) return;
  throw ExecutionError(cat(who, ": ", sweeps, " sweeps were given, needed are 1 or more"));
}

Tiling sweep_tiling(const std::string& op, const std::vector<Header>& inputs, double flops) {
  Tiling tiling;
  tiling.op = op;
  tiling.inputs = inputs;
  tiling.output = inputs[0];
  tiling.cut_dims = {0};
  tiling.flops = flops * static_cast<double>(element_count(inputs[0].shape));
  tiling.efficiency = 0.25;
  tiling.computed = inputs[0].dtype;
  return tiling;
}

/// A call of dist from rank 0 to rank 0, made on the ranks' devices, of arrays of its host.
template <class Call>
Tensor on_devices(dist::Communicator& comm, const Call& call) {
  const Device device = work_device(comm);
  const Tensor result =
      call([device](const Tensor& x) { return x.is_defined() ? to_device(x, device) : x; });
  return result.is_defined() ? to_device(result, kCpu) : result;
}

/// The sums of squares of rhs - Laplace(u), row by row. Inputs: u, rhs.
TileOperation residual_tiles(const JacobiOptions& jacobi) {
  const auto describe = [=](const std::vector<Header>& inputs) {
    const Shape grid = inputs.at(0).shape;
    Tiling tiling = sweep_tiling("poisson residual", inputs, 9.0);
    tiling.names = {"u", "rhs"};
    tiling.output = {{grid[0]}, DType::kFloat64};
    tiling.outside = {outside_of(jacobi.boundary), Outside::kNothing};
    tiling.needed = [=](size_t i, const Box& output, Interval) {
      return rows_box(grid, grown(output.interval(0), i == 0 ? 1 : 0));
    };
    tiling.make = [=](const std::vector<Part>& parts, const Box&, Interval) {
      return poisson_residual_rows(parts[0].local, parts[1].local, jacobi.dx, jacobi.boundary);
    };
    return tiling;
  };
  return {cat(std::setprecision(17), "poisson residual, dx ", jacobi.dx, ", boundary ",
              static_cast<int>(jacobi.boundary)),
          {"u", "rhs"},
          describe};
}

/// The root of the sum of squares of rows, in order.
double norm_of_rows(const double* squares, int64_t rows) {
  return std::sqrt(std::accumulate(squares, squares + rows, 0.0));
}

/// Collective: the 2-norm of the residual over the whole grid, on every rank.
double residual_norm(const dist::CommunicatorPtr& comm, const Tensor& u, const Tensor& rhs,
                     const JacobiOptions& jacobi, const TiledOptions& options) {
  const Tensor squares = run_tiled(comm, residual_tiles(jacobi), {u, rhs}, options);
  double norm = squares.is_defined() ? norm_of_rows(squares.data<double>(), squares.size()) : 0.0;
  if (comm->size() > 1) comm->broadcast(&norm, sizeof norm, 0);
  return norm;
}

/// The passes of the depth by which a sweep takes least; none for a grid that fits, if
/// `may_be_whole`.
CallPlan sweep_plan(int64_t iterations, const std::vector<Header>& inputs,
                    const std::function<TileOperation(int64_t)>& tiles, const PlanPass& plan_of,
                    bool may_be_whole) {
  const auto passes_of = [&](int64_t sweeps, int64_t times) {
    return TilePass{sweeps == 1 ? "1 sweep" : cat(sweeps, " sweeps"), times,
                    plan_of(tiles(sweeps), inputs), sweeps};
  };
  TilePass best = passes_of(1, iterations);
  CallPlan call = at_once(best.plan);
  const int64_t whole = whole_grid_bytes(inputs[0]);
  if (may_be_whole) call.smallest = std::min(call.smallest, whole);
  if (may_be_whole && whole <= call.limit) {
    call.way = kWhole;
    call.passes.clear();
    return call;
  }
  const auto each = [](const TilePass& pass) {
    return pass.plan.seconds / static_cast<double>(pass.sweeps);
  };
  for (int64_t sweeps = 2; sweeps <= std::min(iterations, kMostSweeps); sweeps *= 2) {
    const TilePass deeper = passes_of(sweeps, iterations / sweeps);
    if (!deeper.plan.is_feasible || each(deeper) >= each(best)) break;
    best = deeper;
  }
  call.way = kSweeps;
  call.passes = {best};
  const int64_t rest = iterations % best.sweeps;
  if (rest > 0) call.passes.push_back(passes_of(rest, 1));
  const bool takes_turns = call.passes.size() > 1 || best.times > 1;
  call.kept_scratch = bytes_of(inputs[0]);
  call.scratch = takes_turns ? call.kept_scratch : 0;
  return call;
}

/// Whether a pass of so many sweeps is within the limit. Collective.
using SweepsFit = std::function<bool(int64_t sweeps)>;
SweepsFit fitting(const std::vector<Header>& inputs,
                  const std::function<TileOperation(int64_t)>& tiles, const PlanPass& plan_of) {
  return [=](int64_t sweeps) { return plan_of(tiles(sweeps), inputs).is_feasible; };
}

/// Collective: how far the passes of a call are that is to make so many sweeps.
class SweepsDone {
 public:
  /// A pass that was cut off is begun anew, less deep, where it does not `fit` any more.
  SweepsDone(const Passes& passes, const std::string& call, int64_t iterations,
             const SweepsFit& fit)
      : iterations_(iterations) {
    const auto& left = passes.left();
    if (!left) return;
    const auto& counts = left->counts;
    const bool is_ours = left->way == kSweeps && left->number >= 0 && counts.size() == 2;
    if (!is_ours || counts[0] < 0 || counts[1] < 1 || counts[1] > iterations - counts[0]) {
      throw ExecutionError(cat(call, ": a run was cut off in pass ", left->number, " of \"",
                               left->way, "\" behind (", join(counts),
                               ") sweeps, with which this one of ", iterations, " cannot go on"));
    }
    pass_ = left->number;
    done_ = counts[0];
    left_ = fit(counts[1]) ? counts[1] : 0;
  }

  int64_t done() const { return done_; }
  bool is_end() const { return done_ >= iterations_; }
  /// Sweeps of the next pass: of one that was cut off as many as it had.
  int64_t next(int64_t depth) const {
    return left_ > 0 ? left_ : std::min(depth, iterations_ - done_);
  }
  PassState state(int64_t sweeps) const { return {pass_, kSweeps, {done_, sweeps}}; }
  void add(int64_t sweeps) {
    done_ += sweeps;
    left_ = 0;
    ++pass_;
  }
  /// What the next pass reads.
  Tensor input(Passes& passes, const Tensor& given) const {
    return pass_ == 0 ? given : passes.made(pass_ - 1);
  }

 private:
  int64_t iterations_;
  int64_t pass_ = 0, done_ = 0, left_ = 0;
};

std::function<TileOperation(int64_t)> stencil_depths(Boundary boundary) {
  return [=](int64_t sweeps) { return stencil_tiles(boundary, sweeps); };
}

std::function<TileOperation(int64_t)> jacobi_depths(const JacobiOptions& jacobi,
                                                    const std::shared_ptr<UpdateNorms>& norms) {
  return [=](int64_t sweeps) { return jacobi_tiles(jacobi, sweeps, norms); };
}

}  // namespace

void UpdateNorms::begin(int64_t sweeps) {
  squares.assign(static_cast<size_t>(sweeps * rows), 0.0);
  is_known.assign(static_cast<size_t>(rows), 0);
  is_left.assign(static_cast<size_t>(rows), 0);
}

void UpdateNorms::put(int64_t sweep, Interval at, const Tensor& norms) {
  const Tensor on_host = contiguous(to_device(norms, kCpu));
  const double* from = on_host.data<double>();
  std::copy(from, from + at.length(), squares.begin() + (sweep * rows + at.low));
  std::fill(is_known.begin() + at.low, is_known.begin() + at.high, 1);
}

std::optional<std::vector<double>> UpdateNorms::of_rows(Interval at) const {
  const auto first = is_known.begin() + at.low, last = is_known.begin() + at.high;
  if (std::find(first, last, 0) != last) return std::nullopt;
  std::vector<double> result;
  const auto sweeps = static_cast<int64_t>(squares.size()) / rows;
  for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
    const auto row = squares.begin() + (sweep * rows + at.low);
    result.insert(result.end(), row, row + at.length());
  }
  return result;
}

void UpdateNorms::restore(Interval at, const std::vector<double>& known) {
  const auto sweeps = static_cast<int64_t>(squares.size()) / rows;
  if (static_cast<int64_t>(known.size()) != sweeps * at.length()) {
    throw ExecutionError(cat("jacobi_2d: ", known.size(), " norms were left of ", sweeps,
                             " sweeps of rows ", at.low, " to ", at.high));
  }
  for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
    const auto from = known.begin() + sweep * at.length();
    std::copy(from, from + at.length(), squares.begin() + (sweep * rows + at.low));
  }
  std::fill(is_left.begin() + at.low, is_left.begin() + at.high, 1);
}

void UpdateNorms::share(dist::Communicator& comm) {
  if (comm.size() == 1) return;
  // Of rows that were left some may have been made again, as parts of other tiles.
  std::vector<double> makers(is_known.begin(), is_known.end());
  comm.all_reduce(makers.data(), makers.data(), rows, DType::kFloat64, ReduceKind::kSum);
  for (int64_t i = 0; i < static_cast<int64_t>(squares.size()); ++i) {
    const auto row = static_cast<size_t>(i % rows);
    const bool is_others = is_left[row] != 0 && is_known[row] == 0 && makers[row] > 0;
    if (is_others) squares[static_cast<size_t>(i)] = 0.0;
  }
  comm.all_reduce(squares.data(), squares.data(), static_cast<int64_t>(squares.size()),
                  DType::kFloat64, ReduceKind::kSum);
}

double UpdateNorms::norm(int64_t sweep) const {
  return norm_of_rows(squares.data() + sweep * rows, rows);
}

TileOperation stencil_tiles(Boundary boundary, int64_t sweeps) {
  check_sweeps("stencil_pass", sweeps);
  const auto describe = [=](const std::vector<Header>& inputs) {
    dist::check_stencil(placements_of({"grid", "kernel"}, inputs), sweeps);
    const Shape grid = inputs[0].shape, kernel = inputs[1].shape;
    const int64_t radius = kernel[0] / 2;
    Tiling tiling = sweep_tiling("stencil_2d", inputs,
                                 2.0 * static_cast<double>(element_count(kernel) * sweeps));
    tiling.names = {"grid", "kernel"};
    tiling.outside = {outside_of(boundary), Outside::kNothing};
    tiling.needed = [=](size_t i, const Box& output, Interval) {
      return i == 0 ? rows_box(grid, grown(output.interval(0), radius * sweeps))
                    : whole_box(kernel);
    };
    tiling.scratch = [=, item = itemsize(inputs[0].dtype)](const Box& output, Interval,
                                                           const WorkFigures&) {
      const int64_t rows = rows_between(output.interval(0), radius, sweeps);
      const int64_t weights = element_count(kernel) * itemsize(DType::kComplex128) * 4;
      // 16-bit floats are computed in copies in float32.
      const int64_t wide = item < itemsize(DType::kFloat32) ? 2 * itemsize(DType::kFloat32) : 0;
      return rows * grid[1] * (item + wide) + weights;
    };
    tiling.make = [=](const std::vector<Part>& parts, const Box& output, Interval) {
      const Tensor weights = to_device(parts[1].local, kCpu);
      Band band{parts[0].local, parts[0].box.interval(0), grid[0], boundary == Boundary::kPeriodic};
      const int64_t at_once = row_sweeps_at_once(band.rows, weights);
      for (int64_t left = sweeps; left > 0;) {
        const int64_t now = std::min(at_once, left);
        left -= now;
        band.replace(grown(output.interval(0), radius * left), radius * now, now,
                     [&](const Tensor& padded, Interval, const Tensor& out, const RowSweeps& rows) {
                       stencil2d_rows(padded, weights, boundary, &out, rows);
                     });
      }
      return band.rows;
    };
    return tiling;
  };
  return {cat("stencil_2d, boundary ", static_cast<int>(boundary), ", ", sweeps, " sweeps"),
          {"grid", "kernel"},
          describe,
          [=] { return dist::stencil_operation(boundary, sweeps); }};
}

TileOperation jacobi_tiles(const JacobiOptions& jacobi, int64_t sweeps,
                           const std::shared_ptr<UpdateNorms>& norms) {
  check_sweeps("jacobi_pass", sweeps);
  const auto describe = [=](const std::vector<Header>& inputs) {
    dist::check_poisson("jacobi_2d", placements_of({"grid", "rhs"}, inputs), jacobi);
    const Shape grid = inputs[0].shape;
    Tiling tiling = sweep_tiling("jacobi_2d", inputs, 9.0 * static_cast<double>(sweeps));
    tiling.names = {"grid", "rhs"};
    tiling.outside = {outside_of(jacobi.boundary), outside_of(jacobi.boundary)};
    tiling.needed = [=](size_t i, const Box& output, Interval) {
      const auto halo = sweeps - static_cast<int64_t>(i);
      return rows_box(grid, grown(output.interval(0), halo));
    };
    tiling.scratch = [=, item = itemsize(inputs[0].dtype)](const Box& output, Interval,
                                                           const WorkFigures&) {
      const Interval own = output.interval(0);
      return rows_between(own, 1, sweeps) * grid[1] * item +
             grown(own, sweeps).length() * int64_t{8} * sweeps;
    };
    tiling.make = [=](const std::vector<Part>& parts, const Box& output, Interval) {
      Band band{parts[0].local, parts[0].box.interval(0), grid[0],
                jacobi.boundary == Boundary::kPeriodic};
      const Band rhs{parts[1].local, parts[1].box.interval(0), grid[0], band.is_periodic};
      const Interval own = output.interval(0);
      const int64_t at_once = jacobi_sweeps_at_once(band.rows.device());
      for (int64_t done = 0; done < sweeps;) {
        const int64_t now = std::min(at_once, sweeps - done);
        const int64_t left = sweeps - done - now;
        band.replace(
            grown(own, left), now, now,
            [&](const Tensor& padded, Interval made, const Tensor& out, const RowSweeps& rows) {
              RowSweeps wanted = rows;
              if (!norms) wanted.measured = 0;
              const JacobiSweep result = jacobi2d_rows(padded, rhs.slice_of(grown(made, now - 1)),
                                                       jacobi.dx, jacobi.boundary, &out, wanted);
              if (!norms) return;
              const Tensor squares = reshape(result.row_norms, {now, made.length()});
              for (int64_t sweep = 0; sweep < now; ++sweep) {
                norms->put(
                    done + sweep, own,
                    slice(select(squares, 0, sweep), 0, own.low - made.low, own.high - made.low));
              }
            });
        done += now;
      }
      return band.rows;
    };
    return tiling;
  };
  return {cat(std::setprecision(17), "jacobi_2d, dx ", jacobi.dx, ", boundary ",
              static_cast<int>(jacobi.boundary), ", ", sweeps, " sweeps"),
          {"grid", "rhs"},
          describe,
          [=] {
            JacobiOptions whole = jacobi;
            whole.iterations = sweeps;
            return dist::jacobi_operation(whole, std::make_shared<dist::SolveInfo>());
          }};
}

int64_t whole_grid_bytes(const Header& grid) {
  constexpr int64_t kCopies = 6;  // what comes, two that take turns, rhs, the result
  return element_count(grid.shape) * itemsize(grid.dtype) * kCopies;
}

CallPlan stencil_plan(Boundary boundary, int64_t iterations, const std::vector<Header>& inputs,
                      const PlanPass& plan, bool may_be_whole) {
  check_sweeps("stencil_2d", iterations);
  return sweep_plan(iterations, inputs, stencil_depths(boundary), plan, may_be_whole);
}

CallPlan jacobi_plan(const JacobiOptions& jacobi, const std::vector<Header>& inputs,
                     const PlanPass& plan, bool may_be_whole) {
  check_sweeps("jacobi_2d", jacobi.iterations);
  return sweep_plan(jacobi.iterations, inputs, jacobi_depths(jacobi, nullptr), plan, may_be_whole);
}

Tensor stencil_2d(const dist::CommunicatorPtr& comm, const Tensor& grid, const Tensor& kernel,
                  Boundary boundary, int64_t iterations, const TiledOptions& options) {
  const std::vector<Header> headers = agree_headers(*comm, "stencil_2d", {grid, kernel}, options);
  Passes passes(comm, "stencil_2d", options);
  CallPlan plan;
  if (iterations >= 1) {
    plan = stencil_plan(boundary, iterations, headers, on_ranks(comm, options), !passes.is_kept());
  }
  if (plan.is_whole()) {
    return on_devices(*comm, [&](const auto& there) {
      return dist::stencil_2d_from_root(comm, there(grid), there(kernel), boundary, iterations);
    });
  }
  const SweepsFit fit = fitting(headers, stencil_depths(boundary), on_ranks(comm, options));
  SweepsDone sweeps(passes, "stencil_2d", iterations, fit);
  check_feasible(plan);
  passes.open({headers[0], headers[0]});
  Tensor made;
  while (!sweeps.is_end()) {
    const int64_t now = sweeps.next(plan.passes[0].sweeps);
    made = passes.run(sweeps.state(now), stencil_tiles(boundary, now),
                      {sweeps.input(passes, grid), kernel});
    sweeps.add(now);
  }
  return made;
}

Tensor jacobi_2d(const dist::CommunicatorPtr& comm, const Tensor& grid, const Tensor& rhs,
                 const JacobiOptions& jacobi, dist::SolveInfo* info, const TiledOptions& options) {
  const std::vector<Header> headers = agree_headers(*comm, "jacobi_2d", {grid, rhs}, options);
  Passes passes(comm, "jacobi_2d", options);
  CallPlan plan;
  if (jacobi.iterations >= 1) {
    plan = jacobi_plan(jacobi, headers, on_ranks(comm, options), !passes.is_kept());
  }
  if (plan.is_whole()) {
    return on_devices(*comm, [&](const auto& there) {
      return dist::jacobi_2d_from_root(comm, there(grid), there(rhs), jacobi, info);
    });
  }
  const auto norms = std::make_shared<UpdateNorms>();
  norms->rows = headers[0].shape[0];
  PassSettings settings;
  settings.figures = [norms](const Box& output) { return norms->of_rows(output.interval(0)); };
  settings.restore = [norms](const DoneTile& tile) {
    norms->restore(tile.box.interval(0), tile.figures);
  };
  const SweepsFit fit = fitting(headers, jacobi_depths(jacobi, nullptr), on_ranks(comm, options));
  SweepsDone sweeps(passes, "jacobi_2d", jacobi.iterations, fit);
  check_feasible(plan);
  passes.open({headers[0], headers[0]});
  Tensor made;
  const auto pass = [&](int64_t now) {
    norms->begin(now);
    made = passes.run(sweeps.state(now), jacobi_tiles(jacobi, now, norms),
                      {sweeps.input(passes, grid), rhs}, settings);
    norms->share(*comm);
  };
  dist::SolveInfo found;
  for (bool is_done = false; !is_done && !sweeps.is_end();) {
    int64_t now = sweeps.next(plan.passes[0].sweeps);
    pass(now);
    for (int64_t sweep = 0; sweep < now && jacobi.tolerance > 0; ++sweep) {
      if (norms->norm(sweep) >= jacobi.tolerance) continue;
      is_done = true;
      if (sweep + 1 < now) pass(now = sweep + 1);  // from the same grid, not so far
    }
    sweeps.add(now);
    found.update_norm = norms->norm(now - 1);
  }
  found.sweeps = sweeps.done();
  if (info != nullptr) {
    TiledOptions last = options;
    last.log = nullptr;
    last.report = nullptr;
    found.residual_norm = residual_norm(comm, made, rhs, jacobi, last);
    *info = found;
  }
  return made;
}

}  // namespace cuop::executor
