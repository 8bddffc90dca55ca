#include "cuop/ops/einsum/einsum.h"

#include <algorithm>
#include <iomanip>
#include <memory>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/einsum/einsum_bytes.h"
#include "cuop/ops/einsum/equation.h"
#include "cuop/ops/einsum/memory_plan_internal.h"
#include "cuop/ops/einsum/pair_product_internal.h"
#include "cuop/ops/einsum/run_internal.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

constexpr size_t kMostOrders = 4;  // that are weighed where memory is limited

/// All of a call that does not depend on data.
struct Planned {
  EinsumProblem problem;
  std::vector<ContractionStep> steps;
  Slicing slicing = {};
  int64_t peak = 0;  ///< bytes, where they were asked for
};

/// Lengths or strides as they lie in memory: to write them out takes longer than a short product.
void append(std::string& key, const Dims& dims) {
  const int64_t count = dims.ndim();
  key.append(reinterpret_cast<const char*>(&count), sizeof count);
  key.append(reinterpret_cast<const char*>(dims.begin()),
             static_cast<size_t>(count) * sizeof(int64_t));
}

std::string key_of(std::string_view equation, std::span<const Shape> shapes,
                   const PathOptions& options) {
  std::string key(equation);
  key += ';';
  for (const Shape& shape : shapes) append(key, shape);
  return key + text_of(options);
}

/// Plans, or returns what the same arguments gave before.
template <class Make>
std::shared_ptr<const Planned> remembered(const std::string& key, const Make& make) {
  using Known = LruCache<std::string, std::shared_ptr<const Planned>>;
  auto& known = of_thread([] { return new Known(64); });
  if (const auto* found = known.find(key)) return *found;
  const auto kept = std::make_shared<const Planned>(make());
  known.put(key, kept);
  return kept;
}

std::shared_ptr<const Planned> planned(std::string_view equation, std::span<const Shape> shapes,
                                       const PathOptions& options) {
  return remembered(key_of(equation, shapes, options), [&] {
    Planned made{einsum_problem(equation, shapes), {}};
    made.steps = find_steps(made.problem.contraction, options);
    return made;
  });
}

Planned fitted(EinsumProblem problem, const PathOptions& options,
               const pairwise::CallLayouts& layouts) {
  const auto orders =
      find_orders(problem.contraction, options, options.memory_limit ? kMostOrders : 1);
  pairwise::MemoryPlan plan =
      pairwise::fit_memory(problem.contraction, orders, layouts, options.memory_limit);
  return {std::move(problem), std::move(plan.steps), std::move(plan.slicing), plan.peak};
}

/// Adds up, or puts in its place, what each slice makes.
void run_slices(const Planned& plan, const std::vector<Tensor>& operands, DType dtype,
                const Tensor& out) {
  const Contraction& contraction = plan.problem.contraction;
  const int64_t added = added_slices(contraction, plan.slicing);
  const auto count = static_cast<int64_t>(slice_count(plan.slicing));
  pairwise::SliceSums sums;
  for (int64_t number = 0; number < count; ++number) {
    check_interrupt();
    const std::vector<Interval> intervals = slice_intervals(contraction, plan.slicing, number);
    const Contraction slice = slice_within(contraction, intervals);
    std::vector<Tensor> parts;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Layout layout =
          pairwise::sliced_layout(operands[i].layout(), contraction.inputs[i], intervals);
      parts.push_back(cast(operands[i].with_layout(layout), dtype));
    }
    const Tensor block =
        out.with_layout(pairwise::sliced_layout(out.layout(), contraction.output, intervals));
    if (added == 1) {
      pairwise::run_steps(slice, plan.steps, std::move(parts), block);
      continue;
    }
    const Tensor made = pairwise::run_steps(slice, plan.steps, std::move(parts), {});
    sums.add(made, block, number % added, added);
  }
}

/// A view of the result without the dimensions that the contraction drops, and back.
Layout dropped(const EinsumProblem& problem, const Layout& layout) {
  Layout kept{{}, {}, layout.offset};
  for (int dim = 0; dim < layout.ndim(); ++dim) {
    if (problem.shape[dim] == 1) continue;
    kept.shape.push_back(layout.shape[dim]);
    kept.strides.push_back(layout.strides[dim]);
  }
  return kept;
}
Layout restored(const EinsumProblem& problem, const Layout& kept) {
  Layout layout{{}, {}, kept.offset};
  int next = 0;
  for (int dim = 0; dim < problem.shape.ndim(); ++dim) {
    const bool is_kept = problem.shape[dim] != 1;
    layout.shape.push_back(is_kept ? kept.shape[next] : 1);
    layout.strides.push_back(is_kept ? kept.strides[next] : 1);
    if (is_kept) ++next;
  }
  return layout;
}

