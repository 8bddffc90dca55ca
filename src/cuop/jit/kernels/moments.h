// How many numbers there were, and the sums of their distances and squared distances from a center
// near their mean. Distances from zero would lose what the numbers have in common: beside 1e8 a
// spread of 1 keeps none of its digits when it is squared.
//
// The center stays within the spread of the numbers (`recenter`), so that what is taken away in
// `about_mean` is no larger than what is left, and the mean, center + sum / count, has more digits
// than a double: what moments of parts are merged by is the difference of their means.
#pragma once

#include "cuop/jit/kernels/compensated.h"

namespace cuop {

namespace detail {
CUOP_FN double product(double a, double b) { return a * b; }
CUOP_FN double scaled(double a, double by) { return a * by; }
/// Of complex numbers as of vectors in the plane.
template <class R>
CUOP_FN R product(const jit::Complex<R>& a, const jit::Complex<R>& b) {
  return a.real() * b.real() + a.imag() * b.imag();
}
template <class R>
CUOP_FN jit::Complex<R> scaled(const jit::Complex<R>& a, R by) {
  return {a.real() * by, a.imag() * by};
}
}  // namespace detail

/// T: double, or a complex number of doubles, whose squared distance is that of both parts.
template <class T>
struct MomentsOf {
  T center, sum;   ///< sum of x - center
  double squares;  ///< sum of |x - center|^2
  int64_t count;

  /// One number more. Where `is_first` may hold the first number becomes the center.
  CUOP_FN void take(T x, bool is_first) {
    if (is_first) center = jit::choose(count == 0, x, center);
    const T apart = x - center;
    sum = sum + apart;
    squares = squares + detail::product(apart, apart);
    ++count;
  }

  /// Sum of |x - mean|^2; exactly 0 where all numbers are the same.
  CUOP_FN double about_mean() const { return count == 0 ? 0.0 : about_mean(mean_offset()); }

  CUOP_FN T mean() const { return center + mean_offset(); }
  CUOP_FN double variance() const { return about_mean() / static_cast<double>(count); }

  /// The mean becomes the center; what it has beyond a double stays in the sum.
  CUOP_FN void recenter() {
    const T offset = mean_offset();
    settle(offset, about_mean(offset));
  }
  /// The same each time that the count has doubled.
  CUOP_FN void recenter_if_due() {
    if (count > 1 && (count & (count - 1)) == 0) recenter();
  }

  /// By the formula of Chan, Golub and LeVeque (1983).
  CUOP_FN void merge(const MomentsOf& from) {
    if (from.count == 0) return;
    if (count == 0) {
      *this = from;
      return;
    }
    const double here = static_cast<double>(count), there = static_cast<double>(from.count);
    // One division for all that is divided by.
    const double inverse = 1.0 / (here * there * (here + there));
    const double share = there * (here * there) * inverse;
    const T offset = detail::scaled(sum, there * (here + there) * inverse);
    const T other_offset = detail::scaled(from.sum, here * (here + there) * inverse);
    const T apart = (from.center - center) + (other_offset - offset);
    const double all = about_mean(offset) + from.about_mean(other_offset) +
                       detail::product(apart, apart) * (here * share);
    count += from.count;
    settle(offset + detail::scaled(apart, share), all);
  }

 private:
  static constexpr double kLargest = 0x1.fffffffffffffp1023;

  CUOP_FN T mean_offset() const { return detail::scaled(sum, 1.0 / static_cast<double>(count)); }

  CUOP_FN double about_mean(const T& offset) const {
    const double less = detail::product(sum, offset);
    // Of squares that overflowed nothing can be taken away, unless infinities were among the
    // numbers, which have no mean.
    const bool is_finite = detail::product(sum, T(0.0)) == 0.0;
    const double rest = squares > kLargest && is_finite ? squares : squares - less;
    return rest < 0.0 ? 0.0 : rest;
  }

  /// Moves the center by `offset`, where the mean of all `count` numbers is; `all` are the squares
  /// about it.
  CUOP_FN void settle(const T& offset, double all) {
    const T before = center;
    T left;
    two_sum(before, offset, center, left);
    const double total = static_cast<double>(count);
    sum = detail::scaled(left, total);
    squares = all + total * detail::product(left, left);
  }
};

using Moments = MomentsOf<double>;

}  // namespace cuop
