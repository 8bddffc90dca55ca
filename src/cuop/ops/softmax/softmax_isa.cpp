#include <algorithm>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/core/long_loop.h"
#include "cuop/jit/kernels/elementary.h"
#include "cuop/ops/softmax/softmax_kernels.h"

namespace cuop::kernels {
namespace {

namespace math = jit::math;

constexpr int kUnroll = 4;

/// Largest element; one that is NaN may be passed over, it makes the sum NaN in any case.
template <class T>
T largest(const T* x, int64_t n) {
  using V = lanes::Vector<T>;
  constexpr int64_t kGroup = kUnroll * lanes::kCount<T>;
  T result = x[0];
  int64_t i = 0;
  if (n >= kGroup) {
    V part[kUnroll];
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) part[k] = lanes::load(x + k * lanes::kCount<T>);
    for (i = kGroup; i + kGroup <= n; i += kGroup) {
#pragma GCC unroll 4
      for (int k = 0; k < kUnroll; ++k) {
        const V value = lanes::load(x + i + k * lanes::kCount<T>);
        part[k] = lanes::larger(value, part[k]);
      }
    }
#pragma GCC unroll 4
    for (int k = 1; k < kUnroll; ++k) part[0] = lanes::larger(part[k], part[0]);
    result = lanes::fold<T>(part[0], [](T a, T b) { return a > b ? a : b; });
  }
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

template <class T>
T total(const T* x, int64_t n) {
  using V = lanes::Vector<T>;
  constexpr int64_t kGroup = kUnroll * lanes::kCount<T>;
  V part[kUnroll] = {};
  int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k) {
      part[k] = part[k] + lanes::load(x + i + k * lanes::kCount<T>);
    }
  }
  T rest = 0;
  for (; i < n; ++i) rest += x[i];
  const V folded = (part[0] + part[1]) + (part[2] + part[3]);
  return lanes::fold<T>(folded, [](T a, T b) { return a + b; }) + rest;
}

template <class T>
void subtract(const T* x, T* y, int64_t n, T value) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - value;
}
template <class T>
void scale(T* y, int64_t n, T factor) {
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}
template <class T>
void exponentiate(const T* x, T* y, int64_t n, T shift) {
  for (int64_t i = 0; i < n; ++i) y[i] = math::exp(x[i] - shift);
}

/// Sum of exp(x - shift), without keeping them.
template <class T>
T total_exp(const T* x, int64_t n, T shift) {
  constexpr int64_t kBlock = 512;
  T block[kBlock], sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t size = std::min(kBlock, n - i);
    exponentiate(x + i, block, size, shift);
    sum += total(block, size);
  }
  return sum;
}

/// One row, which may be so long that somebody interrupts.
template <class T>
void row(const T* x, T* y, int64_t n, bool is_log) {
  T top = x[0], sum = 0;
  in_pieces(n, [&](int64_t begin, int64_t end) {
    const T here = largest(x + begin, end - begin);
    top = here > top ? here : top;
  });
  if (is_log) {
    in_pieces(n,
              [&](int64_t begin, int64_t end) { sum += total_exp(x + begin, end - begin, top); });
    const T rest = math::log(sum);
    in_pieces(n, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = (x[i] - top) - rest;  // top may be large
    });
    return;
  }
  in_pieces(n, [&](int64_t begin, int64_t end) {
    exponentiate(x + begin, y + begin, end - begin, top);
    sum += total(y + begin, end - begin);
  });
  const T factor = T(1) / sum;
  in_pieces(n, [&](int64_t begin, int64_t end) { scale(y + begin, end - begin, factor); });
}

template <class T>
void rows(const T* x, T* y, int64_t count, int64_t n, bool is_log) {
  constexpr int64_t kShort = 4 * lanes::kCount<T>;
  const bool is_short = n < kShort && !is_log;
  for (int64_t r = 0; r < count; ++r) {
    if (is_short) {
      subtract(x + r * n, y + r * n, n, largest(x + r * n, n));
    } else {
      row(x + r * n, y + r * n, n, is_log);
    }
  }
  if (!is_short) return;
  exponentiate(y, y, count * n, T(0));  // all rows at once, so that they fill vectors
  for (int64_t r = 0; r < count; ++r) scale(y + r * n, n, T(1) / total(y + r * n, n));
}

template <class T>
void columns(const T* x, T* y, int64_t n, int64_t stride, int64_t width, bool is_log) {
  T top[SoftmaxLoops<T>::kMaxWidth], sum[SoftmaxLoops<T>::kMaxWidth];
  const int64_t piece = kLoopPiece / width;  // rows
  std::copy_n(x, width, top);
  std::fill_n(sum, width, T(0));
  const auto find_tops = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * stride;
      for (int64_t j = 0; j < width; ++j) top[j] = row[j] > top[j] ? row[j] : top[j];
    }
  };
  in_pieces(n, find_tops, piece);
  const auto add_up = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* row = x + r * stride;
      T* to = y + r * stride;
      if (is_log) {
        for (int64_t j = 0; j < width; ++j) {
          const T shifted = row[j] - top[j];
          to[j] = shifted;
          sum[j] += math::exp(shifted);
        }
      } else {
        for (int64_t j = 0; j < width; ++j) {
          const T power = math::exp(row[j] - top[j]);
          to[j] = power;
          sum[j] += power;
        }
      }
    }
  };
  in_pieces(n, add_up, piece);
  for (int64_t j = 0; j < width; ++j) sum[j] = is_log ? math::log(sum[j]) : T(1) / sum[j];
  const auto finish = [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* to = y + r * stride;
      if (is_log) {
        for (int64_t j = 0; j < width; ++j) to[j] -= sum[j];
      } else {
        for (int64_t j = 0; j < width; ++j) to[j] *= sum[j];
      }
    }
  };
  in_pieces(n, finish, piece);
}

}  // namespace

template <class Level, class T>
const SoftmaxLoops<T>& softmax_loops() {
  static constexpr SoftmaxLoops<T> kLoops{rows<T>, columns<T>};
  return kLoops;
}
template const SoftmaxLoops<float>& softmax_loops<isa::CUOP_ISA, float>();
template const SoftmaxLoops<double>& softmax_loops<isa::CUOP_ISA, double>();

}  // namespace cuop::kernels
