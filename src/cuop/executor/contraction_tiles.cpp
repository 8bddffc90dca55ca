#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/cublaslt.h"
#include "cuop/core/error.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/plan/matmul_plan.h"
#include "cuop/executor/operations.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/einsum/einsum.h"
#include "cuop/ops/einsum/einsum_bytes.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/product_bytes.h"

namespace cuop::executor {
namespace {

constexpr const char* kMatrices = "ij,jk->ik";

/// An equation beside its operands, with the index that is cut into steps.
struct Sum {
  EinsumProblem problem;
  std::string equation;
  PathOptions path;
  std::vector<Header> inputs;
  int step_index = -1;  ///< none: nothing is summed
  DType dtype = DType::kFloat32;
  bool is_of_matrices = false;
  bool is_widened = false;  ///< 16-bit floats are computed in float32, so that steps round once

  Sum(const std::string& text, const PathOptions& order, const std::vector<Header>& given)
      : equation(text), path(order), inputs(given) {
    std::vector<Shape> shapes;
    dtype = inputs.at(0).dtype;
    for (const Header& input : inputs) {
      shapes.push_back(input.shape);
      dtype = promote(dtype, input.dtype);
    }
    problem = einsum_problem(text, shapes);
    // Of tiles too, which would have others by their own sizes: what each takes is known before.
    if (!path.memory_limit) path.order = einsum_path(text, shapes, path).path;
    is_of_matrices = text == kMatrices && inputs[0].dtype == inputs[1].dtype && !path.memory_limit;
    is_widened = dtype == DType::kFloat16 || dtype == DType::kBFloat16;
    for (const Indices& operand : problem.equation.operands) {
      for (const int index : operand) {
        if (has_index(problem.equation.output, index)) continue;
        if (step_index < 0 || size(index) > size(step_index)) step_index = index;
      }
    }
  }

  int64_t size(int index) const { return problem.sizes[static_cast<size_t>(index)]; }

  Box needed(size_t i, const Box& output, Interval step) const {
    const Indices& indices = problem.equation.operands[i];
    const Shape& shape = problem.shapes[i];
    Box box = whole_box(shape);
    for (int dim = 0; dim < shape.ndim(); ++dim) {
      const int index = indices[static_cast<size_t>(dim)];
      if (shape[dim] != size(index)) continue;  // of size 1, stretched
      const Indices& made = problem.equation.output;
      const auto at = std::find(made.begin(), made.end(), index);
      if (at != made.end()) {
        box.set_interval(dim, output.interval(static_cast<int>(at - made.begin())));
      } else if (index == step_index) {
        box.set_interval(dim, clipped(step, shape[dim]));  // which may have no element
      }
    }
    return box;
  }

  /// Of the product of matrices for a tile.
  ProductExtents extents(const Box& output, Interval step) const {
    const Shape a = needed(0, output, step).shape(), b = needed(1, output, step).shape();
    return {a[0], b[1], a[1]};
  }

  Tensor product(const std::vector<Part>& parts) const {
    std::vector<Tensor> operands;
    for (const Part& part : parts) {
      operands.push_back(is_cast() ? cast(part.local, DType::kFloat32) : part.local);
    }
    return is_widened && !is_cast() ? einsum_widened(equation, operands, path)
                                    : cuop::einsum(equation, operands, path);
  }

  /// Bytes that it takes beside the parts and what it makes.
  int64_t product_bytes(const Box& output, Interval step, const WorkFigures& figures) const {
    if (is_of_matrices && output.size() > 1) {  // which is multiplied where it lies
      return cuop::product_bytes(extents(output, step), dtype, is_widened ? DType::kFloat32 : dtype,
                                 figures);
    }
    EinsumOperands operands{{}, {}, figures.is_gpu() ? Device{DeviceType::kCuda, 0} : kCpu};
    std::vector<int64_t> key{figures.multiprocessors, figures.splits_products,
                             figures.spare.has_copies, figures.spare.workspace.value_or(-1)};
    int64_t casts = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape shape = needed(i, output, step).shape();
      operands.shapes.push_back(shape);
      operands.dtypes.push_back(is_cast() ? DType::kFloat32 : inputs[i].dtype);
      if (is_cast()) casts += element_count(shape) * itemsize(DType::kFloat32);
      key.insert(key.end(), shape.begin(), shape.end());
    }
    const int64_t bytes = *known_.get(key, [&]() -> std::optional<int64_t> {
      return einsum_bytes(equation, operands, path, is_widened && !is_cast(), figures);
    });
    return casts + std::min(bytes, path.memory_limit.value_or(bytes));
  }

  /// Multiplications and additions of the best order of pairs.
  double flops() const { return einsum_path(equation, problem.shapes, path).costs.flops; }

 private:
  /// 16-bit floats are copied to float32 first where a memory limit rules out results in float32.
  bool is_cast() const { return is_widened && path.memory_limit; }

