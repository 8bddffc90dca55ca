// Finding the BLAS library and its symbols. Only blas.cpp calls through them.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/noncopyable.h"

namespace cuop::backend::blas {

struct Info {
  bool is_available = false;
  std::string path;     ///< the file in use, "" when there is none
  std::string version;  ///< what the library says of itself, "" when it says nothing
  std::string core;     ///< the kernels it chose for this processor
  int integer_bits = 0;
  bool is_thread_controlled = false;  ///< false: a library whose threads cannot be told
  std::string reason;                 ///< why there is none, and what to install
};
/// Looks for the library on first use; never throws.
const Info& info();

/// The kernels that OPENBLAS_CORETYPE should ask for where OpenBLAS has chosen `core` on a
/// processor of this level: of one that is younger than itself it takes the oldest that there are,
/// which are several times slower. "" where its choice is good.
std::string better_core(std::string_view core, isa::Level level);

/// Holds the library at one thread for the time of its life and gives it back what it had. Nested
/// and concurrent holders share one setting. Calls below take one where they need it; code that
/// makes many small calls holds one around them. DeviceError when there is no library.
class SerialScope : NonCopyable {
 public:
  SerialScope();
  ~SerialScope();
};

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
  int (*stop_threads)() = nullptr;  ///< OpenBLAS's own, which the next call starts again

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
/// serial, it has not been told otherwise, and all of them have room (blas_room.h).
bool has_own_threads(int64_t threads);

}  // namespace cuop::backend::blas
