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
struct Square {
  template <class To, class From>
  [[gnu::always_inline]] static To apply(From x) {
    if constexpr (is_complex_type<From>) {
      const To re = static_cast<To>(x.real()), im = static_cast<To>(x.imag());
      return re * re + im * im;
    } else {
      const To value = Value::apply<To>(x);
      return value * value;
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
  using Elements = Joined<InexactTypes, IntegerTypes>;
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

}  // namespace

template <>
LoadFunction load_function<isa::CUOP_ISA>(LoadMap map, DType source, DType element) {
  if (map == LoadMap::kNonzero && element == DType::kUInt8) {
    return find<Nonzero, uint8_t>(source);
  }
  if (map == LoadMap::kMagnitude && element == DType::kFloat64) {
    return find<Magnitude, double>(source);
  }
  if (map == LoadMap::kSquare && element == DType::kFloat64) {
    return find<Square, double>(source);
  }
  return map == LoadMap::kValue ? find_value(source, element) : nullptr;
}

}  // namespace cuop
