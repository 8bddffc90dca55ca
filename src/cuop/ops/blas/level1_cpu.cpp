#include <algorithm>
#include <vector>

#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/arithmetic.h"
#include "cuop/ops/blas/blas_kernels.h"
#include "cuop/ops/blas/level1_kernels.h"
#include "cuop/ops/convert_internal.h"
#include "cuop/ops/dtype_lists.h"
#include "cuop/ops/strided.h"

namespace cuop::kernels {

namespace {

using jit::Computed;
using jit::is_narrow_type;

/// Elements handled at a time: small enough for the first cache, with room for three vectors.
constexpr int64_t kBlock = 1024;
/// Elements below which another thread does not pay.
constexpr int64_t kGrain = 32768;

/// `count` elements as a contiguous vector: where they lie when they are one, else in `room`.
template <class T>
const Computed<T>* load(const T* from, int64_t step, int64_t count, Computed<T>* room) {
  if constexpr (is_narrow_type<T>) {
    if (step == 1) {
      backend::to_float(from, room, count);
      return room;
    }
  } else {
    if (step == 1) return from;
  }
  for (int64_t i = 0; i < count; ++i) room[i] = static_cast<Computed<T>>(from[i * step]);
  return room;
}

template <class T>
void store(const Computed<T>* from, int64_t count, T* to, int64_t step) {
  if constexpr (is_narrow_type<T>) {
    if (step == 1) {
      backend::from_float(from, to, count);
      return;
    }
  }
  for (int64_t i = 0; i < count; ++i) to[i * step] = static_cast<T>(from[i]);
}

template <class T>
const Level1<T>& level1() {
  return std::get<Level1<T>>(isa::choose(
      []<class Level>(Level) -> const Level1Kernels& { return level1_kernels<Level>(); }));
}

template <class T>
void axpy_typed(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out) {
  using C = Computed<T>;
  const Level1<C>& kernels = level1<C>();
  const C factor = convert_scalar<C>(alpha);
  const Tensor& addend = y != nullptr ? *y : x;
  const auto nest =
      make_loop_nest<3>(out.shape(), {&out.strides(), &x.strides(), &addend.strides()});
  T* const out_data = static_cast<T*>(out.data());
  const T* const x_data = static_cast<const T*>(x.data());
  const T* const y_data = static_cast<const T*>(addend.data());
  const auto [size, steps] = nest.inner();
  const int64_t blocks = divide_up(size, kBlock);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::min(size, kBlock));
  backend::parallel_for(nest.outer_size() * blocks, grain, [&](int64_t begin, int64_t end) {
    C room_x[kBlock], room_y[kBlock], room_out[kBlock];
    for (int64_t i = begin; i < end; ++i) {
      const auto offsets = nest.row_offsets(i / blocks);
      const int64_t first = i % blocks * kBlock, count = std::min(kBlock, size - first);
      T* const target = out_data + offsets[0] + first * steps[0];
      const C* const from = load(x_data + offsets[1] + first * steps[1], steps[1], count, room_x);
      C* result = room_out;
      if constexpr (!is_narrow_type<T>) {
        if (steps[0] == 1) result = target;
      }
      if (y == nullptr) {
        kernels.scal(count, factor, from, result);
      } else {
        const C* const added =
            load(y_data + offsets[2] + first * steps[2], steps[2], count, room_y);
        kernels.axpy(count, factor, from, added, result);
      }
      if (result == room_out) store(room_out, count, target, steps[0]);
    }
  });
}

template <class T>
typename Level1<Computed<T>>::Sum dot_typed(const Tensor& x, const Tensor& y, bool conjugate) {
  using C = Computed<T>;
  using Sum = typename Level1<C>::Sum;
  const Level1<C>& kernels = level1<C>();
  const int64_t size = x.size();
  const T* const x_data = static_cast<const T*>(x.data());
  const T* const y_data = static_cast<const T*>(y.data());
  const int64_t x_step = x.strides()[0], y_step = y.strides()[0];
  // One partial sum for each fixed piece, added in order: the same bits on any number of threads.
  std::vector<Sum> partial(static_cast<size_t>(divide_up(size, kGrain)));
  backend::parallel_for(static_cast<int64_t>(partial.size()), 1, [&](int64_t begin, int64_t end) {
    C room_x[kBlock], room_y[kBlock];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t last = std::min(size, (piece + 1) * kGrain);
      const bool is_dense = !is_narrow_type<T> && x_step == 1 && y_step == 1;
      const int64_t block = is_dense ? kGrain : kBlock;
      Sum sum = 0;
      for (int64_t i = piece * kGrain; i < last; i += block) {
        const int64_t count = std::min(block, last - i);
        sum += kernels.dot(count, load(x_data + i * x_step, x_step, count, room_x),
                           load(y_data + i * y_step, y_step, count, room_y), conjugate);
      }
      partial[static_cast<size_t>(piece)] = sum;
    }
  });
  Sum total = 0;
  for (const Sum& sum : partial) total += sum;
  return total;
}

}  // namespace

void axpy_cpu(const Scalar& alpha, const Tensor& x, const Tensor* y, const Tensor& out) {
  visit_dtype(NumericTypes{}, out.dtype(), y != nullptr ? "axpy" : "scal",
              [&]<class T>(TypeTag<T>) { axpy_typed<Wrapping<T>>(alpha, x, y, out); });
}

DotValue dot_cpu(const Tensor& x, const Tensor& y, bool conjugate) {
  return visit_dtype(NumericTypes{}, x.dtype(), "dot", [&]<class T>(TypeTag<T>) {
    const auto sum = dot_typed<Wrapping<T>>(x, y, conjugate);
    if constexpr (std::is_integral_v<T>) {
      using Widest = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return DotValue(Widest{static_cast<T>(sum)});
    } else if constexpr (is_complex_type<T>) {
      return DotValue(sum);
    } else {
      return DotValue(sum.real());
    }
  });
}

}  // namespace cuop::kernels
