// A short list of 64-bit sizes, strides or axes with inline storage: a plain value, cheap to copy.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <vector>

namespace cuop {

/// The largest number of dimensions a tensor may have.
inline constexpr int kMaxDims = 32;

class Dims {
 public:
  Dims() {}  // the sizes beyond count_ are left as they are: copying all of them costs more than
             // most of what is done with a small tensor
  Dims(const Dims& other) : count_(other.count_) { copy_from(other); }
  Dims& operator=(const Dims& other) {
    count_ = other.count_;
    copy_from(other);
    return *this;
  }
  Dims(std::initializer_list<int64_t> values);
  explicit Dims(std::span<const int64_t> values);
  explicit Dims(const std::vector<int64_t>& values) : Dims(std::span<const int64_t>(values)) {}
  /// `count` times `value`.
  static Dims filled(int count, int64_t value);

  int ndim() const { return count_; }
  bool empty() const { return count_ == 0; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  int64_t back() const { return (*this)[count_ - 1]; }
  int64_t& back() { return (*this)[count_ - 1]; }

  /// Throws ShapeError beyond kMaxDims.
  void push_back(int64_t value);
  void insert(int position, int64_t value);
  void erase(int position);

  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + count_; }
  int64_t* begin() { return values_.data(); }
  int64_t* end() { return values_.data() + count_; }

  bool operator==(const Dims& other) const;
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }

 private:
  void copy_from(const Dims& other) {
    for (int i = 0; i < count_; ++i) (*this)[i] = other[i];
  }

  std::array<int64_t, kMaxDims> values_;
  int count_ = 0;
};

using Shape = Dims;
using Strides = Dims;

/// As Python prints a tuple: (), (3,), (2, 3).
std::ostream& operator<<(std::ostream& out, const Dims& dims);

/// Product of the sizes; UnnamedShapeError on a negative size or when it does not fit int64.
int64_t element_count(const Shape& shape);
/// a*b, or ShapeError "who: ... does not fit in 64 bits".
int64_t checked_multiply(int64_t a, int64_t b, const char* who);
/// The same of a shape's sizes: UnnamedShapeError.
int64_t checked_multiply(int64_t a, int64_t b);
/// a+b, or ShapeError "who: ...".
int64_t checked_add(int64_t a, int64_t b, const char* who);
/// Axis counted from the back when negative; ShapeError "who: axis 3 is out of range for a tensor
/// of 2 dimensions" otherwise.
int normalize_axis(int64_t axis, int ndim, const char* who);
/// Distinct normalised axes in the order given; ShapeError where one is given twice.
std::vector<int> axes_as_given(std::span<const int64_t> axes, int ndim, const char* who);
/// The same in ascending order; every axis when `axes` is empty.
std::vector<int> normalize_axes(std::span<const int64_t> axes, int ndim, const char* who);
/// Whether the normalised axis is one of these.
bool has_axis(std::span<const int> axes, int axis);
/// NumPy broadcasting; ShapeError naming both shapes.
Shape broadcast_shapes(const Shape& a, const Shape& b, const char* who);

}  // namespace cuop
