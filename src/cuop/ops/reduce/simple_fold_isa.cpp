// Sum, product, largest and smallest: folds whose state is one element.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {
namespace {

struct Add {
  template <class T>
  static constexpr T identity = T(-0.0);  // -0 + x is x for every x
  template <class V>
  [[gnu::always_inline]] static V apply(const V& a, const V& b) {
    return a + b;
  }
};
struct Multiply {
  template <class T>
  static constexpr T identity = T(1);
  template <class V>
  [[gnu::always_inline]] static V apply(const V& a, const V& b) {
    return a * b;
  }
};
/// `apply` keeps a NaN: `b != b` takes a new one, and no comparison with an old one is true.
/// `pick` may lose it, but is one instruction.
template <bool is_max>
struct Extreme {
  template <class T>
  static constexpr T first() {
    using Limits = std::numeric_limits<T>;
    if (!Limits::has_infinity) return is_max ? Limits::lowest() : Limits::max();
    return is_max ? -Limits::infinity() : Limits::infinity();
  }
  template <class T>
  static constexpr T identity = first<T>();
  template <class T>
  [[gnu::always_inline]] static T apply(const T& a, const T& b) {
    return (is_max ? b > a : b < a) | (b != b) ? b : a;
  }
  template <class T>
  [[gnu::always_inline]] static lanes::Vector<T> apply(const lanes::Vector<T>& a,
                                                       const lanes::Vector<T>& b) {
    return lanes::each<T>(
        [](const auto& x, const auto& y) { return (is_max ? y > x : y < x) | (y != y) ? y : x; }, a,
        b);
  }
  template <class T>
  [[gnu::always_inline]] static lanes::Vector<T> pick(const lanes::Vector<T>& a,
                                                      const lanes::Vector<T>& b) {
    return is_max ? lanes::larger(a, b) : lanes::smaller(a, b);
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;
template <class Op>
constexpr bool kIsOrdering = std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;

constexpr int kAccumulators = 4;
constexpr int kGroupsPerLeaf = 16;

/// Four vectors that are folded side by side: enough to hide the latency of an addition.
template <class T, class Op>
struct Accumulators {
  lanes::Vector<T> part[kAccumulators];

  [[gnu::always_inline]] void load(const T* data) {
#pragma GCC unroll 4
    for (int k = 0; k < kAccumulators; ++k) part[k] = lanes::load(data + k * lanes::kCount<T>);
  }
  [[gnu::always_inline]] void fold(const T* data) {
#pragma GCC unroll 4
    for (int k = 0; k < kAccumulators; ++k) {
      part[k] = Op::apply(part[k], lanes::load(data + k * lanes::kCount<T>));
    }
  }
  [[gnu::always_inline]] void fold(const Accumulators& other) {
#pragma GCC unroll 4
    for (int k = 0; k < kAccumulators; ++k) {
      part[k] = Op::apply(part[k], other.part[k]);
    }
  }
  [[gnu::always_inline]] lanes::Vector<T> together() const {
    return Op::apply(Op::apply(part[0], part[1]), Op::apply(part[2], part[3]));
  }
};

template <class T, class Op>
[[gnu::always_inline]] inline T applied(const T& a, const T& b) {
  return T(Op::apply(a, b));
}

/// Few numbers, eight side by side, until `Count` are left.
template <int Count, class T, class Op>
[[gnu::always_inline]] inline void fold_few(const T* data, int64_t n, T (&part)[8]) {
  std::fill(part, part + 8, Op::template identity<T>);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) part[k] = Op::apply(part[k], data[i + k]);
  }
  for (int k = 0; i < n; ++i, ++k) part[k] = Op::apply(part[k], data[i]);
  lanes::fold_halves<Count>(part, applied<T, Op>);
}

template <class T, class Op>
T fold_short(const T* data, int64_t n) {
  if (n < 8) {
    T result = data[0];
    for (int64_t i = 1; i < n; ++i) result = Op::apply(result, data[i]);
    return result;
  }
  T part[8];
  fold_few<1, T, Op>(data, n, part);
  return part[0];
}

template <class T>
constexpr int64_t kGroup = kAccumulators* lanes::kCount<T>;

/// Leaves of 16 groups, combined pairwise like the carries of a binary counter: the error of a sum
/// grows with the logarithm of n. Leaves out what is no whole group; there is one at least.
template <class T, class Op>
lanes::Vector<T> fold_groups(const T* data, int64_t n) {
  Accumulators<T, Op> stack[48];
  int64_t leaves = 0;
  int depth = 0;
  int64_t i = 0;
  while (i + kGroup<T> <= n) {
    Accumulators<T, Op> leaf;
    leaf.load(data + i);
    const int64_t groups = std::min<int64_t>(kGroupsPerLeaf, (n - i) / kGroup<T>);
    for (int64_t g = 1; g < groups; ++g) leaf.fold(data + i + g * kGroup<T>);
    i += groups * kGroup<T>;
    ++leaves;
    for (int64_t carry = leaves; (carry & 1) == 0; carry >>= 1) leaf.fold(stack[--depth]);
    stack[depth++] = leaf;
  }
  while (depth > 1) {
    --depth;
    stack[depth - 1].fold(stack[depth]);
  }
  return stack[0].together();
}

template <class T, class Op>
T fold_row(const T* data, int64_t n) {
  if (n < kGroup<T>) return fold_short<T, Op>(data, n);
  const int64_t rest = n % kGroup<T>;
  const T result = lanes::fold<T>(fold_groups<T, Op>(data, n), applied<T, Op>);
  return rest == 0 ? result : Op::apply(result, fold_short<T, Op>(data + n - rest, rest));
}

/// Largest or smallest of a row. A sum beside it tells cheaply that there may be a NaN; only then
/// is the row looked through again with care.
template <class T, class Op>
T extreme_of_row(const T* data, int64_t n) {
  using V = lanes::Vector<T>;
  if (n < kGroup<T>) return fold_short<T, Op>(data, n);
  V part[kAccumulators], check[kAccumulators] = {};
#pragma GCC unroll 4
  for (int k = 0; k < kAccumulators; ++k) part[k] = lanes::load(data + k * lanes::kCount<T>);
  // The last group may begin in the one before: twice the same changes nothing.
  for (int64_t i = 0; i < n; i += kGroup<T>) {
    const T* const group = data + std::min(i, n - kGroup<T>);
#pragma GCC unroll 4
    for (int k = 0; k < kAccumulators; ++k) {
      lanes::prefetch(group + k * lanes::kCount<T>);
      const V value = lanes::load(group + k * lanes::kCount<T>);
      part[k] = Op::pick(part[k], value);
      if constexpr (std::is_floating_point_v<T>) check[k] = check[k] + value;
    }
  }
  if constexpr (std::is_floating_point_v<T>) {
    const V sum = (check[0] + check[1]) + (check[2] + check[3]);
    const T total = lanes::fold<T>(sum, [](T a, T b) { return a + b; });
    if (total != total) return fold_row<T, Op>(data, n);
  }
  const V extreme = Op::pick(Op::pick(part[0], part[1]), Op::pick(part[2], part[3]));
  return lanes::fold<T>(extreme, applied<T, Op>);
}

template <class T, class Op>
void init(void* states, int64_t count) {
  std::fill_n(static_cast<T*>(states), count, Op::template identity<T>);
}

template <class T, class Op>
void rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  auto* state = static_cast<T*>(states);
  const auto* row = static_cast<const T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kIsOrdering<Op>) {
      state[i] = Op::apply(state[i], extreme_of_row<T, Op>(row + i * row_stride, n));
    } else {
      state[i] = Op::apply(state[i], fold_row<T, Op>(row + i * row_stride, n));
    }
  }
}