void check_count(std::string_view equation, size_t operands) {
  if (operands > 0) return;
  throw ExecutionError(cat("einsum: no operand was given for \"", equation, "\"; it needs ",
                           operand_count(equation)));
}

/// The plan that keeps to the limit for operands that lie so; how they lie is part of its key.
std::shared_ptr<const Planned> planned_within(std::string_view equation,
                                              std::span<const Tensor> operands,
                                              std::span<const Shape> shapes,
                                              const PathOptions& options, DType dtype,
                                              const Tensor* out) {
  std::string key = cat(key_of(equation, shapes, options), ", ", operands[0].device());
  for (const Tensor& operand : operands) {
    key += static_cast<char>(operand.dtype());
    append(key, operand.strides());
  }
  if (out != nullptr) append(key, out->strides());
  return remembered(key, [&] {
    EinsumProblem problem = einsum_problem(equation, shapes);
    pairwise::CallLayouts layouts;
    layouts.dtype = dtype;
    layouts.device = operands[0].device();
    for (size_t i = 0; i < operands.size(); ++i) {
      layouts.operands.push_back(pairwise::diagonal_view(operands[i], problem.equation.operands[i],
                                                         problem.contraction.inputs[i])
                                     .layout());
      layouts.dtypes.push_back(operands[i].dtype());
    }
    if (out != nullptr) layouts.out = dropped(problem, out->layout());
    return fitted(std::move(problem), options, layouts);
  });
}

/// What a call is computed in, and what its result is.
struct CallDtypes {
  DType computed, result;
};
CallDtypes call_dtypes(DType promoted, const std::vector<ContractionStep>& steps, bool is_widened) {
  const DType wide = compute_dtype(promoted);
  const bool is_narrow = is_widened && is_floating(promoted) && wide != promoted;
  if (!is_narrow) return {promoted, promoted};
  // One pair rounds nothing that it does not put into the result.
  const bool is_pair = steps.size() == 1 && steps[0].is_pair();
  return {is_pair ? promoted : wide, wide};
}

Tensor contracted(std::string_view equation, std::span<const Tensor> operands,
                  const PathOptions& options, const Tensor* out, bool is_widened) {
  trace::Span span("einsum", "op");
  check_count(equation, operands.size());
  std::vector<Shape> shapes;
  DType dtype = operands[0].dtype();
  for (const Tensor& operand : operands) {
    shapes.push_back(operand.shape());
    dtype = promote(dtype, operand.dtype());
    common_device("einsum", {&operands[0], &operand, out});
  }
  if (options.memory_limit && out != nullptr) {  // whose layout the plan reads
    prepare_output("einsum", out, einsum_problem(equation, shapes).shape, dtype,
                   operands[0].device());
  }
  const std::shared_ptr<const Planned> plan =
      options.memory_limit ? planned_within(equation, operands, shapes, options, dtype, out)
                           : planned(equation, shapes, options);
  const EinsumProblem& problem = plan->problem;
  if (span.is_open()) {
    span.add_flops(sliced_flops(problem.contraction, plan->steps, plan->slicing));
  }
  const CallDtypes dtypes = call_dtypes(dtype, plan->steps, is_widened);
  std::optional<Tensor> target;
  Tensor result;
  if (out != nullptr || operands.size() > 1 || !plan->slicing.empty()) {
    result = prepare_output("einsum", out, problem.shape, dtypes.result, operands[0].device());
    for (size_t i = 0; i < operands.size(); ++i) {
      check_no_overlap("einsum", result, operands[i], cat("operand ", i).c_str());
    }
    target = result.with_layout(dropped(problem, result.layout()));
  }
  std::vector<Tensor> views;
  for (size_t i = 0; i < operands.size(); ++i) {
    views.push_back(pairwise::diagonal_view(operands[i], problem.equation.operands[i],
                                            problem.contraction.inputs[i]));
  }
  if (!plan->slicing.empty()) {
    run_slices(*plan, views, dtype, *target);
    return result;
  }
  for (Tensor& view : views) view = cast(view, dtypes.computed);
  const Tensor made =
      pairwise::run_steps(problem.contraction, plan->steps, std::move(views), target);
  return target ? result : made.with_layout(restored(problem, made.layout()));
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands,
              const PathOptions& options, const Tensor* out) {
  return contracted(equation, operands, options, out, false);
}

