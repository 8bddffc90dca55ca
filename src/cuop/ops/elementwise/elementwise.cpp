#include "cuop/ops/elementwise/elementwise.h"

#include "cuop/backend/current_device.h"
#include "cuop/core/error.h"
#include "cuop/core/of_thread.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/op_table.h"
#include "cuop/jit/recording.h"
#include "cuop/jit/run.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

using jit::Argument;
using jit::kMaxArity;

/// The checked operands of one call.
struct Call {
  const char* who;
  int count = 0;
  std::array<Argument, kMaxArity> arguments;
  std::array<jit::ArgumentType, kMaxArity> types;
  Shape shape;
  Device device = kCpu;

  std::span<const Argument> used() const {
    return std::span(arguments).first(static_cast<size_t>(count));
  }
  std::span<const jit::ArgumentType> used_types() const {
    return std::span(types).first(static_cast<size_t>(count));
  }
};

/// Numbers alone are computed where the output is, else on the current device.
Call check(const char* who, std::span<const Operand* const> operands, const Tensor* out) {
  Call call{.who = who,
            .count = static_cast<int>(operands.size()),
            .arguments = {},
            .types = {},
            .shape = {}};
  const Tensor* first = nullptr;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor* tensor = operands[i]->tensor();
    call.arguments[i] = {tensor, operands[i]->number()};
    call.types[i].number = operands[i]->number();
    if (tensor == nullptr) continue;
    if (!tensor->is_defined()) throw ExecutionError(cat(who, ": a tensor is undefined"));
    call.types[i].dtype = tensor->dtype();
    if (first == nullptr) {
      first = tensor;
      call.shape = tensor->shape();
      call.device = tensor->device();
      continue;
    }
    call.device = common_device(who, {first, tensor});
    if (!(tensor->shape() == call.shape)) {
      call.shape = broadcast_shapes(call.shape, tensor->shape(), who);
    }
  }
  if (first == nullptr) {
    const bool has_output = out != nullptr && out->is_defined();
    call.device = has_output ? out->device() : backend::current_device();
  }
  return call;
}

int kind_rank(DType dtype) {
  if (is_bool(dtype)) return 0;
  if (is_integer(dtype)) return 1;
  return is_floating(dtype) ? 2 : 3;
}

/// The given output, which may be of another dtype of the result's kind or a higher one.
Tensor prepare(const Call& call, DType result, const Tensor* out) {
  if (out == nullptr || !out->is_defined()) {
    return empty_laid_out(jit::layout_of_result(call.shape, call.used()), result, call.device);
  }
  const bool is_convertible = kind_rank(result) <= kind_rank(out->dtype());
  const Tensor prepared = prepare_output(call.who, out, call.shape,
                                         is_convertible ? out->dtype() : result, call.device);
  for (int i = 0; i < call.count; ++i) {
    const Tensor* input = call.arguments[static_cast<size_t>(i)].tensor;
    if (input != nullptr) check_same_or_no_overlap(call.who, prepared, *input, "an input");
  }
  return prepared;
}

/// True for a comparison of a tensor of signed integers with uint64 values, a tensor's or a large
/// number: no common dtype holds both, and float64, to which they promote, would call neighbours
/// beyond 2^53 equal.
bool is_mixed_comparison(int code, const Call& call) {
  if (!jit::is_comparison(code) || call.count != 2) return false;
  const auto is_signed = [&](size_t i) {
    return call.arguments[i].tensor != nullptr && is_signed_integer(call.types[i].dtype);
  };
  const auto is_uint64 = [&](size_t i) {
    const auto [tensor, number] = call.arguments[i];
    return tensor != nullptr ? call.types[i].dtype == DType::kUInt64 : number->is_large();
  };
  return (is_signed(0) && is_uint64(1)) || (is_signed(1) && is_uint64(0));
}

