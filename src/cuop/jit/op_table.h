// The elementwise table as run-time data: names, documentation and type rules of every operation.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cuop/core/scalar.h"
#include "cuop/jit/op_kind.h"

namespace cuop::jit {

struct OpInfo {
  const char* name;
  const char* doc;
  int arity;
  unsigned kinds;
  Rule rule;
  int cost;
  const char* const* parameters;  ///< the names of the `arity` arguments
  Ulps ulps;                      ///< largest errors of a function of one real argument
  std::string_view functor;       ///< the C++ type, as kernel text names it
};

inline constexpr int kMaxArity = 3;

/// All rows; an operation's code is its index.
std::span<const OpInfo> op_table();
/// The code of the operation of this name; ExecutionError when there is none.
int find_op(std::string_view name);

/// The type of one argument: a tensor's dtype, or a number that follows the tensors.
struct ArgumentType {
  DType dtype = DType::kFloat32;
  const Scalar* number = nullptr;  ///< not owned; null for a tensor
};

struct OpTypes {
  DType compute;  ///< what the arguments are converted to (bool for the first one of kSelect)
  DType result;
};

/// NumPy 2's promotion under the operation's rule. DTypeError naming the operation and the dtypes
/// it takes, or the number that the computation's dtype cannot hold.
OpTypes infer_types(int code, std::span<const ArgumentType> arguments);
/// True for equal, less and the like.
bool is_comparison(int code);
/// Float16 and bfloat16: kept in 16 bits, computed in float32.
inline bool is_16bit(DType dtype) { return compute_dtype(dtype) != dtype; }
/// True when the operation can be computed in this dtype.
bool accepts(const OpInfo& op, DType dtype);
/// The dtypes that an argument may have.
std::vector<DType> argument_dtypes(const OpInfo& op);

}  // namespace cuop::jit
