#include <limits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/pool/pool_kernels.h"

namespace cuop::kernels {

namespace {

struct Max {
  template <class T>
  static constexpr T neutral() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  /// NaN wins over everything.
  template <class T>
  static T together(T a, T b) {
    return b > a || b != b ? b : a;
  }
};

struct Sum {
  template <class T>
  static constexpr T neutral() {
    return 0;
  }
  template <class T>
  static T together(T a, T b) {
    return a + b;
  }
};

template <class Op, class T>
void combine(const T* row, int64_t count, T* sum) {
  in_pieces(count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum[i] = Op::together(sum[i], row[i]);
  });
}

/// Stride 0 stands for one that is known at run time only.
template <class Op, class T, int64_t Stride>
void slide_by(const T* row, int64_t count, int64_t kernel, int64_t given, T* out) {
  const int64_t stride = Stride > 0 ? Stride : given;
  // Blocks of outputs stay in the first cache while the window's elements pass.
  constexpr int64_t kBlock = 512;
  Lookout lookout;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t size = count - first < kBlock ? count - first : kBlock;
    const T* const from = row + first * stride;
    T* const to = out + first;
    for (int64_t i = 0; i < size; ++i) to[i] = from[i * stride];
    for (int64_t k = 1; k < kernel; ++k) {
      for (int64_t i = 0; i < size; ++i) to[i] = Op::together(to[i], from[i * stride + k]);
    }
    lookout.after(size * kernel);
  }
}

template <class Op, class T>
void slide(const T* row, int64_t count, int64_t kernel, int64_t stride, T* out) {
  if (stride == 1) {
    slide_by<Op, T, 1>(row, count, kernel, stride, out);
  } else if (stride == 2) {
    slide_by<Op, T, 2>(row, count, kernel, stride, out);
  } else {
    slide_by<Op, T, 0>(row, count, kernel, stride, out);
  }
}

template <class Op, class T>
typename PoolRows<T>::Whole all(const T* values, int64_t count) {
  using Whole = typename PoolRows<T>::Whole;
  constexpr int64_t kLanes = 32;
  Whole lanes[kLanes];
  for (Whole& lane : lanes) lane = Op::template neutral<Whole>();
  const int64_t whole = count - count % kLanes;
  static_assert(kLoopPiece % kLanes == 0);
  in_pieces(whole, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) {
        lanes[j] = Op::together(lanes[j], static_cast<Whole>(values[i + j]));
      }
    }
  });
  for (int64_t i = whole; i < count; ++i) {
    lanes[i - whole] = Op::together(lanes[i - whole], static_cast<Whole>(values[i]));
  }
  Whole result = Op::template neutral<Whole>();
  for (const Whole lane : lanes) result = Op::together(result, lane);
  return result;
}

template <class Op, class T>
constexpr PoolRows<T> kRows{combine<Op, T>, slide<Op, T>, all<Op, T>};

template <class T>
constexpr PoolLoops<T> loops() {
  if constexpr (std::is_integral_v<T>) {
    return {kRows<Max, T>, {}};
  } else {
    return {kRows<Max, T>, kRows<Sum, T>};
  }
}

template <class... T>
constexpr std::tuple<PoolLoops<T>...> all_loops(std::tuple<PoolLoops<T>...>*) {
  return {loops<T>()...};
}

constexpr PoolKernels kKernels = all_loops(static_cast<PoolKernels*>(nullptr));

}  // namespace

template <>
const PoolKernels& pool_kernels<isa::CUOP_ISA>() {
  return kKernels;
}

}  // namespace cuop::kernels
