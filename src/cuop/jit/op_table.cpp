#include "cuop/jit/op_table.h"

#include <array>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/kernels/op_list.h"

namespace cuop::jit {

namespace {

/// "cuop::jit::fn::Add" from what the compiler calls this function.
template <class F>
constexpr std::string_view type_name() {
  constexpr std::string_view kBefore = "F = ";
  const std::string_view text = __PRETTY_FUNCTION__;
  const size_t begin = text.find(kBefore) + kBefore.size();
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

template <class... F>
constexpr auto rows_of(FunctorList<F...>) {
  return std::array{OpInfo{F::name, F::doc, F::arity, F::kinds, F::rule, F::cost, F::parameters,
                           F::ulps, type_name<F>()}...};
}

constexpr auto kRows = rows_of(ElementwiseOps{});

unsigned kind_of(DType dtype) {
  if (is_bool(dtype)) return kBools;
  if (is_integer(dtype)) return kIntegers;
  return is_floating(dtype) ? kFloats : kComplexes;
}

[[noreturn]] void refuse(const OpInfo& op, DType given) {
  const std::vector<DType> allowed = argument_dtypes(op);
  throw_unsupported_dtype(op.name, given, allowed.data(), static_cast<int>(allowed.size()));
}

/// The dtype in which all arguments meet: tensors first, then the numbers beside them.
DType common_dtype(std::span<const ArgumentType> arguments) {
  bool has_tensor = false;
  DType common = DType::kBool;
  for (const ArgumentType& argument : arguments) {
    if (argument.number != nullptr) continue;
    common = has_tensor ? promote(common, argument.dtype) : argument.dtype;
    has_tensor = true;
  }
  for (const ArgumentType& argument : arguments) {
    if (argument.number == nullptr) continue;
    common = has_tensor ? argument.number->promote_with(common)
                        : promote(common, argument.number->natural_dtype());
  }
  return common;
}

}  // namespace

std::span<const OpInfo> op_table() { return kRows; }

int find_op(std::string_view name) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (name == kRows[i].name) return static_cast<int>(i);
  }
  throw ExecutionError(cat("elementwise: there is no operation '", name, "'"));
}

bool is_comparison(int code) {
  return code >= op_code<fn::Equal> && code <= op_code<fn::GreaterEqual>;
}

bool accepts(const OpInfo& op, DType dtype) {
  if ((op.kinds & kNo16Bit) != 0 && is_16bit(dtype)) return false;
  return (op.kinds & kind_of(dtype)) != 0;
}

std::vector<DType> argument_dtypes(const OpInfo& op) {
  std::vector<DType> allowed;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (accepts(op, op.rule == Rule::kInexact ? to_inexact(dtype) : dtype)) {
      allowed.push_back(dtype);
    }
  }
  return allowed;
}

OpTypes infer_types(int code, std::span<const ArgumentType> arguments) {
  const OpInfo& op = kRows[static_cast<size_t>(code)];
  if (static_cast<int>(arguments.size()) != op.arity) {
    throw ExecutionError(
        cat(op.name, ": takes ", op.arity, " arguments, ", arguments.size(), " were given"));
  }
  const bool is_select = op.rule == Rule::kSelect;
  const auto values = is_select ? arguments.subspan(1) : arguments;
  const DType given = common_dtype(values);
  DType compute = op.rule == Rule::kInexact ? to_inexact(given) : given;
  if (!accepts(op, compute)) refuse(op, given);
  if (is_integer(compute)) {
    for (const ArgumentType& argument : values) {
      if (argument.number == nullptr || argument.number->fits(compute)) continue;
      if (!is_comparison(code)) argument.number->check_fits(op.name, compute);
      if (argument.number->is_large()) {
        // What is signed meets such a number as compare_mixed of ops/elementwise has it.
        compute = is_unsigned_integer(compute) ? DType::kUInt64 : DType::kFloat64;
      } else {
        // Every uint64 is above a negative number, which rounding to float64 keeps.
        compute = compute == DType::kUInt64 ? DType::kFloat64 : DType::kInt64;
      }
    }
  }
  DType result = compute;
  if (op.rule == Rule::kBool) result = DType::kBool;
  if (op.rule == Rule::kReal) result = real_dtype(compute);
  return {compute, result};
}

}  // namespace cuop::jit