/// The tree over `Rows` rows at one place, in vectors or single elements.
template <int Rows, class Op, class V, class Load>
[[gnu::always_inline]] inline V tree(Load&& load) {
  V part[Rows];
  for (int r = 0; r < Rows; ++r) part[r] = load(r);
  lanes::fold_halves<1>(part, applied<V, Op>);
  return part[0];
}

template <int Rows, class T, class Op>
void fold_rows_into(T* state, const void* const* rows, int64_t columns) {
  using V = lanes::Vector<T>;
  const T* row[Rows];
  for (int r = 0; r < Rows; ++r) row[r] = static_cast<const T*>(rows[r]);
  int64_t j = 0;
  for (; j + lanes::kCount<T> <= columns; j += lanes::kCount<T>) {
    const V total = tree<Rows, Op, V>([&](int r) { return lanes::load(row[r] + j); });
    lanes::store(state + j, Op::apply(lanes::load(state + j), total));
  }
  for (; j < columns; ++j) {
    state[j] = Op::apply(state[j], tree<Rows, Op, T>([&](int r) { return row[r][j]; }));
  }
}

template <class T, class Op>
void columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  auto* state = static_cast<T*>(states);
  int64_t r = 0;
  for (; r + 8 <= row_count; r += 8) fold_rows_into<8, T, Op>(state, rows + r, columns);
  for (; r + 2 <= row_count; r += 2) fold_rows_into<2, T, Op>(state, rows + r, columns);
  for (; r < row_count; ++r) fold_rows_into<1, T, Op>(state, rows + r, columns);
}

template <class T, class Op>
void merge(void* into, const void* from, int64_t count) {
  fold_rows_into<1, T, Op>(static_cast<T*>(into), &from, count);
}

