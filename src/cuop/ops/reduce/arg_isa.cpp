// Positions of the largest or smallest element, across rows and along them.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuop/backend/cpu/isa.h"
#include "cuop/backend/cpu/lanes.h"
#include "cuop/ops/reduce/fold.h"

namespace cuop {

namespace {

/// A NaN is better than any number.
template <bool IsMax, class T>
[[gnu::always_inline]] inline bool is_better(T x, T best) {
  const bool wins = IsMax ? x > best : x < best;
  return wins | ((x != x) & (best == best));
}

template <bool IsMax, class T>
void update(void* best, int64_t* position, const void* row, int64_t row_index, int64_t columns) {
  auto* leader = static_cast<T*>(best);
  const auto* candidate = static_cast<const T*>(row);
  for (int64_t j = 0; j < columns; ++j) {
    const bool takes = is_better<IsMax>(candidate[j], leader[j]);
    leader[j] = takes ? candidate[j] : leader[j];
    position[j] = takes ? row_index : position[j];
  }
}

/// Of each lane of vectors that it looks at in turn the best number and where that vector began.
template <bool IsMax, class T>
struct BestLanes {
  using Place = lanes::detail::Signed<static_cast<int>(sizeof(T))>;
  static constexpr int kCount = lanes::kCount<T>;
  lanes::Vector<T> value;
  lanes::Vector<Place> begin;

