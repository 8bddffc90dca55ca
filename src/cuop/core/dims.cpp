#include "cuop/core/dims.h"

#include <algorithm>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

Dims::Dims(std::initializer_list<int64_t> values)
    : Dims(std::span<const int64_t>(values.begin(), values.size())) {}

Dims::Dims(std::span<const int64_t> values) {
  for (int64_t value : values) push_back(value);
}

Dims Dims::filled(int count, int64_t value) {
  Dims dims;
  for (int i = 0; i < count; ++i) dims.push_back(value);
  return dims;
}

void Dims::push_back(int64_t value) {
  if (count_ == kMaxDims) {
    throw UnnamedShapeError(
        cat("shape: a tensor has at most ", kMaxDims, " dimensions, more were given"));
  }
  values_[static_cast<size_t>(count_++)] = value;
}

void Dims::insert(int position, int64_t value) {
  push_back(value);
  std::rotate(begin() + position, end() - 1, end());
}

void Dims::erase(int position) {
  std::copy(begin() + position + 1, end(), begin() + position);
  --count_;
}

bool Dims::operator==(const Dims& other) const {
  if (count_ != other.count_) return false;
  for (int i = 0; i < count_; ++i) {  // too few for a call of memcmp
    if ((*this)[i] != other[i]) return false;
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  return out << '(' << join(dims) << (dims.ndim() == 1 ? ",)" : ")");
}

namespace {

template <class E>
int64_t product_of(int64_t a, int64_t b, const char* who) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) {
    throw E(cat(who, ": ", a, " * ", b, " does not fit in 64 bits"));
  }
  return product;
}

}  // namespace

int64_t checked_multiply(int64_t a, int64_t b, const char* who) {
  return product_of<ShapeError>(a, b, who);
}
int64_t checked_multiply(int64_t a, int64_t b) {
  return product_of<UnnamedShapeError>(a, b, "shape");
}

int64_t checked_add(int64_t a, int64_t b, const char* who) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw ShapeError(cat(who, ": ", a, " + ", b, " does not fit in 64 bits"));
  }
  return sum;
}

namespace {

/// The count where sizes are 0, the ShapeError where they are negative or too large together.
int64_t count_unusual(const Shape& shape) {
  bool is_empty = false;
  for (int64_t size : shape) {
    if (size < 0) {
      throw UnnamedShapeError(cat("shape: sizes must not be negative, given ", shape));
    }
    is_empty = is_empty || size == 0;
  }
  if (is_empty) return 0;
  int64_t count = 1;
  for (int64_t size : shape) count = checked_multiply(count, size);
  return count;
}

}  // namespace

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size <= 0 || __builtin_mul_overflow(count, size, &count)) [[unlikely]]
      return count_unusual(shape);
  }
  return count;
}

int normalize_axis(int64_t axis, int ndim, const char* who) {
  if (axis < -ndim || axis >= ndim) {
    throw ShapeError(
        cat(who, ": axis ", axis, " is out of range for a tensor of ", ndim, " dimensions"));
  }
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

std::vector<int> axes_as_given(std::span<const int64_t> axes, int ndim, const char* who) {
  std::vector<int> result;
  for (const int64_t each : axes) {
    const int axis = normalize_axis(each, ndim, who);
    if (has_axis(result, axis)) {
      throw ShapeError(cat(who, ": an axis is given twice in (", join(axes), ")"));
    }
    result.push_back(axis);
  }
  return result;
}

std::vector<int> normalize_axes(std::span<const int64_t> axes, int ndim, const char* who) {
  std::vector<int> result = axes_as_given(axes, ndim, who);
  if (axes.empty()) {
    for (int i = 0; i < ndim; ++i) result.push_back(i);
  }
  std::sort(result.begin(), result.end());
  return result;
}

bool has_axis(std::span<const int> axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* who) {
  const int ndim = std::max(a.ndim(), b.ndim());
  Shape result = Dims::filled(ndim, 1);
  for (int i = 1; i <= ndim; ++i) {
    const int64_t x = i <= a.ndim() ? a[a.ndim() - i] : 1;
    const int64_t y = i <= b.ndim() ? b[b.ndim() - i] : 1;
    if (x != y && x != 1 && y != 1) {
      throw ShapeError(cat(who, ": shapes ", a, " and ", b, " do not broadcast: axis -", i, " is ",
                           x, " and ", y));
    }
    result[ndim - i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace cuop
