#include <complex>

#include "cuop/backend/cpu/isa.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/reduce/load.h"

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

template <class Map, class To, class... From>
LoadFunction find(TypeList<From...>, DType source) {
  LoadFunction found = nullptr;
  ((source == dtype_of<From> ? void(found = load<Map, From, To>) : void()), ...);
  return found;
}

LoadFunction find_value(DType source, DType element) {
  switch (element) {
    case DType::kFloat16:
      return find<Value, Half>(TypeList<Half>{}, source);
    case DType::kBFloat16:
      return find<Value, BFloat16>(TypeList<BFloat16>{}, source);
    case DType::kFloat32:
      return find<Value, float>(TypeList<Half, BFloat16, float>{}, source);
    case DType::kFloat64:
      return find<Value, double>(RealTypes{}, source);
    case DType::kInt64:
      return find<Value, int64_t>(TypeList<bool, int8_t, int16_t, int32_t, int64_t>{}, source);
    case DType::kUInt64:
      return find<Value, uint64_t>(TypeList<uint8_t, uint16_t, uint32_t, uint64_t>{}, source);
    case DType::kInt32:
      return find<Value, int32_t>(TypeList<int32_t>{}, source);
    case DType::kUInt8:
      return find<Value, uint8_t>(TypeList<bool, uint8_t>{}, source);
    case DType::kComplex64:
      return find<Value, std::complex<float>>(TypeList<std::complex<float>>{}, source);
    case DType::kComplex128:
      return find<Value, std::complex<double>>(TypeList<std::complex<double>>{}, source);
    default:
      return nullptr;
  }
}

}  // namespace

template <>
LoadFunction load_function<isa::CUOP_ISA>(LoadMap map, DType source, DType element) {
  if (map == LoadMap::kNonzero && element == DType::kUInt8) {
    return find<Nonzero, uint8_t>(AllTypes{}, source);
  }
  if (map == LoadMap::kMagnitude && element == DType::kFloat64) {
    return find<Magnitude, double>(AllTypes{}, source);
  }
  return map == LoadMap::kValue ? find_value(source, element) : nullptr;
}

}  // namespace cuop
