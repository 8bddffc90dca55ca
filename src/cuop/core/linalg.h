// The four choices of the BLAS interface, as values.
#pragma once

#include <cstdint>

namespace cuop {

/// On which side of the product the structured matrix stands.
enum class Side : uint8_t { kLeft, kRight };
/// Which triangle of the structured matrix is read; the other one is never touched.
enum class Uplo : uint8_t { kLower, kUpper };
/// op(A): A, its transpose, or its conjugate transpose (the transpose for real dtypes).
enum class Trans : uint8_t { kNone, kTrans, kConjTrans };
/// kUnit takes the diagonal as ones without reading it.
enum class Diag : uint8_t { kNonUnit, kUnit };

}  // namespace cuop
