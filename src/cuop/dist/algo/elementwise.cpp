#include "cuop/dist/algo/elementwise.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <sstream>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/operations.h"
#include "cuop/dist/algo/pieces.h"
#include "cuop/dist/exec/call.h"
#include "cuop/jit/op_table.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

int longest_dim(const Shape& shape) {
  return static_cast<int>(std::max_element(shape.begin(), shape.end()) - shape.begin());
}

/// An operation of the table and its numbers, by position; nullopt where a tensor stands.
struct Elementwise {
  int code = 0;
  std::vector<std::optional<Scalar>> numbers;

  const char* who() const { return jit::op_table()[static_cast<size_t>(code)].name; }
  static std::string name_of(size_t position) { return {static_cast<char>('a' + position)}; }

  /// With every number exactly, as it decides dtypes and values.
  std::string text() const {
    const auto is_number = [](const auto& number) { return number.has_value(); };
    if (std::ranges::none_of(numbers, is_number)) return who();  // made for every call
    std::vector<std::string> parts;
    for (size_t i = 0; i < numbers.size(); ++i) {
      std::ostringstream part;
      part.precision(17);
      if (numbers[i]) {
        part << numbers[i]->natural_dtype() << ' ' << *numbers[i];
      } else {
        part << name_of(i);
      }
      parts.push_back(part.str());
    }
    return cat(who(), '(', join(parts), ')');
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!numbers[i]) result.push_back(name_of(i));
    }
    return result;
  }

  /// Of the result for tensors of these dtypes; DTypeError as for one tensor.
  DType result_dtype(const std::vector<DType>& dtypes) const {
    std::vector<jit::ArgumentType> types;
    auto dtype = dtypes.begin();
    for (const auto& number : numbers) {
      types.push_back(number ? jit::ArgumentType{.number = &*number}
                             : jit::ArgumentType{.dtype = *dtype++});
    }
    return jit::infer_types(code, types).result;
  }

  Tensor compute(const std::vector<Tensor>& tensors, const Tensor* out = nullptr) const {
    std::vector<Operand> operands;
    auto tensor = tensors.begin();
    for (const auto& number : numbers) {
      operands.push_back(number ? Operand(*number) : Operand(*tensor++));
    }
    std::vector<const Operand*> list;
    for (const Operand& operand : operands) list.push_back(&operand);
    return detail::elementwise(code, list, out);
  }
};

/// How the whole result lies that is made where this input is: its sharding, where the input is
/// not stretched along a dimension that is split. A copy of it on every rank makes all of the
/// result on every rank only when it is as large.
std::optional<Sharding> stretched(const Placement& input, const Shape& result) {
  const Sharding& as_is = input.sharding;
  if (as_is.single_rank() >= 0) return std::nullopt;
  if (input.shape == result) return as_is;
  if (as_is.is_replicated()) return std::nullopt;
  const int added = result.ndim() - input.shape.ndim();
  std::vector<Spec::Axes> dims(static_cast<size_t>(result.ndim()));
  for (int dim = 0; dim < input.shape.ndim(); ++dim) {
    const Spec::Axes& axes = as_is.spec().axes(dim);
    if (!axes.empty() && input.shape[dim] != result[dim + added]) return std::nullopt;
    dims[static_cast<size_t>(dim + added)] = axes;
  }
  Sharding sharding(as_is.mesh(), Spec(std::move(dims)));
  for (const auto& [dim, sizes] : as_is.blocks()) {
    sharding = sharding.with_blocks(dim + added, sizes);
  }
  return sharding;
}

Mapping describe(const Elementwise& work, const std::vector<Placement>& inputs,
                 const std::string& strategy) {
  const std::vector<std::string> names = work.names();
  if (inputs.size() != names.size()) {
    throw ExecutionError(cat(work.who(), ": ", names.at(inputs.size()), " was not given"));
  }
  Mapping mapping;
  mapping.op = work.who();
  std::vector<DType> dtypes;
  for (const Placement& input : inputs) {
    mapping.shape = broadcast_shapes(mapping.shape, input.shape, work.who());
    dtypes.push_back(input.dtype);
  }
  mapping.dtype = work.result_dtype(dtypes);
  mapping.is_elementwise = true;
  mapping.needed = [inputs](size_t i, const Box& box) {
    return broadcast_source(box, inputs[i].shape);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (const auto sharding = stretched(inputs[i], mapping.shape)) {
      mapping.choices.push_back({cat("keep_", names[i]), *sharding});
    }
  }
  // Results stay with their inputs where they can, so that chains of operations move nothing.
  if (mapping.choices.empty() || strategy == "row") {
    mapping.choices.push_back(
        {"row", split_over_ranks(inputs[0].sharding.mesh().size(), mapping.shape.ndim(),
                                 longest_dim(mapping.shape))});
  }
  mapping.work = [work](const std::vector<Part>& parts, const Box&, const Tensor* out) {
    std::vector<Tensor> tensors;
    for (const Part& part : parts) tensors.push_back(part.local);
    return work.compute(tensors, out);
  };
  return mapping;
}

Operation operation_of(const Elementwise& work) {
  Operation operation = map_operation(work.text(), work.names(), std::bind_front(describe, work));
  operation.alone = [work](const Plan&, const std::vector<Tensor>& inputs) {
    return work.compute(inputs);
  };
  return operation;
}

Elementwise binary_work(const char* name) {
  return {jit::find_op(name), {std::nullopt, std::nullopt}};
}

Operation binary(const char* name) { return operation_of(binary_work(name)); }

