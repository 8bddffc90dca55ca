#include <algorithm>
#include <memory>

#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/executor/operations.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/partial.h"

namespace cuop::executor {
namespace {

/// A reduction of one array: the states of its elements are merged over steps of the longest
/// dimension that is reduced.
struct TiledReduction {
  dist::ReduceOptions options;
  Shape shape;
  std::vector<int> axes;
  PartialReduction partial;
  int64_t count;  ///< elements that a result is made of
  int step_axis = -1;

  TiledReduction(const dist::ReduceOptions& given, const Header& x)
      : options(given),
        shape(x.shape),
        axes(dist::reduced_axes(given, x.shape)),
        partial(given.kind, given.mode, x.dtype),
        count(dist::elements_along(axes, shape)) {
    dist::check_has_elements(options, axes, shape);
    for (const int axis : axes) {
      if (step_axis < 0 || shape[axis] > shape[step_axis]) step_axis = axis;
    }
  }

  bool is_reduced(int dim) const { return has_axis(axes, dim); }

  Shape result_shape() const {
    Shape result;
    for (int dim = 0; dim < shape.ndim(); ++dim) {
      if (!is_reduced(dim)) {
        result.push_back(shape[dim]);
      } else if (options.keepdims) {
        result.push_back(1);
      }
    }
    return result;
  }

  Box needed(const Box& output, Interval step) const {
    Box box = whole_box(shape);
    int next = 0;
    for (int dim = 0; dim < shape.ndim(); ++dim) {
      if (!is_reduced(dim)) {
        box.set_interval(dim, output.interval(next++));
      } else {
        if (options.keepdims) ++next;
        if (dim == step_axis) box.set_interval(dim, clipped(step, shape[dim]));
      }
    }
    return box;
  }

  /// States [output..., bytes].
  Tensor fold(const Tensor& part, const Box& output) const {
    const Tensor states = partial.fold(part, options.axes);
    Shape wanted = output.shape();
    wanted.push_back(partial.state_bytes());
    return reshape(states, wanted);
  }
  int64_t fold_bytes(const Box& output, Interval step, const WorkFigures& figures) const {
    return partial.fold_bytes(needed(output, step).shape(), options.axes, figures);
  }
};

Tiling describe(const dist::ReduceOptions& options, const std::vector<Header>& inputs) {
  const auto work = std::make_shared<const TiledReduction>(options, inputs.at(0));
  Tiling tiling;
  tiling.op = name(options.kind);
  tiling.names = {"x"};
  tiling.inputs = inputs;
  tiling.output = {work->result_shape(), work->partial.result_dtype()};
  for (int dim = 0; dim < tiling.output.shape.ndim(); ++dim) {
    if (tiling.output.shape[dim] > 1) tiling.cut_dims.push_back(dim);
  }
  if (work->step_axis >= 0) tiling.summed = std::max<int64_t>(1, work->shape[work->step_axis]);
  tiling.state_bytes = work->partial.state_bytes();
  tiling.flops = static_cast<double>(element_count(work->shape));
  tiling.efficiency = 0.05;  // one addition for each element that is read
  tiling.computed = inputs[0].dtype;
  tiling.needed = [work](size_t, const Box& output, Interval step) {
    return work->needed(output, step);
  };
  tiling.scratch = [work, item = itemsize(tiling.output.dtype)](const Box& output, Interval step,
                                                                const WorkFigures& figures) {
    const int64_t finished = work->partial.finish_bytes(output.size()) + output.size() * item;
    return std::max(work->fold_bytes(output, step, figures), finished);
  };
  tiling.make = [work](const std::vector<Part>& parts, const Box& output, Interval) {
    return work->fold(parts[0].local, output);
  };
  tiling.add = [work](Tensor& total, const Tensor& next) { work->partial.merge(total, next); };
  tiling.finish = [work](const Tensor& states) {
    return work->partial.finish(states, work->count);
  };
  return tiling;
}

}  // namespace

TileOperation reduce_tiles(const dist::ReduceOptions& options) {
  return {cat(name(options.kind), " axes ", dist::axes_text(options), ", keepdims ",
              options.keepdims, ", mode ", name(options.mode)),
          {"x"},
          [options](const std::vector<Header>& inputs) { return describe(options, inputs); },
          [options] { return dist::reduce_operation(options); }};
}

}  // namespace cuop::executor
