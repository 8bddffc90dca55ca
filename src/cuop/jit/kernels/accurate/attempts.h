// What loops over arrays try first: forms for the arguments that are usual, with fused operations
// where the processor has them. The functors know which arguments are not covered.
#pragma once

#include "cuop/jit/kernels/accurate/circular.h"
#include "cuop/jit/kernels/accurate/error_function.h"
#include "cuop/jit/kernels/accurate/fused_circular.h"
#include "cuop/jit/kernels/accurate/fused_exponential.h"
#include "cuop/jit/kernels/accurate/fused_logarithm.h"
#include "cuop/jit/kernels/accurate/fused_root.h"
#include "cuop/jit/kernels/accurate/in_double.h"
#include "cuop/jit/kernels/accurate/inverse_circular.h"
#include "cuop/jit/kernels/accurate/root.h"
#include "cuop/jit/kernels/accurate/single.h"
#include "cuop/jit/kernels/accurate/unfused.h"
#include "cuop/jit/kernels/accurate/unfused_erfc.h"

namespace cuop::jit::accurate {

template <class T>
inline constexpr bool is_fused_float = math::has_fast_fma && sizeof(T) == 4;

/// Of arguments that are too large for the circular functions below; of NaN they return NaN.
template <class T>
CUOP_FN Doubt<T> doubt_of_circular(T x) {
  if constexpr (math::has_fast_fma) {
    return bits_of(math::fma(-x, x, kMostFused<T> * kMostFused<T>));
  } else {
    return doubt_beyond(x, T(kMostCircular));
  }
}
// The argument first.
template <class T>
CUOP_FN auto prepared_sin(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_sin_argument(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_sin(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return half_turn_sine(stage);
  } else {
    return sin(x);
  }
}
template <class T>
CUOP_FN auto prepared_cos(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_cos_argument(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_cos(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return half_turn_sine(stage);
  } else {
    return cos(x);
  }
}
/// Where there are no vectors with a form of their own.
template <class T>
CUOP_FN T attempted_tan(T x) {
  if constexpr (sizeof(T) == 4) {
    return tan(x);
  } else {
    return unfused_tan(x);
  }
}

// The root first; of double that takes so long that nothing is gained.
template <class T>
CUOP_FN auto prepared_asin(T x) {
  if constexpr (is_fused_float<T>) {
    return arc_parts(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_asin(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return asin(x, stage);
  } else {
    return asin(x);
  }
}

// The quotient first.
template <class T>
CUOP_FN auto prepared_atan(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_atan_quotient(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_atan(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return fused_atan(x, stage);
  } else {
    return atan(x);
  }
}

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
CUOP_FN T attempted_rsqrt(T x) {
  if constexpr (is_fused_float<T>) {
    return fused_rsqrt(x);
  } else {
    return quick_rsqrt(x);
  }
}

// The reciprocal of the root first.
template <class T>
CUOP_FN auto prepared_cbrt(T x) {
  if constexpr (sizeof(T) == 8) {
    return quick_cbrt_inverse(x);
  } else if constexpr (math::has_fast_fma) {
    return fused_cbrt_inverse(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_cbrt(T x, Stage<T, Count> stage, Doubt<T>& doubt) {
  doubt |= doubt_of_cbrt(x);
  if constexpr (sizeof(T) == 8) {
    return quick_cbrt(x, stage);
  } else if constexpr (math::has_fast_fma) {
    return fused_cbrt(x, stage);
  } else {
    return short_cbrt(x);
  }
}

// Those in two stages: the argument of a logarithm first.
template <class T>
CUOP_FN auto prepared_asinh(T x) {
  if constexpr (is_fused_float<T>) {
    return fused_asinh_argument(x);
  } else if constexpr (sizeof(T) == 8) {
    return quick_area_argument(math::abs(x), 1.0);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_asinh(T x, Stage<T, Count> stage, Doubt<T>& doubt) {
  if constexpr (Count == 0) {
    return asinh(x);
  } else {
    doubt |= doubt_beyond(x, kMostArea<T>);
    if constexpr (sizeof(T) == 4) return fused_asinh(x, stage);
    if constexpr (sizeof(T) == 8) return math::copysign(quick_log1p(stage), x);
  }
}
template <class T>
CUOP_FN auto prepared_acosh(T x) {
  if constexpr (is_fused_float<T>) {
    return fused_acosh_argument(x);
  } else if constexpr (sizeof(T) == 8) {
    return quick_area_argument(x, -1.0);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_acosh(T x, Stage<T, Count> stage, Doubt<T>& doubt) {
  if constexpr (Count == 0) {
    return acosh(x);
  } else {
    doubt |= doubt_outside(x, T(1), kMostArea<T>);
    if constexpr (sizeof(T) == 4) return fused_acosh(stage);
    if constexpr (sizeof(T) == 8) return quick_log1p(stage);
  }
}
template <class T>
CUOP_FN auto prepared_atanh(T x) {
  if constexpr (is_fused_float<T>) {
    return fused_atanh_argument(x);
  } else if constexpr (sizeof(T) == 8) {
    return quick_atanh_argument(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_atanh(T x, Stage<T, Count> stage, Doubt<T>& doubt) {
  if constexpr (Count == 0) {
    return atanh(x);
  } else {
    doubt |= doubt_of_atanh(x);
    if constexpr (sizeof(T) == 4) return fused_atanh(x, stage);
    if constexpr (sizeof(T) == 8) return math::copysign(0.5 * quick_log1p(stage), x);
  }
}

// The exponential function first, then the quotient.
template <bool is_exact, class T>
CUOP_FN auto prepared_logistic(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_exp_parts<is_exact>(-x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_sigmoid(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return fused_logistic(T(1), stage);
  } else if constexpr (sizeof(T) == 4) {
    return short_sigmoid(x);
  } else {
    return unfused_sigmoid(x);
  }
}
template <class T, int Count>
CUOP_FN T attempted_silu(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return fused_logistic(x, stage);
  } else if constexpr (sizeof(T) == 4) {
    return short_silu(x);
  } else {
    return unfused_silu(x);
  }
}
template <class T>
CUOP_FN auto prepared_gelu_tanh(T x) {
  if constexpr (math::has_fast_fma) {
    return fused_gelu_tanh_exp(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_gelu_tanh(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return fused_logistic(x, stage);
  } else if constexpr (sizeof(T) == 4) {
    return short_gelu_tanh(x);
  } else {
    return unfused_gelu_tanh(x);
  }
}
// Of double the exponential function first; of float one loop takes less than what is stored
// between two.
template <class T>
CUOP_FN auto prepared_sinh(T x) {
  if constexpr (math::has_fast_fma && sizeof(T) == 8) {
    return fused_sinh_parts(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_sinh(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return fused_sinh(stage);
  } else if constexpr (math::has_fast_fma) {
    return fused_sinh(fused_sinh_parts(x));
  } else {
    return quick_sinh(x);
  }
}
template <class T>
CUOP_FN auto prepared_cosh(T x) {
  if constexpr (math::has_fast_fma && sizeof(T) == 8) {
    return fused_cosh_parts(x);
  } else {
    return Stage<T, 0>{};
  }
}
template <class T, int Count>
CUOP_FN T attempted_cosh(T x, Stage<T, Count> stage) {
  if constexpr (Count > 0) {
    return fused_cosh(stage);
  } else if constexpr (math::has_fast_fma) {
    return fused_cosh(fused_cosh_parts(x));
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
CUOP_FN T attempted_erfc(T x, Doubt<T>& doubt) {
  if constexpr (sizeof(T) == 8) {
    doubt |= doubt_of_erfc(x);
    return unfused_erfc(x);
  } else {
    return erfc(x);
  }
}
template <class T>
CUOP_FN T attempted_gelu(T x, Doubt<T>& doubt) {
  if constexpr (sizeof(T) == 8) {
    doubt |= doubt_of_gelu(x);
    return unfused_gelu(x);
  } else {
    return gelu(x);
  }
}

}  // namespace cuop::jit::accurate