template <class T, class Op>
constexpr Fold kFold{sizeof(T),   !kIsOrdering<Op>, init<T, Op>,
                     rows<T, Op>, columns<T, Op>,   merge<T, Op>};

/// Complex sums: the parts take turns in the lanes.
template <class T>
void add_complex_row(T* state, const T* data, int64_t n) {
  const int64_t rest = n % kGroup<T>;
  if (rest < n) {
    T part[lanes::kCount<T>];
    lanes::store(part, fold_groups<T, Add>(data, n));
    lanes::fold_halves<2>(part, applied<T, Add>);
    for (int k = 0; k < 2; ++k) state[k] += part[k];
  }
  if (rest == 0) return;
  T part[8];
  fold_few<2, T, Add>(data + n - rest, rest, part);
  for (int k = 0; k < 2; ++k) state[k] += part[k];
}
template <class T>
void complex_sum_init(void* states, int64_t count) {
  init<T, Add>(states, 2 * count);
}
template <class T>
void complex_sum_rows(void* states, const void* data, int64_t count, int64_t row_stride,
                      int64_t n) {
  auto* state = static_cast<T*>(states);
  const auto* row = static_cast<const T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    add_complex_row(state + 2 * i, row + 2 * i * row_stride, 2 * n);
  }
}
template <class T>
void complex_sum_columns(void* states, const void* const* rows, int64_t row_count, int64_t count) {
  columns<T, Add>(states, rows, row_count, 2 * count);
}
template <class T>
void complex_sum_merge(void* into, const void* from, int64_t count) {
  merge<T, Add>(into, from, 2 * count);
}
template <class T>
constexpr Fold kComplexSum{2 * sizeof(T),          true,
                           complex_sum_init<T>,    complex_sum_rows<T>,
                           complex_sum_columns<T>, complex_sum_merge<T>};

/// Complex products: no vectors, their multiplication is not done by lanes; of a row several side
/// by side, as each waits for the one before it.
template <class T>
void complex_rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  auto* state = static_cast<T*>(states);
  const auto* row = static_cast<const T*>(data);
  constexpr int kAbreast = 4;
  for (int64_t i = 0; i < count; ++i) {
    const T* const x = row + i * row_stride;
    T part[kAbreast] = {state[i], T(1), T(1), T(1)};
    int64_t j = 0;
    for (; j + kAbreast <= n; j += kAbreast) {
#pragma GCC unroll 4
      for (int k = 0; k < kAbreast; ++k) part[k] = times(part[k], x[j + k]);
    }
    for (; j < n; ++j) part[0] = times(part[0], x[j]);
    state[i] = times(times(part[0], part[1]), times(part[2], part[3]));
  }
}
template <class T>
void complex_columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  auto* state = static_cast<T*>(states);
  for (int64_t r = 0; r < row_count; ++r) {
    const auto* const row = static_cast<const T*>(rows[r]);
    for (int64_t j = 0; j < columns; ++j) state[j] = times(state[j], row[j]);
  }
}
template <class T>
void complex_merge(void* into, const void* from, int64_t count) {
  complex_columns<T>(into, &from, 1, count);
}
template <class T>
constexpr Fold kComplexProd{
    sizeof(T), true, init<T, Multiply>, complex_rows<T>, complex_columns<T>, complex_merge<T>};

template <class Op>
const Fold* arithmetic(DType element) {
  using Types = TypeList<float, double, int64_t, uint64_t>;
  return find_by_dtype(Types{}, element, []<class T>(TypeTag<T>) -> const Fold* {
    // The unsigned type has the same bits and wraps around.
    return &kFold<std::conditional_t<std::is_integral_v<T>, uint64_t, T>, Op>;
  });
}

template <class Op>
const Fold* ordering(DType element) {
  return find_by_dtype(OrderedTypes{}, element,
                       []<class T>(TypeTag<T>) -> const Fold* { return &kFold<T, Op>; });
}

}  // namespace

template <>
const Fold* simple_fold<isa::CUOP_ISA>(ReduceKind kind, DType element) {
  switch (kind) {
    case ReduceKind::kSum:
      if (element == DType::kComplex64) return &kComplexSum<float>;
      if (element == DType::kComplex128) return &kComplexSum<double>;
      return arithmetic<Add>(element);
    case ReduceKind::kProd:
      if (is_complex(element)) {
        return find_by_dtype(ComplexTypes{}, element,
                             []<class T>(TypeTag<T>) -> const Fold* { return &kComplexProd<T>; });
      }
      return arithmetic<Multiply>(element);
    case ReduceKind::kMax:
      return ordering<Max>(element);
    case ReduceKind::kMin:
      return ordering<Min>(element);
    default:
      return nullptr;
  }
}

}  // namespace cuop
