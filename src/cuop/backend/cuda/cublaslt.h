// Matrix products of cuBLASLt on the current device, with a cache of plans. Row-major, as the rest
// of cuOP; the library itself counts by columns.
#pragma once

#include "cuop/core/dtype.h"
#include "cuop/core/linalg.h"
#include "cuop/core/scalar.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// c[m,n] <- alpha * op(a)[m,k] @ op(b)[k,n] + beta * c for `batch` products. kNone: stored as
/// written; kTrans, kConjTrans: stored as the transpose. Leading dimensions (from one stored row to
/// the next) and strides (from one product to the next, 0 for the same matrix again) in elements.
struct GemmShape {
  DType dtype = DType::kFloat32;
  Trans trans_a = Trans::kNone, trans_b = Trans::kNone;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;
  int64_t batch = 1;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  bool operator==(const GemmShape&) const = default;
};

/// True for float16, bfloat16, float32, float64, complex64 and complex128.
bool has_gemm(DType dtype);

/// Runs the product on the stream. float32 is computed in IEEE float32; float16 and bfloat16 are
/// accumulated in float32 and rounded once. `who` names the operator in errors: DeviceError when
/// there is no cuBLASLt, ExecutionError for what it refuses.
void gemm(const char* who, const GemmShape& shape, const Scalar& alpha, const void* a,
          const void* b, const Scalar& beta, void* c, Stream stream);

}  // namespace cuop::backend::cuda
