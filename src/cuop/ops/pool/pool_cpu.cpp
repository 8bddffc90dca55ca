// Each output row is pooled in two steps: the image rows of its windows are combined column by
// column, then the windows slide along the combined row.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "cuop/backend/cpu/half_convert.h"
#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/long_loop.h"
#include "cuop/jit/kernels/narrow.h"
#include "cuop/ops/pool/pool_kernels.h"

namespace cuop::kernels {

namespace {

template <class C>
const PoolRows<C>& rows(bool is_max) {
  const auto& loops = std::get<PoolLoops<C>>(
      isa::choose([]<class Level>(Level) -> const PoolKernels& { return pool_kernels<Level>(); }));
  return is_max ? loops.max : loops.sum;
}

/// Where a window of the axis meets the image.
struct Span {
  int64_t begin;
  int64_t end;
};
Span window(const Pooling& p, size_t axis, int64_t index) {
  const int64_t first = index * p.stride[axis] - p.padding[axis];
  return {std::max<int64_t>(0, first), std::min(p.in[axis], first + p.kernel[axis])};
}

template <class T>
class PlanePool {
  static constexpr bool kIsHalf = jit::is_narrow_type<T>;
  using C = std::conditional_t<kIsHalf, float, T>;

 public:
  explicit PlanePool(const Pooling& p)
      : p_(p), rows_(rows<C>(p.is_max)), plane_(allocate(kIsHalf ? Pooling::volume(p.in) : 0)) {
    if (p.is_global()) return;
    const int64_t width =
        std::max(p.in[2] + p.padding[2], (p.out[2] - 1) * p.stride[2] + p.kernel[2]);
    row_ = allocate(width);
    std::fill_n(row_.get(), p.padding[2], neutral());
    const int64_t end = p.padding[2] + p.in[2];
    std::fill_n(row_.get() + end, width - end, neutral());
    out_row_ = allocate(kIsHalf ? p.out[2] : 0);
    for (int64_t i = 0; i < p.out[2] && !p.is_max; ++i) {
      const Span columns = window(p, 2, i);
      columns_.push_back(
          static_cast<C>(p.count_include_pad ? p.kernel[2] : columns.end - columns.begin));
      lookout_.after(1);
    }
  }

  void run(const T* x, T* y) {
    const C* const plane = load(x);
    if (p_.is_global()) {
      const int64_t count = Pooling::volume(p_.in);
      auto value = rows_.all(plane, count);
      if constexpr (!std::is_integral_v<T>) {
        if (!p_.is_max) value /= static_cast<double>(count);
      }
      *y = static_cast<T>(static_cast<C>(value));
      return;
    }
    for (int64_t od = 0; od < p_.out[0]; ++od) {
      for (int64_t oh = 0; oh < p_.out[1]; ++oh, y += p_.out[2]) output_row(plane, od, oh, y);
    }
  }

 private:
  /// Not written beforehand: a plane may be so large that this takes long.
  static std::unique_ptr<C[]> allocate(int64_t count) {
    return std::make_unique_for_overwrite<C[]>(static_cast<size_t>(count));
  }

  C neutral() const {
    using Limits = std::numeric_limits<C>;
    if (!p_.is_max) return C(0);
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }

  const C* load(const T* x) {
    if constexpr (kIsHalf) {
      in_pieces(Pooling::volume(p_.in), [&](int64_t begin, int64_t end) {
        backend::to_float(x + begin, plane_.get() + begin, end - begin);
      });
      return plane_.get();
    } else {
      return x;
    }
  }

  void output_row(const C* plane, int64_t od, int64_t oh, T* y) {
    const Span depths = window(p_, 0, od), heights = window(p_, 1, oh);
    C* const combined = row_.get() + p_.padding[2];  // between columns of padding
    bool is_first = true;
    for (int64_t d = depths.begin; d < depths.end; ++d) {
      for (int64_t h = heights.begin; h < heights.end; ++h) {
        const C* const row = plane + (d * p_.in[1] + h) * p_.in[2];
        if (is_first) {
          in_pieces(p_.in[2], [&](int64_t begin, int64_t end) {
            std::copy(row + begin, row + end, combined + begin);
          });
          is_first = false;
        } else {
          rows_.combine(row, p_.in[2], combined);
        }
        lookout_.after(p_.in[2]);
      }
    }
    C* result = out_row_.get();
    if constexpr (!kIsHalf) result = y;
    rows_.slide(row_.get(), p_.out[2], p_.kernel[2], p_.stride[2], result);
    lookout_.after(p_.out[2] * p_.kernel[2]);
    if constexpr (!std::is_integral_v<T>) {
      if (!p_.is_max) divide(result, depths, heights);
    }
    if constexpr (kIsHalf) backend::from_float(result, y, p_.out[2]);
  }

  /// By the elements of each window.
  void divide(C* sums, const Span& depths, const Span& heights) const {
    const int64_t lines = p_.count_include_pad
                              ? p_.kernel[0] * p_.kernel[1]
                              : (depths.end - depths.begin) * (heights.end - heights.begin);
    const C factor = static_cast<C>(lines);
    for (int64_t i = 0; i < p_.out[2]; ++i) sums[i] /= factor * columns_[static_cast<size_t>(i)];
  }

  const Pooling& p_;
  const PoolRows<C>& rows_;
  Lookout lookout_;  ///< a plane may be large
  std::unique_ptr<C[]> plane_, row_, out_row_;
  std::vector<C> columns_;
};

}  // namespace

void pool_cpu(const Pooling& pool, const Tensor& x, const Tensor& y) {
  visit_dtype(RealNumericTypes{}, x.dtype(), "pool", [&]<class T>(TypeTag<T>) {
    const int64_t in = Pooling::volume(pool.in), out = Pooling::volume(pool.out);
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    backend::parallel_for(pool.planes, 1 + 16384 / in, [&](int64_t begin, int64_t end) {
      PlanePool<T> plane(pool);
      for (int64_t i = begin; i < end; ++i) plane.run(from + i * in, to + i * out);
    });
  });
}

}  // namespace cuop::kernels
