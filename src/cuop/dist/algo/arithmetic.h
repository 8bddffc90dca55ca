// The operators of distributed tensors: x + 1, 2 / x, x * y, -x, x < y, each an operation of
// algo/elementwise.h.
#pragma once

#include "cuop/dist/algo/elementwise.h"

namespace cuop::dist {

/// At least one side of an operator is a DistTensor; the other may be a number.
template <class A, class B>
concept DistOperands = (std::same_as<A, DistTensor> &&
                        std::convertible_to<const B&, DistOperand>) ||
                       (std::same_as<B, DistTensor> && std::convertible_to<const A&, DistOperand>);

inline DistTensor operator-(const DistTensor& x) { return elementwise("negative", x); }
inline DistTensor operator~(const DistTensor& x) { return elementwise("bitwise_invert", x); }

#define CUOP_OPERATOR(symbol, name)                                                \
  template <class A, class B>                                                      \
  requires DistOperands<A, B> DistTensor operator symbol(const A& a, const B& b) { \
    return elementwise(name, a, b);                                                \
  }
CUOP_OPERATOR(+, "add")
CUOP_OPERATOR(-, "subtract")
CUOP_OPERATOR(*, "multiply")
CUOP_OPERATOR(/, "divide")
CUOP_OPERATOR(%, "remainder")
CUOP_OPERATOR(==, "equal")
CUOP_OPERATOR(!=, "not_equal")
CUOP_OPERATOR(<, "less")
CUOP_OPERATOR(<=, "less_equal")
CUOP_OPERATOR(>, "greater")
CUOP_OPERATOR(>=, "greater_equal")
#undef CUOP_OPERATOR

}  // namespace cuop::dist
