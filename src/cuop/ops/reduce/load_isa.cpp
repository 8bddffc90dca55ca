#include "cuop/backend/cpu/isa.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {

namespace {

struct Value {
  template <class To, class From>
  [[gnu::always_inline]] static To apply(From x) {
    if constexpr (std::is_same_v<From, To>) {
      return x;
    } else if constexpr (jit::is_narrow_type<From>) {
      return static_cast<To>(static_cast<float>(x));
    } else {
      return static_cast<To>(x);
    }
  }
};
struct Magnitude {
  template <class To, class From>
  [[gnu::always_inline]] static To apply(From x) {
    if constexpr (is_complex_type<From>) {
      return __builtin_hypot(static_cast<To>(x.real()), static_cast<To>(x.imag()));
    } else {
      return __builtin_fabs(Value::apply<To>(x));
    }
  }
};
struct Nonzero {
  template <class To, class From>
  [[gnu::always_inline]] static To apply(From x) {
    if constexpr (is_complex_type<From>) {
      return x.real() != 0 || x.imag() != 0;
    } else if constexpr (jit::is_narrow_type<From>) {
      return (x.bits & 0x7fffu) != 0;
    } else {
      return x != From(0);
    }
  }
};

template <class Map, class From, class To>
void load(const void* source, int64_t stride, void* destination, int64_t n) {
  const auto* from = static_cast<const From*>(source);
  auto* to = static_cast<To*>(destination);
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) to[i] = Map::template apply<To>(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = Map::template apply<To>(from[i * stride]);
  }
}

template <class Map, class To>
LoadFunction find(DType source) {
  return find_by_dtype(AllTypes{}, source, []<class From>(TypeTag<From>) -> LoadFunction {
    return load<Map, From, To>;
  });
}

/// Whether an element can be loaded as that type; int64 as float64 too, though it may be rounded.
template <class From, class To>
constexpr bool fits() {
  if (std::is_same_v<From, To>) return true;
  if (std::is_same_v<To, float>) return jit::is_narrow_type<From>;
  if (std::is_same_v<To, double>) return !is_complex_type<From>;
  if (std::is_same_v<To, uint8_t>) return std::is_same_v<From, bool>;
  if (!std::is_integral_v<From>) return false;
  if (std::is_same_v<To, int64_t>) return std::is_signed_v<From> || std::is_same_v<From, bool>;
  return std::is_same_v<To, uint64_t> && std::is_unsigned_v<From> && !std::is_same_v<From, bool>;
}

LoadFunction find_value(DType source, DType element) {
  using Elements = Joined<InexactTypes, TypeList<int64_t, uint64_t, int32_t, uint8_t>>;
  return find_by_dtype(Elements{}, element, [source]<class To>(TypeTag<To>) {
    return find_by_dtype(AllTypes{}, source, []<class From>(TypeTag<From>) -> LoadFunction {
      if constexpr (fits<From, To>()) {
        return load<Value, From, To>;
      } else {
        return nullptr;
      }
    });
  });
}

template <bool IsMax, class T>
void update(void* best, int64_t* position, const void* row, int64_t row_index, int64_t columns) {
  auto* leader = static_cast<T*>(best);
  const auto* candidate = static_cast<const T*>(row);
  for (int64_t j = 0; j < columns; ++j) {
    const T x = candidate[j], b = leader[j];
    const bool wins = IsMax ? x > b : x < b;
    const bool takes = wins | ((x != x) & (b == b));
    leader[j] = takes ? x : b;
    position[j] = takes ? row_index : position[j];
  }
}

/// In steps that are compared without a branch, in vectors: whether one has it, then where.
template <class T, class IsIt>
int64_t first_place(const T* data, int64_t n, IsIt is_it) {
  constexpr int kStep = 64;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    unsigned matches = 0;
    for (int k = 0; k < kStep; ++k) matches |= is_it(data[i + k]) ? 1u : 0u;
    if (matches == 0) continue;
    int first = kStep;
    for (int k = 0; k < kStep; ++k) first = is_it(data[i + k]) && k < first ? k : first;
    return i + first;
  }
  while (i < n && !is_it(data[i])) ++i;
  return i;
}
template <class T>
int64_t find_place(const void* data, int64_t n, const void* value) {
  const T wanted = *static_cast<const T*>(value);
  const auto* x = static_cast<const T*>(data);
  if (wanted != wanted) return first_place(x, n, [](T each) { return each != each; });
  return first_place(x, n, [wanted](T each) { return each == wanted; });
}

}  // namespace

template <>
LoadFunction load_function<isa::CUOP_ISA>(LoadMap map, DType source, DType element) {
  if (map == LoadMap::kNonzero && element == DType::kUInt8) {
    return find<Nonzero, uint8_t>(source);
  }
  if (map == LoadMap::kMagnitude && element == DType::kFloat64) {
    return find<Magnitude, double>(source);
  }
  return map == LoadMap::kValue ? find_value(source, element) : nullptr;
}

template <>
ArgUpdate arg_update<isa::CUOP_ISA>(bool is_max, DType element) {
  return find_by_dtype(OrderedTypes{}, element, [is_max]<class T>(TypeTag<T>) -> ArgUpdate {
    return is_max ? update<true, T> : update<false, T>;
  });
}

template <>
ArgFind arg_find<isa::CUOP_ISA>(DType element) {
  return find_by_dtype(OrderedTypes{}, element,
                       []<class T>(TypeTag<T>) -> ArgFind { return find_place<T>; });
}

}  // namespace cuop
