#include <algorithm>
#include <bit>
#include <cmath>

#include "cuop/core/divide_up.h"
#include "cuop/core/lru_cache.h"
#include "cuop/ops/fft/line_transform_internal.h"

namespace cuop::spectral {

using backend::TransformKind;

namespace {

bool is_real_side(TransformKind kind, bool is_input) {
  return kind == (is_input ? TransformKind::kRealForward : TransformKind::kRealBackward);
}

bool is_complex_kind(TransformKind kind) {
  return kind == TransformKind::kForward || kind == TransformKind::kBackward;
}

/// The library's own plan.
class DirectTransform final : public LineTransform {
 public:
  DirectTransform(TransformKind kind, bool is_double, int64_t n) {
    // Short lines are done several at once: the library vectorises across them.
    constexpr int64_t kShort = 64;
    constexpr int64_t kShortBatch = 16;
    batch_ = n < kShort ? kShortBatch : 1;
    const int64_t real_bytes = is_double ? 8 : 4;
    const auto distance = [&](int64_t length, bool is_real) {
      return aligned_distance(length, is_real ? real_bytes : 2 * real_bytes);
    };
    in_distance_ = distance(input_length(kind, n), is_real_side(kind, true));
    out_distance_ = distance(output_length(kind, n), is_real_side(kind, false));
    plan_ = backend::fft_plan({kind, is_double, n, batch_, in_distance_, out_distance_});
  }

  void execute(void* in, void* out, void*) const override { plan_->execute(in, out); }

 private:
  std::shared_ptr<const backend::FftPlan> plan_;
};

int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

/// Bluestein needs two transforms of more than twice the length and three products over them, which
/// takes less than what the library does, with plans that are not measured, for large prime
/// factors.
bool prefers_bluestein(int64_t n, bool is_double) {
  constexpr int64_t kSmall = 50;
  return n >= kSmall && largest_factor(n) >= (is_double ? 41 : 31);
}

std::unique_ptr<LineTransform> make_transform(TransformKind kind, bool is_double, int64_t n) {
  const bool is_bluestein = prefers_bluestein(n, is_double);
  const bool may_be_half = !is_complex_kind(kind) && n % 2 == 0;
  if (may_be_half && (is_bluestein || prefers_half(kind, is_double, n))) {
    return make_half(kind, is_double, n);
  }
  if (is_bluestein) return make_bluestein(kind, is_double, n);
  const int64_t ways = is_complex_kind(kind) ? split_ways(is_double, n) : 1;
  if (ways > 1) return make_split(kind, is_double, n, ways);
  return std::make_unique<DirectTransform>(kind, is_double, n);
}

/// A relative estimate of the library's time for a length whose prime factors are 2, 3, 5 and 7,
/// as measured with the plans that FFTW makes without measuring. Beyond the first cache, rows of
/// many factors 2 share its places.
double smooth_cost(int64_t n, bool is_double) {
  constexpr int64_t kFirstCache = 48 << 10;
  constexpr double kOther = 1.12, kSeven = 1.05, kManyTwos = 1.1, kFewTwos = 1.6;
  const int twos = std::countr_zero(static_cast<uint64_t>(n));
  double cost = static_cast<double>(n);
  int64_t rest = n >> twos;
  for (const int64_t p : {3, 5, 7}) {
    for (; rest % p == 0; rest /= p) cost *= p == 7 ? kOther * kSeven : kOther;
  }
  if (n * (is_double ? 16 : 8) > kFirstCache) cost *= std::pow(kManyTwos, std::max(0, twos - 6));
  return !is_double && twos < 2 ? kFewTwos * cost : cost;
}

}  // namespace

int64_t input_length(TransformKind kind, int64_t n) {
  return kind == TransformKind::kRealBackward ? n / 2 + 1 : n;
}

int64_t output_length(TransformKind kind, int64_t n) {
  return kind == TransformKind::kRealForward ? n / 2 + 1 : n;
}

int64_t aligned_distance(int64_t length, int64_t element_bytes) {
  const int64_t step = std::max<int64_t>(1, backend::kFftAlignment / element_bytes);
  return round_up(length, step);
}

int64_t smooth_length(int64_t n, bool is_double) {
  int64_t best = 1;
  while (best < n) best *= 2;
  double best_cost = smooth_cost(best, is_double);
  for (int64_t sevens = 1; sevens < 2 * n; sevens *= 7) {
    for (int64_t fives = sevens; fives < 2 * n; fives *= 5) {
      for (int64_t threes = fives; threes < 2 * n; threes *= 3) {
        int64_t length = threes;
        while (length < n) length *= 2;
        const double cost = smooth_cost(length, is_double);
        if (cost < best_cost) {
          best = length;
          best_cost = cost;
        }
      }
    }
  }
  return best;
}

std::shared_ptr<const LineTransform> line_transform(TransformKind kind, bool is_double, int64_t n) {
  using Key = backend::FftPlanSpec;
  using Value = std::shared_ptr<const LineTransform>;
  static auto* kept = new SharedLruCache<Key, Value, backend::FftPlanSpecHash>(256);
  return kept->get({kind, is_double, n}, [&] { return make_transform(kind, is_double, n); });
}

}  // namespace cuop::spectral
