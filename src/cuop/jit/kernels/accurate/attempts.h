// What loops over arrays try first: forms for the arguments that are usual, with fused operations
// where the processor has them. The functors know which arguments are not covered.
#pragma once

#include "cuop/jit/kernels/accurate/circular.h"
#include "cuop/jit/kernels/accurate/error_function.h"
#include "cuop/jit/kernels/accurate/fused_circular.h"
#include "cuop/jit/kernels/accurate/fused_erfc.h"
#include "cuop/jit/kernels/accurate/fused_exponential.h"
#include "cuop/jit/kernels/accurate/fused_logarithm.h"
#include "cuop/jit/kernels/accurate/fused_root.h"
#include "cuop/jit/kernels/accurate/in_double.h"
#include "cuop/jit/kernels/accurate/root.h"
#include "cuop/jit/kernels/accurate/single.h"
#include "cuop/jit/kernels/accurate/unfused.h"
#include "cuop/jit/kernels/accurate/unfused_erfc.h"

namespace cuop::jit::accurate {

/// Whether an argument is too large for the circular functions below, or no number.
template <class T>
CUOP_FN bool is_beyond_circular(T x) {
  return !(math::abs(x) <= (math::has_fast_fma ? kMostFused<T> : T(kMostCircular)));
}
template <class T>
CUOP_FN T attempted_sin(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_sin(x);
  } else {
    return sin(x);
  }
}
template <class T>
CUOP_FN T attempted_cos(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_cos(x);
  } else {
    return cos(x);
  }
}
template <class T>
CUOP_FN T attempted_tan(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_tan(x);
  } else if constexpr (sizeof(T) == 4) {
    return tan(x);
  } else {
    return unfused_tan(x);
  }
}

template <class T>
inline constexpr bool is_fused_float = math::has_fast_fma && sizeof(T) == 4;

template <class T>
CUOP_FN T attempted_log(T x) {
  if constexpr (is_fused_float<T>) {
    return fused_log(x);
  } else {
    return quick_log(x);
  }
}
template <class T>
CUOP_FN T attempted_log2(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_log2(x);
  } else {
    return quick_log2(x);
  }
}
template <class T>
CUOP_FN T attempted_log10(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_log10(x);
  } else {
    return quick_log10(x);
  }
}

template <class T>
CUOP_FN T attempted_cbrt(T x, unsigned& is_unsure) {
  is_unsure |= is_beyond_cbrt(x);
  if constexpr (sizeof(T) == 8) {
    return quick_cbrt(x);
  } else if constexpr (math::has_fast_fma) {
    return fused_cbrt(x);
  } else {
    return short_cbrt(x);
  }
}

template <class T>
CUOP_FN T attempted_asinh(T x, unsigned& is_unsure) {
  if constexpr (is_fused_float<T>) {
    is_unsure |= is_beyond_area(x);
    return fused_asinh(x);
  } else if constexpr (sizeof(T) == 8) {
    is_unsure |= is_beyond_area(x);
    return quick_asinh(x);
  } else {
    return asinh(x);
  }
}
template <class T>
CUOP_FN T attempted_acosh(T x, unsigned& is_unsure) {
  if constexpr (is_fused_float<T>) {
    is_unsure |= is_beyond_area(x) | !(x >= 1);
    return fused_acosh(x);
  } else if constexpr (sizeof(T) == 8) {
    is_unsure |= is_beyond_area(x) | !(x >= 1);
    return quick_acosh(x);
  } else {
    return acosh(x);
  }
}
template <class T>
CUOP_FN T attempted_atanh(T x, unsigned& is_unsure) {
  if constexpr (is_fused_float<T>) {
    is_unsure |= is_beyond_atanh(x);
    return fused_atanh(x);
  } else if constexpr (sizeof(T) == 8) {
    is_unsure |= is_beyond_atanh(x);
    return quick_atanh(x);
  } else {
    return atanh(x);
  }
}

template <class T>
CUOP_FN T attempted_sigmoid(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_sigmoid(x);
  } else if constexpr (sizeof(T) == 4) {
    return short_sigmoid(x);
  } else {
    return unfused_sigmoid(x);
  }
}
template <class T>
CUOP_FN T attempted_silu(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_silu(x);
  } else if constexpr (sizeof(T) == 4) {
    return short_silu(x);
  } else {
    return unfused_silu(x);
  }
}
template <class T>
CUOP_FN T attempted_gelu_tanh(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_gelu_tanh(x);
  } else if constexpr (sizeof(T) == 4) {
    return short_gelu_tanh(x);
  } else {
    return unfused_gelu_tanh(x);
  }
}
template <class T>
CUOP_FN T attempted_sinh(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_sinh(x);
  } else {
    return quick_sinh(x);
  }
}
template <class T>
CUOP_FN T attempted_cosh(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_cosh(x);
  } else {
    return quick_cosh(x);
  }
}

template <class T>
CUOP_FN T attempted_expm1(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_expm1(x);
  } else if constexpr (sizeof(T) == 4) {
    return short_expm1(x);
  } else {
    return expm1(x);
  }
}
template <class T>
CUOP_FN T attempted_erfc(T x, unsigned& is_unsure) {
  if constexpr (sizeof(T) == 8) is_unsure |= is_beyond_erfc(x);
  if constexpr (is_fused_float<T>) is_unsure |= x != x;
  if constexpr (math::has_fast_fma) {
    return fused_erfc(x);
  } else if constexpr (sizeof(T) == 8) {
    return unfused_erfc(x);
  } else {
    return erfc(x);
  }
}
template <class T>
CUOP_FN T attempted_gelu(T x, unsigned& is_unsure) {
  if constexpr (sizeof(T) == 8) is_unsure |= is_beyond_gelu(x);
  if constexpr (math::has_fast_fma) {
    return fused_gelu(x);
  } else if constexpr (sizeof(T) == 8) {
    return unfused_gelu(x);
  } else {
    return gelu(x);
  }
}

}  // namespace cuop::jit::accurate
