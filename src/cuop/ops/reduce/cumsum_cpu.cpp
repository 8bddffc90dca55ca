#include <algorithm>
#include <complex>
#include <cstdlib>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/reduce/reduce_kernels.h"

namespace cuop::kernels {

namespace {

// Unsigned: integers wrap around.
using SumTypes =
    TypeList<int64_t, uint64_t, float, double, std::complex<float>, std::complex<double>>;
constexpr int64_t kColumns = 256;

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

/// Running sums of `width` neighbouring lines in place.
template <class T>
void scan(T* line, int64_t step, int64_t width, int64_t stride, int64_t length) {
  if (width == 1) {
    T total = line[0];
    for (int64_t i = 1; i < length; ++i) {
      total = plus(total, line[i * stride]);
      line[i * stride] = total;
    }
    return;
  }
  for (int64_t i = 1; i < length; ++i) {
    T* row = line + i * stride;
    for (int64_t j = 0; j < width; ++j) row[j * step] = plus(row[j * step - stride], row[j * step]);
  }
}

}  // namespace

void cumsum_cpu(const Tensor& x, int axis, const Tensor& result) {
  if (compute_dtype(result.dtype()) != result.dtype()) {
    const Tensor wide = cast(x, compute_dtype(result.dtype()));
    cumsum_cpu(wide, axis, wide);
    return copy_into(result, wide);
  }
  if (!is_same_view(result, x)) copy_into(result, x);
  Shape lines = result.shape();
  lines[axis] = 1;
  const LoopNest<1> nest = make_loop_nest<1>(lines, {&result.strides()});
  const auto& inner = nest.inner();
  const int64_t stride = result.strides()[axis], length = result.shape(axis);
  const int64_t tile = std::abs(inner.strides[0]) < std::abs(stride) ? kColumns : 1;
  const int64_t tiles = divide_up(inner.size, tile);
  visit_dtype(SumTypes{}, result.dtype(), "cumsum", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* data = result.data<T>();
    backend::parallel_for(
        nest.outer_size() * tiles, std::max<int64_t>(1, (1 << 15) / (length * tile)),
        [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) {
            const int64_t first = task % tiles * tile;
            scan(data + nest.row_offsets(task / tiles)[0] + first * inner.strides[0],
                 inner.strides[0], std::min(tile, inner.size - first), stride, length);
          }
        });
  });
}

}  // namespace cuop::kernels
