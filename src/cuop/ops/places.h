// The loops that kernels are given.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/ops/places.cuh"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

template <size_t N>
jit::Places<static_cast<int>(N)> places_of(const LoopNest<N>& nest) {
  jit::Places<static_cast<int>(N)> places{};
  places.axes = nest.count;
  for (int i = 0; i < nest.count; ++i) {
    const auto& axis = nest.axes[static_cast<size_t>(i)];
    places.sizes[i] = axis.size;
    for (size_t k = 0; k < N; ++k) places.strides[k][i] = axis.strides[k];
  }
  return places;
}

/// The lines of x and out, which have one shape, along the axis; those of x that are next to each
/// other in memory follow each other.
inline jit::LinePair lines_along(int axis, const Tensor& x, const Tensor& out) {
  Shape others = x.shape();
  others[axis] = 1;
  const LoopNest<2> nest = make_loop_nest<2>(others, {&x.strides(), &out.strides()});
  return {x.data(),      out.data(),        places_of(nest),    nest.size(),
          x.shape(axis), x.strides()[axis], out.strides()[axis]};
}

}  // namespace cuop::kernels
