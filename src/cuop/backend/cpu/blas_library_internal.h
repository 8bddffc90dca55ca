// Internal: finding the BLAS library and its symbols. Only blas.cpp calls through them.
#pragma once

#include <complex>
#include <type_traits>

#include "cuop/backend/cpu/blas.h"

namespace cuop::backend::blas {

/// The C functions of one element type, untyped because their integer width is known at run time.
struct Functions {
  void* gemm = nullptr;
  void* gemv = nullptr;
  void* symm = nullptr;
  void* trsm = nullptr;
};

struct Library {
  Info info;
  Functions functions[4];  ///< s, d, c, z
  int (*get_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;

  template <class T>
  const Functions& of() const {
    constexpr bool is_wide = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>;
    return functions[(std::is_floating_point_v<T> ? 0 : 2) + (is_wide ? 1 : 0)];
  }
};

/// The library, found on first use.
const Library& library();
/// The same; DeviceError that says what to install when there is none.
const Library& require_library();
/// Whether one call would run on exactly `threads` threads of the library's own: nobody holds it
/// serial, and it has not been told otherwise.
bool has_own_threads(int64_t threads);

}  // namespace cuop::backend::blas