  [[gnu::always_inline]] void look_at(const lanes::Vector<T>& x, int64_t at) {
    const auto place = static_cast<Place>(at);
#pragma GCC unroll 4
    for (int i = 0; i < lanes::kParts; ++i) {
      const auto takes = IsMax ? x.part[i] > value.part[i] : x.part[i] < value.part[i];
      value.part[i] = takes ? x.part[i] : value.part[i];
      begin.part[i] = takes ? place - decltype(begin.part[i] + place){} : begin.part[i];
    }
  }
  /// Where the other's lane is better, or is equal and stands before.
  [[gnu::always_inline]] void join(const BestLanes& other) {
#pragma GCC unroll 4
    for (int i = 0; i < lanes::kParts; ++i) {
      const auto &x = other.value.part[i], &y = value.part[i];
      const auto takes =
          (IsMax ? x > y : x < y) | ((x == y) & (other.begin.part[i] < begin.part[i]));
      value.part[i] = takes ? x : y;
      begin.part[i] = takes ? other.begin.part[i] : begin.part[i];
    }
  }
  /// The best of all lanes and its first place.
  [[gnu::always_inline]] int64_t place(T& best) const {
    best = lanes::fold<T>(value, [](T a, T b) { return is_better<IsMax>(a, b) ? a : b; });
    T values[kCount];
    Place places[kCount], first = std::numeric_limits<Place>::max();
    lanes::store(values, value);
    lanes::store(places, begin);
    for (int k = 0; k < kCount; ++k) {
      const Place here = values[k] == best ? static_cast<Place>(places[k] + k) : first;
      first = here < first ? here : first;
    }
    return first;
  }
};

/// With care for NaN, or without.
template <bool IsMax, bool IsCareful, class T>
[[gnu::always_inline]] inline int64_t place_one_by_one(const T* x, int64_t n, T& best) {
  int64_t place = 0;
  best = x[0];
  for (int64_t i = 1; i < n; ++i) {
    const bool wins = IsMax ? x[i] > best : x[i] < best;
    const bool takes = IsCareful ? is_better<IsMax>(x[i], best) : wins;
    best = takes ? x[i] : best;
    place = takes ? i : place;
  }
  return place;
}

/// Rows of fewer than two vectors.
template <bool IsMax, class T>
int64_t place_in_short(const T* x, int64_t n, T& best) {
  if constexpr (std::is_floating_point_v<T>) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    if (sum != sum) return place_one_by_one<IsMax, true>(x, n, best);
  }
  return place_one_by_one<IsMax, false>(x, n, best);
}

/// Rows of at least one vector. A sum beside them tells cheaply that there may be a NaN; only then
/// they are looked through with care.
template <bool IsMax, class T>
int64_t place_by_lanes(const T* x, int64_t n, T& best) {
  using V = lanes::Vector<T>;
  constexpr int kCount = lanes::kCount<T>;
  BestLanes<IsMax, T> even{lanes::load(x), {}}, odd = even;
  V check{};
  for (int64_t i = 0; i < n; i += 2 * kCount) {
    // The last ones may begin in those before: an equal number changes nothing.
    const int64_t at = std::min(i, n - kCount), next = std::min(i + kCount, n - kCount);
    const V first = lanes::load(x + at), second = lanes::load(x + next);
    even.look_at(first, at);
    odd.look_at(second, next);
    if constexpr (std::is_floating_point_v<T>) check = check + (first + second);
  }
  if constexpr (std::is_floating_point_v<T>) {
    T sums[kCount];
    lanes::store(sums, check);
    int unsure = 0;
    for (int k = 0; k < kCount; ++k) unsure |= sums[k] != sums[k] ? 1 : 0;
    if (unsure != 0) return place_one_by_one<IsMax, true>(x, n, best);
  }
  even.join(odd);
  return even.place(best);
}

/// The best of a row of integers.
template <bool IsMax, class T>
T best_of_narrow(const T* x, int64_t n) {
  constexpr int64_t kCount = lanes::kCount<T>;
  T best = x[0];
  if (n >= kCount) {
    lanes::Vector<T> even = lanes::load(x), odd = even;
    const auto pick = [](const auto& a, const auto& b) {
      return IsMax ? lanes::larger(a, b) : lanes::smaller(a, b);
    };
    // The last ones may begin in those before: twice the same changes nothing.
    for (int64_t i = 0; i < n; i += 2 * kCount) {
      even = pick(even, lanes::load(x + std::min(i, n - kCount)));
      odd = pick(odd, lanes::load(x + std::min(i + kCount, n - kCount)));
    }
    return lanes::fold<T>(pick(even, odd), [](T a, T b) { return is_better<IsMax>(a, b) ? a : b; });
  }
  for (int64_t i = 1; i < n; ++i) best = is_better<IsMax>(x[i], best) ? x[i] : best;
  return best;
}

/// Where a value that the row has stands first.
template <class T>
int64_t first_place(const T* x, int64_t n, T value) {
  if constexpr (sizeof(T) == 1) {
    return static_cast<const T*>(std::memchr(x, value, static_cast<size_t>(n))) - x;
  } else {
    constexpr int64_t kRun = 64;
    int64_t start = 0;
    for (; start + kRun <= n; start += kRun) {
      int found = 0;
      for (int64_t i = 0; i < kRun; ++i) found |= x[start + i] == value ? 1 : 0;
      if (found != 0) break;
    }
    return std::find(x + start, x + n, value) - x;
  }
}

template <bool IsMax, class T>
int64_t place_of_best(const void* data, int64_t n, void* result) {
  const auto* const x = static_cast<const T*>(data);
  T best = x[0];
  int64_t place = 0;
  if constexpr (sizeof(T) <= 2) {  // too narrow to hold places beside them: a second look
    best = best_of_narrow<IsMax>(x, n);
    place = first_place(x, n, best);
  } else if (n < 2 * lanes::kCount<T>) {
    place = place_in_short<IsMax>(x, n, best);
  } else {
    place = place_by_lanes<IsMax>(x, n, best);
  }
  *static_cast<T*>(result) = best;
  return place;
}

}  // namespace

template <>
ArgUpdate arg_update<isa::CUOP_ISA>(bool is_max, DType element) {
  return find_by_dtype(OrderedTypes{}, element, [is_max]<class T>(TypeTag<T>) -> ArgUpdate {
    return is_max ? update<true, T> : update<false, T>;
  });
}

template <>
ArgRow arg_row<isa::CUOP_ISA>(bool is_max, DType element) {
  return find_by_dtype(OrderedTypes{}, element, [is_max]<class T>(TypeTag<T>) -> ArgRow {
    return is_max ? place_of_best<true, T> : place_of_best<false, T>;
  });
}

}  // namespace cuop
