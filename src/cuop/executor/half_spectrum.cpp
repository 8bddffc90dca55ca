#include "cuop/executor/half_spectrum.h"

#include <algorithm>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"

namespace cuop::executor {
Interval HalfSpectrum::mirrored(Interval rows) const {
  const Interval columns = opposite({std::max<int64_t>(rows.low, 1), rows.high});
  return columns.length() > 0 ? columns : Interval{n1_ - 1, n1_};
}

HalfSpectrum::Parts HalfSpectrum::parts_of(const Tensor& half, Interval rows) const {
  const int64_t whole = runs_ * n1_;
  const Tensor runs = reshape(slice(half, 0, 0, whole), {runs_, n1_});
  const Interval columns = mirrored(rows);
  return {slice(runs, 1, rows.low, rows.high), slice(runs, 1, columns.low, columns.high),
          slice(half, 0, whole, whole + rest_)};
}

std::vector<HalfSpectrum::Pair> HalfSpectrum::pairs(const Parts& half, Interval at, Interval other,
                                                    const Tensor& rows) const {
  const auto within = [&](Interval wanted) {  // its rows
    return slice(rows, 0, wanted.low - at.low, wanted.high - at.low);
  };
  std::vector<Pair> pairs{{transpose(half.direct), slice(rows, 1, 0, runs_), false}};
  const Interval begun{at.low, std::min(at.high, rest_)};
  if (begun.high > begun.low) {
    pairs.push_back(
        {slice(half.begun, 0, begun.low, begun.high), select(within(begun), 1, runs_), false});
  }
  if (other.high <= other.low) return pairs;
  const Interval columns = opposite(other);
  const int64_t first = mirrored(at).low;
  pairs.push_back({transpose(slice(half.mirrored, 1, columns.low - first, columns.high - first)),
                   slice(within(other), 1, n2_ - runs_, n2_), true});
  const Interval late{std::max(other.low, n1_ - rest_ + 1), other.high};
  if (late.high > late.low) {
    const Interval end = opposite(late);
    pairs.push_back(
        {slice(half.begun, 0, end.low, end.high), select(within(late), 1, n2_ - 1 - runs_), true});
  }
  return pairs;
}

void HalfSpectrum::gather(const Parts& half, Interval at, const Tensor& rows) const {
  for (const Pair& pair : pairs(half, at, {std::max<int64_t>(at.low, 1), at.high}, rows)) {
    if (pair.is_mirrored) {
      conj(flip(pair.half), &pair.rows);
    } else {
      copy_into(pair.rows, pair.half);
    }
  }
  if (at.low > 0) return;
  const Tensor own = select(rows, 0, 0);
  const int64_t known = runs_ + (rest_ > 0 ? 1 : 0);
  if (known == n2_) return;
  const Tensor end = slice(own, 0, known, n2_);
  conj(flip(slice(own, 0, 1, n2_ - known + 1)), &end);
}

void HalfSpectrum::scatter(const Parts& half, Interval at, const Tensor& rows) const {
  // Row n1 / 2 is its own conjugate.
  const Interval other{std::max<int64_t>(at.low, 1), std::min(at.high, (n1_ - 1) / 2 + 1)};
  for (const Pair& pair : pairs(half, at, other, rows)) {
    if (!pair.is_mirrored) {
      copy_across(pair.half, pair.rows);
    } else {
      conj(pair.rows, &pair.rows);
      copy_across(pair.half, flip(pair.rows));
    }
  }
}

}  // namespace cuop::executor
