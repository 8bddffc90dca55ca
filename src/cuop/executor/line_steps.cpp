#include "cuop/executor/line_steps.h"

#include <algorithm>
#include <utility>

#include "cuop/dist/plan/four_step_plan.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {

using dist::FftKind;

namespace {

/// Tiles that a GPU makes lie there as their columns do on the host, from where they go in runs.
TileOperation turned(TileOperation made) {
  made.describe = [plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.placed_order = {1, 0};
    tiling.scratch = [lines = tiling.scratch, item = itemsize(tiling.output.dtype)](
                         const Box& output, Interval step, const WorkFigures& on) {
      const bool is_copied = on.is_gpu() && output.interval(0).length() > 1;
      return lines(output, step, on) + (is_copied ? output.size() * item : 0);
    };
    tiling.make = [make = tiling.make](const std::vector<Part>& parts, const Box& output,
                                       Interval step) {
      const Tensor lines = make(parts, output, step);
      return lines.device().is_cpu() ? lines : transpose(contiguous(transpose(lines)));
    };
    return tiling;
  };
  return made;
}

}  // namespace

std::optional<LineSteps> LineSteps::of(const dist::FftBatch& batch, const Header& x,
                                       const Header& line) {
  if (x.shape.ndim() != 1) return std::nullopt;
  const int64_t n = batch.kind == FftKind::kIrfft ? line.shape[0] : batch.n.value_or(x.shape[0]);
  const auto factors = dist::four_step_factors(n, 1);
  if (!factors) return std::nullopt;
  return LineSteps(batch, x, line, n, factors->n1, factors->n2);
}

Header LineSteps::middle() const {
  const bool is_half = is_from_real() || is_to_real();
  return {{is_half ? n1_ / 2 + 1 : n1_, n2_}, complex_dtype(real_dtype(line_.dtype))};
}

LineStep LineSteps::first() const {
  const bool is_inverse = is_to_real() || batch_.kind == FftKind::kIfft;
  if (!is_to_real()) {
    return {"columns",
            with_twiddles(fft_tiles({batch_.kind, {}, 0, batch_.norm}), n_, is_inverse),
            {{{n1_, n2_}, x_.dtype}}};
  }
  const int64_t runs = half().runs();
  return {"rows",
          with_twiddles(rows_from_half(), n_, is_inverse),
          {{{runs, n1_}, x_.dtype},
           {{runs, n1_}, x_.dtype},
           {{std::max<int64_t>(half().rest(), 1)}, x_.dtype}}};
}

LineStep LineSteps::second() const {
  if (is_to_real()) {
    return {"columns", fft_tiles({FftKind::kIrfft, n1_, 0, batch_.norm}), {middle()}};
  }
  return {"rows",
          is_from_real() ? rows_into_half() : turned(fft_tiles({batch_.kind, {}, 1, batch_.norm})),
          {middle()}};
}

TileOperation LineSteps::rows_into_half() const {
  TileOperation made = turned(fft_tiles({FftKind::kFft, {}, 1, batch_.norm}));
  made.text += ", half of them";
  made.describe = [*this, plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    tiling.place = {line_, [half = half()](const Tensor& line, const Box& box, const Tensor& tile) {
                      const Interval rows = box.interval(0);
                      half.scatter(half.parts_of(line, rows), rows, tile);
                    }};
    return tiling;
  };
  return made;
}

TileOperation LineSteps::rows_from_half() const {
  TileOperation made = fft_tiles({FftKind::kIfft, {}, 1, batch_.norm});
  made.text += ", from half of them";
  made.names = {"half", "half backwards", "end of half"};
  made.over_ranks = {};
  made.describe = [*this, plain = made.describe](const std::vector<Header>& inputs) {
    const Header rows = middle();
    Tiling tiling = plain({rows});
    tiling.names = {"half", "half backwards", "end of half"};
    tiling.inputs = inputs;
    tiling.needed = [half = half(), end = inputs[2].shape](size_t i, const Box& output, Interval) {
      if (i == 2) return whole_box(end);
      const Interval columns = output.interval(0);
      Box box = whole_box({half.runs(), 1});
      box.set_interval(1, i == 0 ? columns : half.mirrored(columns));
      return box;
    };
    const int64_t item = itemsize(rows.dtype);
    tiling.scratch = [lines = tiling.scratch, item](const Box& output, Interval step,
                                                    const WorkFigures& on) {
      return lines(output, step, on) + output.size() * item;
    };
    tiling.make = [half = half(), make = tiling.make, dtype = rows.dtype](
                      const std::vector<Part>& parts, const Box& output, Interval step) {
      const Device device = parts[0].device;
      const Tensor spectrum = empty(output.shape(), dtype, device);
      half.gather({parts[0].local, parts[1].local, parts[2].local}, output.interval(0), spectrum);
      return make({{spectrum, output, device}}, output, step);
    };
    return tiling;
  };
  return made;
}

std::vector<Tensor> LineSteps::first_inputs(const Tensor& x) const {
  if (!is_to_real()) return {reshape(of_length(x, n_), {n1_, n2_})};
  const Tensor line = of_length(x, half().length());
  const int64_t whole = half().runs() * n1_;
  const Tensor runs = reshape(slice(line, 0, 0, whole), {half().runs(), n1_});
  // An element that nobody looks at where no run is begun.
  return {runs, runs, slice(line, 0, half().rest() > 0 ? whole : whole - 1, line.size())};
}

PassSettings LineSteps::into_line() const {
  PassSettings settings;
  if (is_from_real()) return settings;  // whose rows find their places themselves
  settings.view = [n1 = n1_, n2 = n2_, is_in_order = is_to_real()](const Tensor& array) {
    // y[k2 n1 + k1] is [k1, k2] of the transpose; x[j1 n2 + j2] is [j1, j2].
    return is_in_order ? reshape(array, {n1, n2}) : transpose(reshape(array, {n2, n1}));
  };
  return settings;
}

}  // namespace cuop::executor