Box swapped_box(Box box, int dim0, int dim1) {
  std::swap(box.low[dim0], box.low[dim1]);
  std::swap(box.high[dim0], box.high[dim1]);
  return box;
}

/// The distributed operands of the call, and what is to be done with them.
std::pair<Elementwise, std::vector<DistTensor>> split_operands(
    int code, std::span<const DistOperand* const> operands) {
  std::pair<Elementwise, std::vector<DistTensor>> result;
  result.first.code = code;
  for (const DistOperand* operand : operands) {
    if (const DistTensor* tensor = operand->tensor()) {
      if (!tensor->is_defined()) {
        throw ExecutionError(cat(result.first.who(), ": a distributed tensor is undefined"));
      }
      result.second.push_back(*tensor);
      result.first.numbers.emplace_back();
    } else {
      result.first.numbers.emplace_back(*operand->number());
    }
  }
  if (result.second.empty()) {
    throw ExecutionError(cat(result.first.who(), ": no distributed tensor was given"));
  }
  return result;
}

}  // namespace

const Operation& add_operation() {
  static const auto* const operation = new Operation(binary("add"));  // threads may outlive statics
  return *operation;
}

Operation transpose_operation(int64_t dim0, int64_t dim1) {
  return map_operation(cat("transpose dims ", dim0, ", ", dim1), {"x"},
                       transpose_mapping(dim0, dim1));
}

DescribeMapping add_mapping() { return std::bind_front(describe, binary_work("add")); }

DescribeMapping transpose_mapping(int64_t dim0, int64_t dim1) {
  return [=](const std::vector<Placement>& inputs, const std::string& strategy) {
    const Placement& x = inputs.at(0);
    const int a = normalize_axis(dim0, x.shape.ndim(), "transpose");
    const int b = normalize_axis(dim1, x.shape.ndim(), "transpose");
    Mapping mapping;
    mapping.op = "transpose";
    mapping.shape = x.shape;
    std::swap(mapping.shape[a], mapping.shape[b]);
    mapping.dtype = x.dtype;
    mapping.flops_per_element = 0;
    mapping.is_elementwise = true;
    mapping.needed = [a, b](size_t, const Box& box) { return swapped_box(box, a, b); };
    if (x.sharding.single_rank() < 0) {
      mapping.choices.push_back({"keep", x.sharding.swapped(a, b, x.shape.ndim())});
    }
    if (mapping.choices.empty() || strategy == "row") {
      mapping.choices.push_back(
          {"row", split_over_ranks(x.sharding.mesh().size(), x.shape.ndim(), a)});
    }
    mapping.work = [a, b](const std::vector<Part>& parts, const Box&, const Tensor*) {
      return swap_axes(parts[0].local, a, b);
    };
    return mapping;
  };
}

DistTensor elementwise(int code, std::span<const DistOperand* const> operands,
                       const CallOptions& options) {
  const auto [work, tensors] = split_operands(code, operands);
  if (tensors.size() > 1 || options.output || !options.strategy.empty()) {
    return run_sharded(operation_of(work), tensors, options);
  }
  const DistTensor& x = tensors[0];
  const DType dtype = work.result_dtype({x.dtype()});
  const Tensor local = x.local().is_defined() ? work.compute({x.local()}) : Tensor();
  return DistTensor(x.comm_ptr(), x.sharding(), x.shape(), dtype, local, x.device());
}

DistTensor elementwise(const char* name, std::span<const DistOperand* const> operands,
                       const CallOptions& options) {
  return elementwise(jit::find_op(name), operands, options);
}

void elementwise_in_place(int code, const DistTensor& x, const DistOperand& y) {
  const DistOperand self(x);
  const std::array<const DistOperand*, 2> both{&self, &y};
  const auto [given, tensors] = split_operands(code, both);
  const Elementwise& work = given;
  const Tensor target = x.local().is_defined() ? x.local() : empty({0}, x.dtype(), x.device());
  if (y.number() != nullptr) {
    work.compute({target}, &target);
    return;
  }
  const std::string who = work.who();
  bring_pieces(
      cat(who, " in place"), x, *y.tensor(), {x.shape(), x.sharding().owner_boxes(x.shape())},
      [&](const Tensor& none) {
        const Tensor nothing = empty({0}, x.dtype(), x.device());
        work.compute({nothing, none}, &nothing);  // the dtypes
      },
      [&](const Tensor& piece) {
        work.compute({target, piece}, &target);
      });
}

DistTensor add(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(add_operation(), {a, b}, options);
}

DistTensor subtract(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(binary("subtract"), {a, b}, options);
}

DistTensor multiply(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(binary("multiply"), {a, b}, options);
}

DistTensor divide(const DistTensor& a, const DistTensor& b, const CallOptions& options) {
  return run_sharded(binary("divide"), {a, b}, options);
}

DistTensor transpose(const DistTensor& x, int64_t dim0, int64_t dim1, const CallOptions& options) {
  return run_sharded(transpose_operation(dim0, dim1), {x}, options);
}

Tensor add_from_root(const CommunicatorPtr& comm, const Tensor& a, const Tensor& b,
                     const CallOptions& options) {
  return run_rooted(comm, add_operation(), {a, b}, options);
}

Tensor transpose_from_root(const CommunicatorPtr& comm, const Tensor& x, int64_t dim0, int64_t dim1,
                           const CallOptions& options) {
  return run_rooted(comm, transpose_operation(dim0, dim1), {x}, options);
}

}  // namespace cuop::dist
