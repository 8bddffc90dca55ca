// Reductions of runs of elements: four vector accumulators, then a fixed order of combination, so
// that a result depends on nothing but its elements.
#include <cstring>

#include "cuop/jit/cpu/block_loops.h"

namespace cuop::jit {
namespace {

template <class T>
struct AccumulatorOf {
  using type = T;
};
template <>
struct AccumulatorOf<float> {
  using type = double;
};
template <>
struct AccumulatorOf<std::complex<float>> {
  using type = std::complex<double>;
};

// Each kind: what it starts from before the elements at x, and how a value is combined with another
// (also of vectors, where the comparison is one of lanes).
struct Sum {
  template <class T>
  static constexpr T start(const T*) {
    return T(0);
  }
  template <class V>
  CUOP_FN static void combine(V& a, const V& b) {
    a = a + b;
  }
};
struct Product {
  template <class T>
  static constexpr T start(const T*) {
    return T(1);
  }
  template <class V>
  CUOP_FN static void combine(V& a, const V& b) {
    a = a * b;
  }
};
template <bool is_max>
struct Extreme {
  template <class T>
  static constexpr T start(const T* x) {
    return x[0];
  }
  template <class V>
  CUOP_FN static void combine(V& a, const V& b) {
    a = (is_max ? a >= b : a <= b) | (a != a) ? a : b;
  }
};

/// Vector lanes for the real types; the accumulator type from there on.
template <class K, class T>
void run_real(void* accumulator, const void* in, int64_t n) {
  using A = typename AccumulatorOf<T>::type;
  using V [[gnu::vector_size(64)]] = T;
  constexpr int64_t lanes = 64 / sizeof(T), width = 4 * lanes;
  const auto* x = static_cast<const T*>(in);
  A total = static_cast<A>(K::start(x));
  int64_t i = 0;
  if (n >= width) {
    const T begin = K::start(x);
    V sums[4];
    for (V& sum : sums) sum = V{} + begin;
    for (; i + width <= n; i += width) {
      for (int k = 0; k < 4; ++k) {
        V value;
        std::memcpy(&value, x + i + k * lanes, sizeof(V));
        K::combine(sums[k], value);
      }
    }
    for (const V& sum : sums) {
      for (int64_t lane = 0; lane < lanes; ++lane) {
        K::combine(total, static_cast<A>(sum[lane]));
      }
    }
  }
  for (; i < n; ++i) K::combine(total, static_cast<A>(x[i]));
  std::memcpy(accumulator, &total, sizeof(A));
}

template <class K, class T>
void run_scalar(void* accumulator, const void* in, int64_t n) {
  using A = typename AccumulatorOf<T>::type;
  const auto* x = static_cast<const T*>(in);
  A total = static_cast<A>(K::start(x));
  for (int64_t i = 0; i < n; ++i) K::combine(total, static_cast<A>(x[i]));
  std::memcpy(accumulator, &total, sizeof(A));
}

template <class K, class T>
void combine(void* accumulator, const void* other) {
  using A = typename AccumulatorOf<T>::type;
  A a, b;
  std::memcpy(&a, accumulator, sizeof(A));
  std::memcpy(&b, other, sizeof(A));
  K::combine(a, b);
  std::memcpy(accumulator, &a, sizeof(A));
}

template <class T, bool IsMean>
void finish(void* out, const void* accumulator, int64_t count) {
  using A = typename AccumulatorOf<T>::type;
  A a;
  std::memcpy(&a, accumulator, sizeof(A));
  if constexpr (IsMean) a /= static_cast<RealType<A>>(count);
  const T result = static_cast<T>(a);
  std::memcpy(out, &result, sizeof(T));
}

/// Elements are taken for numbers of type `As`, of the same size.
template <class K, class T, bool IsMean = false, class As = T>
void add_reduction(BlockTable& table, ReduceKind kind) {
  ReduceKernel& entry =
      table.reductions[static_cast<size_t>(kind)][static_cast<size_t>(dtype_of<T>)];
  if constexpr (is_complex_type<T> || is_bool_type<T>) {
    entry.run = run_scalar<K, As>;
  } else {
    entry.run = run_real<K, As>;
  }
  entry.combine = combine<K, As>;
  entry.finish = finish<T, IsMean>;
}

/// Without signed overflow.
template <class T>
using Wrapping = std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, T>;

template <class... T>
void add_arithmetic_reductions(BlockTable& table, TypeList<T...>) {
  (add_reduction<Sum, T, false, Wrapping<T>>(table, ReduceKind::kSum), ...);
  (add_reduction<Product, T, false, Wrapping<T>>(table, ReduceKind::kProd), ...);
}
template <class... T>
void add_mean_reductions(BlockTable& table, TypeList<T...>) {
  (add_reduction<Sum, T, true>(table, ReduceKind::kMean), ...);
}
template <class... T>
void add_selections(BlockTable& table, TypeList<T...>) {
  (add_reduction<Extreme<true>, T>(table, ReduceKind::kMax), ...);
  (add_reduction<Extreme<false>, T>(table, ReduceKind::kMin), ...);
}

}  // namespace

template <>
void add_reduce_kernels<isa::CUOP_ISA>(BlockTable& table) {
  add_arithmetic_reductions(
      table,
      TypeList<int64_t, uint64_t, float, double, std::complex<float>, std::complex<double>>{});
  add_mean_reductions(table, FloatComplexTypes{});
  add_selections(table, TypeList<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                                 uint32_t, uint64_t, float, double>{});
}

}  // namespace cuop::jit