  struct KeyHash {
    size_t operator()(const std::vector<int64_t>& key) const {
      const auto* bytes = reinterpret_cast<const char*>(key.data());
      return std::hash<std::string_view>()({bytes, key.size() * sizeof key[0]});
    }
  };
  /// Bytes of tiles: a search for cuts asks for the same ones often.
  mutable SharedLruCache<std::vector<int64_t>, std::optional<int64_t>, KeyHash> known_{4096};
};

Tiling describe(const std::string& name, const std::shared_ptr<const Sum>& sum,
                const std::vector<std::string>& names) {
  const std::vector<Header>& inputs = sum->inputs;
  Tiling tiling;
  tiling.op = name;
  tiling.names = names;
  tiling.inputs = inputs;
  tiling.output = {sum->problem.shape, sum->dtype};
  for (int dim = 0; dim < sum->problem.shape.ndim(); ++dim) tiling.cut_dims.push_back(dim);
  if (sum->step_index >= 0) tiling.summed = std::max<int64_t>(1, sum->size(sum->step_index));
  tiling.flops = sum->flops();
  tiling.computed = sum->dtype;
  tiling.needed = [sum](size_t i, const Box& output, Interval step) {
    return sum->needed(i, output, step);
  };
  if (sum->is_widened) tiling.state_bytes = itemsize(DType::kFloat32);
  tiling.most_workspace = backend::cuda::kGemmWorkspace;
  tiling.is_one_product = inputs.size() == 2;
  tiling.scratch = [sum](const Box& output, Interval step, const WorkFigures& figures) {
    // Where nothing is multiplied any more the sum of all steps is rounded.
    const int64_t rounded = sum->is_widened ? output.size() * itemsize(sum->dtype) : 0;
    return std::max(sum->product_bytes(output, step, figures), rounded);
  };
  if (sum->is_of_matrices) {
    tiling.pace = [sum](const Box& output, Interval step, const WorkFigures& figures) {
      return product_pace(sum->extents(output, step), sum->dtype, figures);
    };
  }
  tiling.make = [sum](const std::vector<Part>& parts, const Box&, Interval) {
    // A view of an operand would be added to.
    const Tensor made = sum->product(parts);
    return parts.size() == 1 ? clone(made) : made;
  };
  tiling.add = [dtype = sum->dtype](Tensor& total, const Tensor& next) {
    if (dtype == DType::kBool) {
      cuop::logical_or(total, next, &total);
    } else {
      cuop::add(total, next, &total);
    }
  };
  if (sum->is_widened) {
    tiling.finish = [dtype = sum->dtype](const Tensor& total) { return cast(total, dtype); };
  }
  return tiling;
}

/// The equation for inputs, after all checks that it does not make itself.
using EquationOf = std::function<std::string(const std::vector<Header>& inputs)>;

TileOperation operation(const std::string& name, const std::string& text,
                        const std::vector<std::string>& names, const EquationOf& equation,
                        const std::function<dist::Operation()>& over_ranks,
                        const PathOptions& path = {}) {
  return {text, names,
          [=](const std::vector<Header>& inputs) {
            if (inputs.size() < names.size()) {
              throw ExecutionError(cat(name, ": ", names[inputs.size()],
                                       " was not given; the inputs are ", join(names)));
            }
            if (inputs.size() > names.size()) {
              throw ExecutionError(
                  cat(name, ": ", names.size(), " arrays are needed, given ", inputs.size()));
            }
            return describe(name, std::make_shared<const Sum>(equation(inputs), path, inputs),
                            names);
          },
          over_ranks};
}

}  // namespace

TileOperation einsum_tiles(const std::string& equation, const PathOptions& path) {
  std::vector<std::string> names;
  for (int i = 0; i < operand_count(equation); ++i) names.push_back(cat("operand ", i));
  return operation(
      "einsum", cat("einsum ", equation, text_of(path)), names,
      [equation](const auto&) { return equation; },
      [=, count = names.size()] { return dist::einsum_operation(equation, count, path); }, path);
}

TileOperation matmul_tiles(const dist::Wire& wire) {
  TileOperation made = operation(
      "matmul", cat("matmul", wire.text()), {"a", "b"},
      [](const auto& inputs) {
        dist::check_matrices("matmul", placements_of({"a", "b"}, inputs));
        return kMatrices;
      },
      [wire] { return dist::matmul_operation(wire); });
  made.describe = [wire, plain = made.describe](const std::vector<Header>& inputs) {
    Tiling tiling = plain(inputs);
    wire.check_carries(tiling.output.dtype, "matmul");
    tiling.wire = wire;
    tiling.line_axes = {1, 0};
    if (wire.form == dist::Wire::Form::kPlain) return tiling;
    // Of an operand what has come, with an exponent for each line, and what is made of it are there
    // for a moment beside its place.
    const bool is_narrow = wire.form == dist::Wire::Form::kNarrow;
    const int64_t narrow = is_narrow ? itemsize(wire.dtype) : 0;
    tiling.scratch = [narrow, plain = tiling.scratch, needed = tiling.needed,
                      inputs = tiling.inputs](const Box& output, Interval step,
                                              const WorkFigures& figures) {
      int64_t most = 0;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Box box = needed(i, output, step);
        const int64_t lines = box.shape()[0] + box.shape()[1];
        most =
            std::max(most, box.size() * (itemsize(inputs[i].dtype) + narrow) + lines * int64_t{8});
      }
      return plain(output, step, figures) + most;
    };
    return tiling;
  };
  return made;
}

TileOperation batch_matmul_tiles() {
  return operation(
      "batch_matmul", "batch_matmul", {"a", "b"},
      [](const auto& inputs) {
        dist::batch_matmul_shape(inputs[0].shape, inputs[1].shape);
        return "...ij,...jk->...ik";
      },
      dist::batch_matmul_operation);
}

TileOperation tensordot_tiles(const dist::TensordotAxes& axes) {
  return operation(
      "tensordot", dist::tensordot_text(axes), {"a", "b"},
      [axes](const auto& inputs) {
        return dist::tensordot_equation({inputs[0].shape, inputs[1].shape}, axes);
      },
      [axes] { return dist::tensordot_operation(axes); });
}

}  // namespace cuop::executor
