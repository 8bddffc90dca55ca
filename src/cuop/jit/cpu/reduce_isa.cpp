// Reductions of runs of elements: four vector accumulators, then a fixed order of combination, so
// that a result depends on nothing but its elements.
#include <cstring>

#include "cuop/backend/cpu/lanes.h"
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

template <class T>
using Vector [[gnu::vector_size(64)]] = T;
template <class T>
constexpr int kVectorLanes = 64 / static_cast<int>(sizeof(T));

/// Of four vectors the lanes from First on, combined in pairs as numbers of type A.
template <class K, class T, class A, int First>
[[gnu::always_inline]] inline void combine_lanes(const Vector<T> (&x)[4], Vector<A>& result) {
  using Part [[gnu::vector_size(64 * sizeof(T) / sizeof(A))]] = T;
  Vector<A> wide[4];
  for (int k = 0; k < 4; ++k) {
    Part part;
    std::memcpy(&part, reinterpret_cast<const T*>(&x[k]) + First, sizeof(part));
    wide[k] = __builtin_convertvector(part, Vector<A>);
  }
  K::combine(wide[0], wide[1]);
  K::combine(wide[2], wide[3]);
  K::combine(wide[0], wide[2]);
  result = wide[0];
}
/// All lanes of four vectors, combined in pairs until `Count` are left at the front.
template <int Count, class K, class T, class A>
[[gnu::always_inline]] inline void fold_lanes(const Vector<T> (&x)[4], A (&left)[kVectorLanes<A>]) {
  Vector<A> wide;
  combine_lanes<K, T, A, 0>(x, wide);
  if constexpr (sizeof(A) > sizeof(T)) {
    Vector<A> others;
    combine_lanes<K, T, A, kVectorLanes<A>>(x, others);
    K::combine(wide, others);
  }
  std::memcpy(left, &wide, sizeof(wide));
  lanes::fold_halves<Count>(left, [](A a, const A& b) {
    K::combine(a, b);
    return a;
  });
}

/// Whole groups of four vectors, from `begin` on in each lane; how many elements that were.
template <class K, class T>
[[gnu::always_inline]] inline int64_t take_vectors(Vector<T> (&sums)[4], const T* x, int64_t n,
                                                   T begin) {
  constexpr int64_t lanes = kVectorLanes<T>, width = 4 * lanes;
  for (Vector<T>& sum : sums) sum = Vector<T>{} + begin;
  int64_t i = 0;
  for (; i + width <= n; i += width) {
    for (int k = 0; k < 4; ++k) {
      Vector<T> value;
      std::memcpy(&value, x + i + k * lanes, sizeof(value));
      K::combine(sums[k], value);
    }
  }
  return i;
}

/// Vector lanes for the real types; the accumulator type from there on.
template <class K, class T>
void run_real(void* accumulator, const void* in, int64_t n) {
  using A = typename AccumulatorOf<T>::type;
  const auto* x = static_cast<const T*>(in);
  A total = static_cast<A>(K::start(x));
  int64_t i = 0;
  if (n >= 4 * kVectorLanes<T>) {
    Vector<T> sums[4];
    i = take_vectors<K, T>(sums, x, n, K::start(x));
    A left[kVectorLanes<A>];
    fold_lanes<1, K, T>(sums, left);
    K::combine(total, left[0]);
  }
  for (; i < n; ++i) K::combine(total, static_cast<A>(x[i]));
  std::memcpy(accumulator, &total, sizeof(A));
}

/// Sums of complex numbers: those of their parts, which take turns in the lanes.
template <class T>
void run_complex_sum(void* accumulator, const void* in, int64_t n) {
  using Part = RealType<T>;
  using A = typename AccumulatorOf<T>::type;
  const auto* x = static_cast<const T*>(in);
  A total(0);
  int64_t i = 0;
  if (2 * n >= 4 * kVectorLanes<Part>) {
    Vector<Part> sums[4];
    i = take_vectors<Sum, Part>(sums, static_cast<const Part*>(in), 2 * n, Part(0)) / 2;
    RealType<A> left[kVectorLanes<RealType<A>>];
    fold_lanes<2, Sum, Part>(sums, left);
    total = {left[0], left[1]};
  }
  for (; i < n; ++i) total += static_cast<A>(x[i]);
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
  if constexpr (is_complex_type<T> && std::is_same_v<K, Sum>) {
    entry.run = run_complex_sum<T>;
  } else if constexpr (is_complex_type<T> || is_bool_type<T>) {
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