/// int64 beside uint64: a negative value compares as -1 with 0, others as uint64, which holds
/// both.
Tensor compare_mixed(int code, const Call& call, const Tensor* out) {
  const bool is_first_signed =
      call.arguments[0].tensor != nullptr && is_signed_integer(call.types[0].dtype);
  const Argument& with = call.arguments[is_first_signed ? 0 : 1];
  const Argument& without = call.arguments[is_first_signed ? 1 : 0];
  const Tensor as_unsigned = cast(*with.tensor, DType::kUInt64);
  const Tensor below = scalar_tensor(call.who, -1, DType::kInt64, call.device);
  const Operand minus_one(below), zero(0), converted(as_unsigned);
  const Operand other =
      without.tensor != nullptr ? Operand(*without.tensor) : Operand(*without.number);
  const auto in_order = [&](const Operand& a, const Operand& b) {
    const Operand* pair[] = {is_first_signed ? &a : &b, is_first_signed ? &b : &a};
    return detail::elementwise(code, pair, nullptr);
  };
  return where(less(*with.tensor, 0), in_order(minus_one, zero), in_order(converted, other), out);
}

/// The operation that is run: a square for pow(x, 2), which is a product then.
int simplified(int code, Call& call) {
  static const int power = jit::find_op("pow"), square = jit::find_op("square");
  if (code != power || call.arguments[0].tensor == nullptr) return code;
  const Scalar* exponent = call.arguments[1].number;
  if (exponent == nullptr || exponent->to_complex() != 2.0) return code;
  call.count = 1;
  return square;
}

/// Runs the operation as an expression of one node.
void run_now(int code, jit::OpTypes types, const Call& call, const Tensor& result) {
  auto& shared = of_thread([] { return new jit::Expr; });
  jit::Expr expr = std::move(shared);  // taken: a deferred input may run another operation here
  expr.clear();
  std::array<const Tensor*, kMaxArity> leaves{};
  std::array<Scalar, kMaxArity> parameters{false, false, false};
  std::array<int, kMaxArity> nodes{};
  size_t leaf_count = 0, parameter_count = 0;
  const bool is_select = jit::op_table()[static_cast<size_t>(code)].rule == jit::Rule::kSelect;
  for (size_t i = 0; i < static_cast<size_t>(call.count); ++i) {
    const Argument& argument = call.arguments[i];
    if (argument.tensor != nullptr) {
      leaves[leaf_count++] = argument.tensor;
      nodes[i] = expr.add_leaf(argument.tensor->dtype());
    } else {
      parameters[parameter_count++] = *argument.number;
      nodes[i] = expr.add_parameter(is_select && i == 0 ? DType::kBool : types.compute);
    }
  }
  const int node =
      expr.add_op(code, types, std::span(nodes).first(static_cast<size_t>(call.count)));
  expr.add_output(expr.add_cast(node, result.dtype()));
  const Tensor* output = &result;
  jit::run(expr, {call.shape,
                  0,
                  std::span(leaves).first(leaf_count),
                  std::span(parameters).first(parameter_count),
                  {&output, 1}});
  shared = std::move(expr);
}

}  // namespace

namespace detail {

int elementwise_code(const char* name) { return jit::find_op(name); }

Tensor elementwise(int code, std::span<const Operand* const> operands, const Tensor* out) {
  const char* who = jit::op_table()[static_cast<size_t>(code)].name;
  trace::Span span(who, "op");
  if (operands.size() > kMaxArity) {
    throw ExecutionError(cat(who, ": takes at most ", kMaxArity, " operands"));
  }
  Call call = check(who, operands, out);
  if (is_mixed_comparison(code, call)) return compare_mixed(code, call, out);
  const jit::OpTypes types = jit::infer_types(code, call.used_types());
  code = simplified(code, call);
  if (out == nullptr && jit::is_recording()) {
    span.set_category("record");
    return jit::record_op(code, types, call.shape, call.device, call.used());
  }
  const Tensor result = prepare(call, types.result, out);
  if (span.is_open()) [[unlikely]] {
    span.add_bytes(result.nbytes());
    for (const Argument& argument : call.used()) {
      if (argument.tensor != nullptr) span.add_bytes(argument.tensor->nbytes());
    }
  }
  if (result.size() > 0) run_now(code, types, call, result);
  return result;
}

}  // namespace detail

Tensor elementwise(const char* name, std::span<const Operand* const> operands, const Tensor* out) {
  return detail::elementwise(jit::find_op(name), operands, out);
}

}  // namespace cuop
