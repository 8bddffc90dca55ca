// Element types, their promotion, and the one visitor that turns a run-time dtype into a C++ type.
#pragma once

#include <complex>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/half.h"

namespace cuop {

enum class DType : uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
inline constexpr int kDTypeCount = 15;

/// The NumPy name: "float32", "bool", "complex64", ...
const char* name(DType dtype);
/// Inverse of `name`; also accepts "half", "float", "double", "int". Throws DTypeError naming all
/// dtypes.
DType parse_dtype(std::string_view text);
/// Bytes of one element.
int64_t itemsize(DType dtype);

constexpr bool is_bool(DType d) { return d == DType::kBool; }
constexpr bool is_signed_integer(DType d) { return d >= DType::kInt8 && d <= DType::kInt64; }
constexpr bool is_unsigned_integer(DType d) { return d >= DType::kUInt8 && d <= DType::kUInt64; }
constexpr bool is_integer(DType d) { return d >= DType::kInt8 && d <= DType::kUInt64; }
constexpr bool is_floating(DType d) { return d >= DType::kFloat16 && d <= DType::kFloat64; }
constexpr bool is_complex(DType d) { return d >= DType::kComplex64; }

/// The least and the greatest value of an integer dtype.
struct IntegerRange {
  int64_t low = 0;
  uint64_t high = 0;
};
IntegerRange integer_range(DType dtype);

/// The dtype that both promote to, by the Python Array API's table, extended as NumPy does where
/// that table is silent (int64 with float32 is float64; float16 with bfloat16 is float32).
DType promote(DType a, DType b);
/// float32 for float16 and bfloat16, else itself: the type in which arithmetic is done.
DType compute_dtype(DType dtype);
/// The floating dtype in which a function such as exp returns for this input: float64 for integers
/// and bool, itself otherwise.
DType to_inexact(DType dtype);
/// The real dtype of a complex one (complex64 -> float32); itself otherwise.
DType real_dtype(DType dtype);
/// The complex dtype of a floating one (float32 -> complex64, float64 -> complex128).
DType complex_dtype(DType dtype);

std::ostream& operator<<(std::ostream& out, DType dtype);

/// A C++ type as a value, handed to the lambda of `visit_dtype`.
template <class T>
struct TypeTag {
  using type = T;
};

template <class... T>
struct TypeList {};

namespace detail {
template <class... Lists>
struct Joined;
template <class... T>
struct Joined<TypeList<T...>> {
  using type = TypeList<T...>;
};
template <class... A, class... B, class... Rest>
struct Joined<TypeList<A...>, TypeList<B...>, Rest...> : Joined<TypeList<A..., B...>, Rest...> {};
}  // namespace detail

/// All types of the lists, in their order.
template <class... Lists>
using Joined = typename detail::Joined<Lists...>::type;

using IntegerTypes =
    TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
/// Floats of 16 bits, which are computed in float32.
using NarrowTypes = TypeList<Half, BFloat16>;
using FloatTypes = TypeList<float, double>;
using FloatingTypes = Joined<NarrowTypes, FloatTypes>;
using ComplexTypes = TypeList<std::complex<float>, std::complex<double>>;
using FloatComplexTypes = Joined<FloatTypes, ComplexTypes>;
using InexactTypes = Joined<FloatingTypes, ComplexTypes>;
/// Everything but bool.
using NumericTypes = Joined<IntegerTypes, InexactTypes>;
using RealNumericTypes = Joined<IntegerTypes, FloatingTypes>;
using RealTypes = Joined<TypeList<bool>, RealNumericTypes>;
/// In the order of DType.
using AllTypes = Joined<RealTypes, ComplexTypes>;

namespace detail {
template <class T, class... Listed>
consteval DType dtype_in(TypeList<Listed...>) {
  static_assert((std::is_same_v<T, Listed> || ...), "no dtype has elements of this type");
  int before = 0;
  static_cast<void>(((std::is_same_v<T, Listed> || (++before, false)) || ...));
  return static_cast<DType>(before);
}
}  // namespace detail

template <class T>
inline constexpr DType dtype_of = detail::dtype_in<std::remove_cv_t<T>>(AllTypes{});

/// Throws the DTypeError "who: dtype X is not supported; supported are ...".
[[noreturn]] void throw_unsupported_dtype(std::string_view who, DType given, const DType* allowed,
                                          int count);

/// What `f(TypeTag<T>{})` returns for the T of the list that `dtype` names; null, or what else a
/// value of that type begins with, for a dtype outside the list.
template <class... T, class F>
auto find_by_dtype(TypeList<T...>, DType dtype, F&& f) {
  std::common_type_t<std::invoke_result_t<F, TypeTag<T>>...> result{};
  ((dtype == dtype_of<T> ? void(result = f(TypeTag<T>{})) : void()), ...);
  return result;
}

/// Calls `f(TypeTag<T>{})` for the T of the list that `dtype` names; a dtype outside the list is a
/// DTypeError that names `who`, the dtype and the list.
template <class... T, class F>
decltype(auto) visit_dtype(TypeList<T...>, DType dtype, std::string_view who, F&& f) {
  using Result = std::common_type_t<std::invoke_result_t<F, TypeTag<T>>...>;
  static constexpr DType kAllowed[] = {dtype_of<T>...};
  if constexpr (std::is_void_v<Result>) {
    const bool found = ((dtype == dtype_of<T> ? (f(TypeTag<T>{}), true) : false) || ...);
    if (!found) throw_unsupported_dtype(who, dtype, kAllowed, sizeof...(T));
  } else {
    Result result{};
    const bool found = ((dtype == dtype_of<T> ? (result = f(TypeTag<T>{}), true) : false) || ...);
    if (!found) throw_unsupported_dtype(who, dtype, kAllowed, sizeof...(T));
    return result;
  }
}

}  // namespace cuop