Tensor einsum_widened(std::string_view equation, std::span<const Tensor> operands,
                      const PathOptions& options) {
  if (options.memory_limit) throw ExecutionError("einsum_widened: it keeps to no memory limit");
  return contracted(equation, operands, options, nullptr, true);
}

int64_t einsum_bytes(std::string_view equation, const EinsumOperands& operands,
                     const PathOptions& options, bool is_widened, const WorkFigures& figures) {
  const EinsumProblem problem = einsum_problem(equation, operands.shapes);
  const Contraction& contraction = problem.contraction;
  const std::vector<ContractionStep> steps = find_steps(contraction, options);
  DType promoted = operands.dtypes.at(0);
  for (const DType each : operands.dtypes) promoted = promote(promoted, each);
  const CallDtypes dtypes = call_dtypes(promoted, steps, is_widened);
  pairwise::RunSizes sizes;
  sizes.dtype = dtypes.computed;
  sizes.widened = dtypes.result;
  sizes.device = operands.device;
  sizes.figures = figures;
  for (size_t i = 0; i < operands.shapes.size(); ++i) {
    const Tensor given(nullptr, contiguous_layout(operands.shapes[i]), operands.dtypes[i]);
    Layout layout =
        pairwise::diagonal_view(given, problem.equation.operands[i], contraction.inputs[i])
            .layout();
    const bool is_cast = operands.dtypes[i] != dtypes.computed;
    if (is_cast) layout = contiguous_layout(layout.shape);
    sizes.held.push_back(is_cast ? layout.size() * itemsize(dtypes.computed) : 0);
    sizes.operands.push_back(std::move(layout));
  }
  if (operands.shapes.size() > 1) {
    sizes.out = contiguous_layout(contraction.shape(contraction.output));
  }
  return pairwise::run_bytes(contraction, steps, sizes);
}

EinsumPath einsum_path(std::string_view equation, std::span<const Shape> shapes,
                       const PathOptions& options, DType dtype) {
  check_count(equation, shapes.size());
  const std::shared_ptr<const Planned> plan =
      remembered(cat(key_of(equation, shapes, options), ", path of ", dtype), [&] {
        EinsumProblem problem = einsum_problem(equation, shapes);
        pairwise::CallLayouts layouts;
        layouts.dtype = dtype;
        for (const Indices& input : problem.contraction.inputs) {
          layouts.operands.push_back(contiguous_layout(problem.contraction.shape(input)));
          layouts.dtypes.push_back(dtype);
        }
        return fitted(std::move(problem), options, layouts);
      });
  const Contraction& contraction = plan->problem.contraction;
  EinsumPath path;
  path.equation = equation;
  path.path = linear_path(contraction, plan->steps);
  path.costs = path_costs(contraction, plan->steps);
  path.dtype = dtype;
  path.peak_bytes = plan->peak;
  path.slices = static_cast<int64_t>(slice_count(plan->slicing));
  path.added_flops = sliced_flops(contraction, plan->steps, plan->slicing) - path.costs.flops;
  for (const SlicedIndex& each : plan->slicing) {
    path.sliced.push_back({term_of(plan->problem.equation, {each.index}), each.pieces});
  }
  const std::vector<Indices> tensors = contraction.tensors(plan->steps);
  const auto name = [&](int number) {
    return term_of(plan->problem.equation, tensors[static_cast<size_t>(number)]);
  };
  for (const ContractionStep& step : plan->steps) {
    const std::string right = step.is_pair() ? cat(',', name(step.right)) : "";
    path.steps.push_back(
        cat(name(step.left), right, "->", term_of(plan->problem.equation, step.result)));
  }
  return path;
}

std::string EinsumPath::to_string() const {
  std::ostringstream text;
  text << std::setprecision(4);
  text << "einsum " << equation << '\n'
       << "  naive flops           " << costs.naive_flops << '\n'
       << "  flops in this order   " << costs.flops << '\n'
       << "  speedup               " << speedup() << '\n'
       << "  largest intermediate  " << costs.largest_intermediate << " elements\n"
       << "  peak of " << dtype << std::string(14 - std::string(cuop::name(dtype)).size(), ' ')
       << format_bytes(peak_bytes) << '\n';
  if (slices > 1) {
    std::vector<std::string> cuts;
    for (const auto& [index, pieces] : sliced) cuts.push_back(cat(index, " in ", pieces));
    text << "  slices                " << slices << " (" << join(cuts) << ")\n"
         << "  flops added by them   " << added_flops << '\n';
  }
  for (const std::string& step : steps) text << "  " << step << '\n';
  return text.str();
}

}  // namespace cuop
