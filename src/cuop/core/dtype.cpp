#include "cuop/core/dtype.h"

#include <array>
#include <vector>

#include "cuop/core/text.h"

namespace cuop {

namespace {

struct DTypeInfo {
  const char* name;
  int64_t itemsize;
};

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"bool", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"uint8", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
    {"float16", 2},
    {"bfloat16", 2},
    {"float32", 4},
    {"float64", 8},
    {"complex64", 8},
    {"complex128", 16},
}};

struct Alias {
  const char* text;
  DType dtype;
};
constexpr Alias kAliases[] = {{"half", DType::kFloat16},
                              {"float", DType::kFloat32},
                              {"double", DType::kFloat64},
                              {"int", DType::kInt64}};

DType integer_of(bool is_signed, int64_t bytes) {
  const int log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  const DType first = is_signed ? DType::kInt8 : DType::kUInt8;
  return static_cast<DType>(static_cast<int>(first) + log2);
}

DType promote_integers(DType a, DType b) {
  const int64_t wide = std::max(itemsize(a), itemsize(b));
  if (is_signed_integer(a) == is_signed_integer(b)) return integer_of(is_signed_integer(a), wide);
  const DType unsigned_one = is_unsigned_integer(a) ? a : b;
  const DType signed_one = is_unsigned_integer(a) ? b : a;
  if (itemsize(signed_one) > itemsize(unsigned_one)) return signed_one;
  if (itemsize(unsigned_one) == 8) return DType::kFloat64;  // as NumPy: no 128-bit integer
  return integer_of(true, 2 * itemsize(unsigned_one));
}

DType promote_floats(DType a, DType b) {
  if (a == b) return a;
  if (itemsize(a) == itemsize(b)) return DType::kFloat32;  // float16 with bfloat16
  return itemsize(a) > itemsize(b) ? a : b;
}

/// The float that NumPy chooses when an integer of this width meets a float.
DType float_for_integer(DType integer) {
  switch (itemsize(integer)) {
    case 1:
      return DType::kFloat16;
    case 2:
      return DType::kFloat32;
    default:
      return DType::kFloat64;
  }
}

}  // namespace

const char* name(DType dtype) { return kInfo[static_cast<size_t>(dtype)].name; }

int64_t itemsize(DType dtype) { return kInfo[static_cast<size_t>(dtype)].itemsize; }

DType parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (text == kInfo[static_cast<size_t>(i)].name) return static_cast<DType>(i);
  }
  for (const Alias& alias : kAliases) {
    if (text == alias.text) return alias.dtype;
  }
  std::vector<const char*> names;
  for (const DTypeInfo& info : kInfo) names.push_back(info.name);
  throw DTypeError(cat("dtype: '", text, "' is unknown; known are ", join(names)));
}

IntegerRange integer_range(DType dtype) {
  const auto bits = 8 * itemsize(dtype);
  if (is_unsigned_integer(dtype)) return {0, ~uint64_t{0} >> (64 - bits)};
  const uint64_t high = ~uint64_t{0} >> (65 - bits);
  return {-static_cast<int64_t>(high) - 1, high};
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  if (is_complex(a) || is_complex(b)) {
    const DType real = promote(real_dtype(a), real_dtype(b));
    return complex_dtype(is_integer(real) ? float_for_integer(real) : real);
  }
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  if (is_integer(a)) return promote(b, a);
  if (is_integer(b)) {
    if (a == DType::kBFloat16) return itemsize(b) == 1 ? a : float_for_integer(b);
    return promote_floats(a, float_for_integer(b));
  }
  return promote_floats(a, b);
}

DType compute_dtype(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

DType to_inexact(DType dtype) {
  return is_floating(dtype) || is_complex(dtype) ? dtype : DType::kFloat64;
}

DType real_dtype(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  if (dtype == DType::kComplex128) return DType::kFloat64;
  return dtype;
}

DType complex_dtype(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::kFloat64 || is_integer(dtype) ? DType::kComplex128 : DType::kComplex64;
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

void throw_unsupported_dtype(std::string_view who, DType given, const DType* allowed, int count) {
  std::vector<DType> list(allowed, allowed + count);
  throw DTypeError(cat(who, ": dtype ", given, " is not supported; supported are ", join(list)));
}

}  // namespace cuop
