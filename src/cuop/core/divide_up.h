// How many pieces of one size cover a length, and what they cover.
#pragma once

namespace cuop {

/// a / b, rounded up; a is not negative and b is positive.
template <class A, class B>
constexpr auto divide_up(A a, B b) {
  return (a + b - 1) / b;
}
/// The smallest multiple of b that is not below a.
template <class A, class B>
constexpr auto round_up(A a, B b) {
  return divide_up(a, b) * b;
}

}  // namespace cuop
