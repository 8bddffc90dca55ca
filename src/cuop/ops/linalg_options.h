// The options of matrix products and of the BLAS operations.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <variant>

#include "cuop/core/dtype.h"
#include "cuop/core/linalg.h"
#include "cuop/core/scalar.h"

namespace cuop {

/// C <- alpha * op(A) @ op(B) + beta * C, op swapping the last two axes when asked, and conjugating
/// too for Trans::kConjTrans.
struct MatmulOptions {
  TransLike trans_a{};  ///< false or true, a Trans, or its name
  TransLike trans_b{};
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`, whose values are then an input; 0 never reads them
  /// Of the result: the promoted dtype of A and B, which is also what is taken where none is given,
  /// or float32 where that is float16 or bfloat16. DTypeError for any other.
  std::optional<DType> dtype = {};
};

/// op(A), op(B): as they are, transposed, or conjugated and transposed.
struct GemmOptions {
  Trans trans_a = Trans::kNone;
  Trans trans_b = Trans::kNone;
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`
};

struct GemvOptions {
  Trans trans = Trans::kNone;
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`
};

struct SymmOptions {
  Side side = Side::kLeft;
  Uplo uplo = Uplo::kUpper;
  Scalar alpha = 1;
  Scalar beta = 0;  ///< not 0 needs `out`
};

struct TrsmOptions {
  Side side = Side::kLeft;
  Uplo uplo = Uplo::kLower;
  Trans trans = Trans::kNone;
  Diag diag = Diag::kNonUnit;
  Scalar alpha = 1;
};

/// The element that a dot product amounts to: int64_t or uint64_t for signed or unsigned integers,
/// double for floating and std::complex<double> for complex dtypes.
using DotValue = std::variant<int64_t, uint64_t, double, std::complex<double>>;

}  // namespace cuop
