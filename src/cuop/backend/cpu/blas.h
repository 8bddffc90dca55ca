// The CPU's BLAS library, found at run time through its C interface (any OpenBLAS, or a library
// with plain cblas_ names; 32-bit or 64-bit integers; NumPy's renamed symbols). All matrices are
// row-major. A product that may have every core runs on the library's own threads: they wait
// spinning after a call (NumPy's as well as ours, where both share the library), so a second pool
// beside them would have to fight for the cores. A caller with a share of the cores (a rank that is
// a thread, a batch) keeps the library at one thread and splits the work over cuOP's own pool, so
// that concurrent callers neither wait for each other nor oversubscribe.
#pragma once

#include <complex>
#include <cstdint>

#include "cuop/backend/blas_calls.h"
#include "cuop/backend/cpu/blas_library.h"
#include "cuop/core/linalg.h"

namespace cuop::backend::blas {

/// C [m, n] <- alpha op(A) op(B) + beta C, of which op(A) is [m, k].
template <class T>
struct GemmCall : ProductCall<T> {
  Trans trans_a = Trans::kNone;
  Trans trans_b = Trans::kNone;
  int64_t k = 0;

  /// The part of it that makes so many rows and columns of C, from this row and column on.
  GemmCall block(int64_t row, int64_t column, int64_t rows, int64_t columns) const {
    GemmCall part = *this;
    part.m = rows;
    part.n = columns;
    part.a += trans_a == Trans::kNone ? row * this->lda : row;
    part.b += trans_b == Trans::kNone ? column : column * this->ldb;
    part.c += row * this->ldc + column;
    return part;
  }
};

/// y <- alpha op(A) x + beta y for A [m, n]; increments in elements, not 0.
template <class T>
struct GemvCall {
  Trans trans = Trans::kNone;
  int64_t m = 0, n = 0;
  T alpha = T(1);
  const T* a = nullptr;
  int64_t lda = 1;
  const T* x = nullptr;
  int64_t incx = 1;
  T beta = T(0);
  T* y = nullptr;
  int64_t incy = 1;
};

// For float, double, std::complex<float> and std::complex<double>. On thread_count() threads when
// that pays; sizes beyond the library's integers are a ShapeError.
template <class T>
void gemm(const GemmCall<T>& call);
/// The same on the calling thread alone; the caller holds a SerialScope.
template <class T>
void gemm_serial(const GemmCall<T>& call);
template <class T>
void gemv(const GemvCall<T>& call);
template <class T>
void symm(const SymmCall<T>& call);
template <class T>
void trsm(const TrsmCall<T>& call);

}  // namespace cuop::backend::blas
