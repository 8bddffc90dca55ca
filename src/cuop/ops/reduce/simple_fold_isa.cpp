// Sum, product, largest and smallest: folds whose state is one element.
#include <algorithm>
#include <complex>
#include <limits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
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
// A NaN stays: `b != b` takes a new one, and no comparison with an old one is true.
struct Max {
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity
                                    ? -std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::lowest();
  template <class V>
  [[gnu::always_inline]] static V apply(const V& a, const V& b) {
    return (b > a) | (b != b) ? b : a;
  }
};
struct Min {
  template <class T>
  static constexpr T identity = std::numeric_limits<T>::has_infinity
                                    ? std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::max();
  template <class V>
  [[gnu::always_inline]] static V apply(const V& a, const V& b) {
    return (b < a) | (b != b) ? b : a;
  }
};

constexpr int kAccumulators = 4;
constexpr int kGroupsPerLeaf = 16;

/// Four vectors that are folded side by side: enough to hide the latency of an addition.
template <class T, class Op>
struct Accumulators {
  lanes::Vector<T> part[kAccumulators];

  [[gnu::always_inline]] void load(const T* data) {
    for (int k = 0; k < kAccumulators; ++k) part[k] = lanes::load(data + k * lanes::kCount<T>);
  }
  [[gnu::always_inline]] void fold(const T* data) {
    for (int k = 0; k < kAccumulators; ++k) {
      part[k] =
          Op::template apply<lanes::Vector<T>>(part[k], lanes::load(data + k * lanes::kCount<T>));
    }
  }
  [[gnu::always_inline]] void fold(const Accumulators& other) {
    for (int k = 0; k < kAccumulators; ++k) {
      part[k] = Op::template apply<lanes::Vector<T>>(part[k], other.part[k]);
    }
  }
  [[gnu::always_inline]] T total() const {
    using V = lanes::Vector<T>;
    const V low = Op::template apply<V>(part[0], part[1]);
    const V high = Op::template apply<V>(part[2], part[3]);
    return lanes::fold<T>(Op::template apply<V>(low, high), Op::template apply<T>);
  }
};

template <class T, class Op>
T fold_short(const T* data, int64_t n) {
  T part[8];
  std::fill(part, part + 8, Op::template identity<T>);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) part[k] = Op::template apply<T>(part[k], data[i + k]);
  }
  for (int k = 0; i < n; ++i, ++k) part[k] = Op::template apply<T>(part[k], data[i]);
  for (int half = 4; half > 0; half /= 2) {
    for (int k = 0; k < half; ++k) part[k] = Op::template apply<T>(part[k], part[k + half]);
  }
  return part[0];
}

/// Leaves of 16 groups, combined pairwise like the carries of a binary counter: the error of a sum
/// grows with the logarithm of n.
template <class T, class Op>
T fold_row(const T* data, int64_t n) {
  constexpr int64_t kGroup = kAccumulators * lanes::kCount<T>;
  if (n < kGroup) return fold_short<T, Op>(data, n);
  Accumulators<T, Op> stack[48];
  int64_t leaves = 0;
  int depth = 0;
  int64_t i = 0;
  while (i + kGroup <= n) {
    Accumulators<T, Op> leaf;
    leaf.load(data + i);
    const int64_t groups = std::min<int64_t>(kGroupsPerLeaf, (n - i) / kGroup);
    for (int64_t g = 1; g < groups; ++g) leaf.fold(data + i + g * kGroup);
    i += groups * kGroup;
    ++leaves;
    for (int64_t carry = leaves; (carry & 1) == 0; carry >>= 1) leaf.fold(stack[--depth]);
    stack[depth++] = leaf;
  }
  while (depth > 1) {
    --depth;
    stack[depth - 1].fold(stack[depth]);
  }
  T result = stack[0].total();
  if (i < n) result = Op::template apply<T>(result, fold_short<T, Op>(data + i, n - i));
  return result;
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
    state[i] = Op::template apply<T>(state[i], fold_row<T, Op>(row + i * row_stride, n));
  }
}

/// The tree over `Rows` rows at one place, in vectors or single elements.
template <int Rows, class Op, class V, class Load>
[[gnu::always_inline]] inline V tree(Load&& load) {
  V part[Rows];
  for (int r = 0; r < Rows; ++r) part[r] = load(r);
  for (int half = Rows / 2; half > 0; half /= 2) {
    for (int r = 0; r < half; ++r) part[r] = Op::template apply<V>(part[r], part[r + half]);
  }
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
    lanes::store(state + j, Op::template apply<V>(lanes::load(state + j), total));
  }
  for (; j < columns; ++j) {
    state[j] = Op::template apply<T>(state[j], tree<Rows, Op, T>([&](int r) { return row[r][j]; }));
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
constexpr Fold kFold{sizeof(T), init<T, Op>, rows<T, Op>, columns<T, Op>, merge<T, Op>};

/// Complex products: no vectors, their multiplication is not done by lanes.
template <class T>
void complex_rows(void* states, const void* data, int64_t count, int64_t row_stride, int64_t n) {
  auto* state = static_cast<T*>(states);
  const auto* row = static_cast<const T*>(data);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < n; ++j) state[i] *= row[i * row_stride + j];
  }
}
template <class T>
void complex_columns(void* states, const void* const* rows, int64_t row_count, int64_t columns) {
  auto* state = static_cast<T*>(states);
  for (int64_t r = 0; r < row_count; ++r) {
    for (int64_t j = 0; j < columns; ++j) state[j] *= static_cast<const T*>(rows[r])[j];
  }
}
template <class T>
void complex_merge(void* into, const void* from, int64_t count) {
  complex_columns<T>(into, &from, 1, count);
}
template <class T>
constexpr Fold kComplexProd{sizeof(T), init<T, Multiply>, complex_rows<T>, complex_columns<T>,
                            complex_merge<T>};

template <class Op>
const Fold* arithmetic(DType element) {
  switch (element) {
    case DType::kFloat32:
      return &kFold<float, Op>;
    case DType::kFloat64:
      return &kFold<double, Op>;
    case DType::kInt64:  // the unsigned type has the same bits and wraps around
    case DType::kUInt64:
      return &kFold<uint64_t, Op>;
    default:
      return nullptr;
  }
}

template <class Op>
const Fold* ordering(DType element) {
  switch (element) {
    case DType::kFloat32:
      return &kFold<float, Op>;
    case DType::kFloat64:
      return &kFold<double, Op>;
    case DType::kInt64:
      return &kFold<int64_t, Op>;
    case DType::kUInt64:
      return &kFold<uint64_t, Op>;
    case DType::kInt32:
      return &kFold<int32_t, Op>;
    case DType::kUInt8:
      return &kFold<uint8_t, Op>;
    default:
      return nullptr;
  }
}

}  // namespace

template <>
const Fold* simple_fold<isa::CUOP_ISA>(FoldKind kind, DType element) {
  switch (kind) {
    case FoldKind::kSum:
      return arithmetic<Add>(element);
    case FoldKind::kProd:
      if (element == DType::kComplex64) return &kComplexProd<std::complex<float>>;
      if (element == DType::kComplex128) return &kComplexProd<std::complex<double>>;
      return arithmetic<Multiply>(element);
    case FoldKind::kMax:
      return ordering<Max>(element);
    case FoldKind::kMin:
      return ordering<Min>(element);
    default:
      return nullptr;
  }
}

}  // namespace cuop
