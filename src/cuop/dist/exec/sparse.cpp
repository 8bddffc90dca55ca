#include "cuop/dist/exec/sparse.h"

#include <algorithm>
#include <limits>

#include "cuop/core/divide_up.h"
#include "cuop/core/dtype.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/sparse/bitmap.h"

namespace cuop::dist {
namespace {

using Kind = SparseForm::Kind;

constexpr int64_t kPlaceBytes = 4;
constexpr int64_t kBits = 8;

/// A view where the strides allow it, of any stride.
Tensor flat(const Tensor& x) { return reshape(x, {x.size()}); }

/// Elements at even distances.
Tensor sample_of(const Tensor& x) {
  constexpr int64_t kElements = 4096;
  Tensor sample = x;
  while (sample.size() > kElements) {
    int longest = 0;
    for (int dim = 1; dim < sample.ndim(); ++dim) {
      if (sample.shape(dim) > sample.shape(longest)) longest = dim;
    }
    // Odd steps go through all columns of what is even.
    const int64_t step = std::min(divide_up(sample.size(), kElements) | 1, sample.shape(longest));
    sample = slice(sample, longest, 0, sample.shape(longest), step);
  }
  return sample;
}

/// Whether a sample has so few zeros that the tensor has them too.
bool has_fewer_zeros(const Tensor& x, double threshold) {
  constexpr double kDoubt = 0.03;  // four standard deviations of the sample
  const Tensor sample = sample_of(x);
  const auto count = static_cast<double>(sample.size());
  return count - static_cast<double>(count_nonzero(sample)) < (threshold - kDoubt) * count;
}

/// Of 16-bit floats by their bits but the sign: to convert them takes longer than to pack them.
int64_t nonzeros_of(const Tensor& x) {
  const bool is_short = is_floating(x.dtype()) && itemsize(x.dtype()) == 2;
  if (!is_short || !x.is_contiguous() || !x.device().is_cpu()) return count_nonzero(x);
  constexpr int64_t kAllButSign = 0x7fff;
  return count_nonzero(bitwise_and(seen_as(x, DType::kUInt16), kAllButSign));
}

}  // namespace

SparseForm SparseForm::shortest(int64_t n, int64_t nonzeros, int64_t item, double threshold) {
  const auto zeros = static_cast<double>(n - nonzeros);
  if (n == 0 || zeros < threshold * static_cast<double>(n)) return {Kind::kDense, n};
  SparseForm form{Kind::kDense, n};
  int64_t least = n * item;
  for (const Kind kind : {Kind::kBitmap, Kind::kCoordinates}) {
    if (kind == Kind::kCoordinates && n > std::numeric_limits<uint32_t>::max()) continue;
    const SparseForm other{kind, nonzeros};
    const int64_t bytes = other.index_bytes(n) + nonzeros * item;
    if (bytes >= least) continue;
    least = bytes;
    form = other;
  }
  return form;
}

int64_t SparseForm::index_bytes(int64_t n) const {
  if (kind == Kind::kDense) return 0;
  return kind == Kind::kBitmap ? divide_up(n, kBits) : nonzeros * kPlaceBytes;
}

bool SparseForm::is_sound(int64_t n) const {
  if (kind == Kind::kDense) return nonzeros == n;
  return (kind == Kind::kBitmap || kind == Kind::kCoordinates) && nonzeros >= 0 && nonzeros <= n;
}

Sparse without_zeros(const Tensor& x, double threshold, bool is_sampled) {
  if (is_sampled && has_fewer_zeros(x, threshold)) return {{Kind::kDense, x.size()}, {}, x};
  const SparseForm form =
      SparseForm::shortest(x.size(), nonzeros_of(x), itemsize(x.dtype()), threshold);
  if (form.kind == Kind::kDense) return {form, {}, x};
  const Tensor all = flat(x);
  if (form.kind == Kind::kBitmap) {
    const Bitmap bitmap = bitmap_of(all, form.nonzeros);
    return {form, bitmap.bits, bitmap.values};
  }
  const Tensor mask = not_equal(all, 0);
  return {form, seen_as(cast(nonzero(mask)[0], DType::kUInt32), DType::kUInt8),
          masked_select(all, mask)};
}

Sparse empty_sparse(const SparseForm& form, const Tensor& like) {
  if (form.kind == Kind::kDense) return {form, {}, like};
  return {form, empty({form.index_bytes(like.size())}, DType::kUInt8, like.device()),
          empty({form.nonzeros}, like.dtype(), like.device())};
}

void with_zeros_into(const Tensor& out, const Sparse& from) {
  if (from.form.kind == Kind::kDense) {
    if (from.values.data() != out.data()) copy_into(out, from.values);
    return;
  }
  const bool is_in_place = out.is_contiguous();
  const Tensor all = is_in_place ? flat(out) : empty({out.size()}, out.dtype(), out.device());
  if (from.form.kind == Kind::kBitmap) {
    expand_bitmap({from.index, from.values}, all);
  } else {
    fill(all, 0);
    put_along_axis(all, cast(seen_as(from.index, DType::kUInt32), DType::kInt64), from.values, 0);
  }
  if (!is_in_place) copy_into(out, reshape(all, out.shape()));
}

}  // namespace cuop::dist
