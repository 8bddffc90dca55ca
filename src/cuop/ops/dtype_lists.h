// Lists of dtypes put together from those of core/dtype.h, for families that name what they take.
#pragma once

#include "cuop/core/dtype.h"

namespace cuop {

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

using InexactTypes = Joined<FloatingTypes, ComplexTypes>;
/// Everything but bool.
using NumericTypes = Joined<IntegerTypes, InexactTypes>;
using RealNumericTypes = Joined<IntegerTypes, FloatingTypes>;

}  // namespace cuop
