// What is asked of a BLAS library on any device: row-major matrices, leading dimensions (elements
// between rows) of at least the row length as stored and at least 1.
#pragma once

#include <cstdint>
#include <utility>

#include "cuop/core/linalg.h"

namespace cuop::backend::blas {

/// C [m, n] <- alpha A B + beta C.
template <class T>
struct ProductCall {
  int64_t m = 0, n = 0;
  T alpha = T(1);
  const T* a = nullptr;
  int64_t lda = 1;
  const T* b = nullptr;
  int64_t ldb = 1;
  T beta = T(0);
  T* c = nullptr;
  int64_t ldc = 1;
};

/// With a symmetric A, or with alpha B A.
template <class T>
struct SymmCall : ProductCall<T> {
  Side side = Side::kLeft;
  Uplo uplo = Uplo::kUpper;
};

/// B [m, n] <- alpha op(A)^-1 B, or alpha B op(A)^-1, with a triangular A.
template <class T>
struct TrsmCall {
  Side side = Side::kLeft;
  Uplo uplo = Uplo::kLower;
  Trans trans = Trans::kNone;
  Diag diag = Diag::kNonUnit;
  int64_t m = 0, n = 0;
  T alpha = T(1);
  const T* a = nullptr;
  int64_t lda = 1;
  T* b = nullptr;
  int64_t ldb = 1;
};

constexpr Side opposite(Side side) { return side == Side::kLeft ? Side::kRight : Side::kLeft; }
constexpr Uplo opposite(Uplo uplo) { return uplo == Uplo::kLower ? Uplo::kUpper : Uplo::kLower; }

/// The same call for a library that counts by columns: there every matrix is its transpose, the
/// product of two is the other way round, and op(A)^-1 stays what it is.
template <class Call>
Call by_columns(Call call) {
  call.side = opposite(call.side);
  call.uplo = opposite(call.uplo);
  std::swap(call.m, call.n);
  return call;
}

}  // namespace cuop::backend::blas
