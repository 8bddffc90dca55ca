// Layer and root-mean-square normalisation of rows on a GPU, each row by a team of threads. The
// variance is taken around the mean that was found before, so that a large mean cancels nothing.
#pragma once

#include "cuop/jit/kernels/rows.cuh"
#include "cuop/ops/norm/norm_arguments.cuh"

namespace cuop::jit {

namespace detail {
/// In what sums are taken. The squares of a bfloat16 may be beyond float.
template <class Stored>
struct NormSum {
  using type = double;
};
template <>
struct NormSum<Half> {
  using type = float;
};
template <class Group>
inline constexpr bool is_grouped = true;
template <>
inline constexpr bool is_grouped<void> = false;
}  // namespace detail

/// gamma and beta for the elements of a pack. Group is the unsigned type that positions are divided
/// in where neighbours share an entry (a pack then lies within one entry), or void.
template <class T, class Group>
class NormAffine {
 public:
  CUOP_FN explicit NormAffine(const NormArguments& a)
      : gamma_(static_cast<const T*>(a.gamma)),
        beta_(static_cast<const T*>(a.beta)),
        inner_(a.inner) {}

  template <int Width>
  CUOP_FN void apply(T (&values)[Width], int64_t at) const {
    if constexpr (detail::is_grouped<Group>) {
      const auto channel = static_cast<Group>(at) / static_cast<Group>(inner_);
      const T factor = gamma_[channel], offset = beta_ == nullptr ? T(0) : beta_[channel];
#pragma unroll
      for (int j = 0; j < Width; ++j) values[j] = values[j] * factor + offset;
    } else {
      T factor[Width];
      load_pack(factor, gamma_ + at);
#pragma unroll
      for (int j = 0; j < Width; ++j) values[j] *= factor[j];
      if (beta_ == nullptr) return;
      load_pack(factor, beta_ + at);
#pragma unroll
      for (int j = 0; j < Width; ++j) values[j] += factor[j];
    }
  }

 private:
  const T* gamma_;
  const T* beta_;
  int64_t inner_;
};

template <class Stored, int Width, int Team, int Keep, bool IsCentred, class Group>
CUOP_FN void norm_rows(const NormArguments& a) {
  using T = Computed<Stored>;
  using S = typename detail::NormSum<Stored>::type;
  const NormAffine<T, Group> affine(a);
  const S count = static_cast<S>(a.length);
  Agreement<Team, S> agreed;
  for_team_rows<Team>(a.rows, [&](int64_t index, bool is_row) {
    TeamRow<Stored, Width, Team, Keep> row(static_cast<const Stored*>(a.x) + index * a.length,
                                           a.length, is_row);
    Stored* const to = static_cast<Stored*>(a.y) + index * a.length;
    S mean = S(0), squares = S(0);
    if constexpr (IsCentred) {
      row.each_pack([&](T(&values)[Width], int64_t) {
#pragma unroll
        for (int j = 0; j < Width; ++j) mean += S(values[j]);
      });
      mean = agreed(mean, Total{}) / count;
    }
    row.each_pack([&](T(&values)[Width], int64_t) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const S distance = S(values[j]) - mean;
        squares += distance * distance;
      }
    });
    const S power = agreed(squares, Total{}) / count;
    const T scale = static_cast<T>(S(1) / math::sqrt(power + S(a.eps)));
    row.each_pack([&](T(&values)[Width], int64_t at) {
#pragma unroll
      for (int j = 0; j < Width; ++j) values[j] = static_cast<T>(S(values[j]) - mean) * scale;
      affine.apply(values, at);
      store_computed<Stored>(to + at, values);
    });
  });
}

}  // namespace cuop::jit
