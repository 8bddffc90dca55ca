#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/divide_up.h"
#include "cuop/ops/fft/fft_kernels.h"
#include "cuop/ops/fft/line_transform_internal.h"

namespace cuop::spectral {

using backend::FftPlanSpec;
using backend::TransformKind;

namespace {

constexpr int64_t kPartBytes = 32 << 10;  // parts that the first-level cache holds
constexpr int64_t kSplitFrom = 16384;
constexpr int64_t kSplitAll = 65536;
constexpr int64_t kManyTwos = 2048;
constexpr int64_t kSplitTo = int64_t{1} << 22;  // the table of roots is as large as the line
constexpr int64_t kMostWays = 64;

template <class Real>
class Split final : public LineTransform {
 public:
  using Complex = std::complex<Real>;

  Split(TransformKind kind, int64_t n, int64_t ways)
      : ways_(ways),
        part_(n / ways),
        // An odd number of cache lines: parts must not fall onto each other's cache sets.
        distance_((divide_up(part_ * kBytes, 64) | 1) * 64 / kBytes),
        group_(ways % kGroup == 0 ? kGroup : ways) {
    in_distance_ = out_distance_ = round_up(n, 8);
    work_bytes_ = ways_ * distance_ * kBytes;
    parts_ = backend::fft_plan(
        {kind, kDouble, part_, group_, 1, distance_, /*in_stride=*/ways_, /*out_stride=*/1});
    across_ = across_plan(kind, kBlock);
    if (part_ % kBlock != 0) across_rest_ = across_plan(kind, part_ % kBlock);
    const double sign = kind == TransformKind::kForward ? -1.0 : 1.0;
    roots_.resize(static_cast<size_t>(n));
    for (int64_t r = 0; r < ways_; ++r) {
      for (int64_t k = 0; k < part_; ++k) {
        const double angle =
            2.0 * std::numbers::pi * static_cast<double>(r * k) / static_cast<double>(n);
        roots_[static_cast<size_t>(r * part_ + k)] = {static_cast<Real>(std::cos(angle)),
                                                      static_cast<Real>(sign * std::sin(angle))};
      }
    }
  }

  void execute(void* in, void* out, void* work) const override {
    auto* const from = static_cast<Complex*>(in);
    auto* const to = static_cast<Complex*>(out);
    auto* const parts = static_cast<Complex*>(work);
    backend::parallel_for(ways_ / group_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * group_; r < end * group_; r += group_) {
        parts_->execute(from + r, parts + r * distance_);
      }
    });
    const int64_t blocks = divide_up(part_, kBlock);
    backend::parallel_for_each(blocks, 4, [&](int64_t b) { combine(parts, b * kBlock, to); });
  }

 private:
  static constexpr bool kDouble = sizeof(Real) == sizeof(double);
  static constexpr int64_t kBytes = static_cast<int64_t>(sizeof(Complex));
  static constexpr int64_t kGroup = 4;   // parts that are read side by side
  static constexpr int64_t kBlock = 64;  // columns across which the short transforms run

  std::shared_ptr<const backend::FftPlan> across_plan(TransformKind kind, int64_t columns) const {
    return backend::fft_plan({kind, kDouble, ways_, columns, 1, 1, distance_, part_});
  }

  /// out[k + part q] = sum_r roots[r, k] parts[r, k] exp(-+2 pi i r q / ways) for a block of k.
  void combine(Complex* parts, int64_t first, Complex* out) const {
    const int64_t columns = std::min(kBlock, part_ - first);
    for (int64_t r = 1; r < ways_; ++r) {
      Complex* const row = parts + r * distance_ + first;
      loops_.multiply(row, roots_.data() + r * part_ + first, columns, row);
    }
    const auto& plan = columns == kBlock ? across_ : across_rest_;
    plan->execute(parts + first, out + first);
  }

  const ComplexLoops<Real>& loops_ = complex_loops_in_use<Real>();
  int64_t ways_;
  int64_t part_;
  int64_t distance_;
  int64_t group_;
  std::vector<Complex> roots_;  // exp(-+2 pi i r k / n) at [r, k]
  std::shared_ptr<const backend::FftPlan> parts_;
  std::shared_ptr<const backend::FftPlan> across_;
  std::shared_ptr<const backend::FftPlan> across_rest_;
};

}  // namespace

int64_t split_ways(bool is_double, int64_t n) {
  const int64_t longest = kPartBytes / (is_double ? 16 : 8);
  if (n < kSplitFrom || n > kSplitTo) return 1;
  // A line that the second cache holds gains where its rows would share places of the first one.
  if (n < kSplitAll && n % kManyTwos != 0) return 1;
  // Parts and their number are multiples of the alignment that the library needs. It has a kernel
  // of its own for these numbers; across 24 or 28 parts it takes several times as long.
  for (const int64_t ways : {4, 8, 12, 16, 20, 32, 64}) {
    if (n % ways == 0 && (n / ways) % 8 == 0 && n / ways <= longest) return ways;
  }
  const bool is_long = n % kMostWays == 0 && (n / kMostWays) % 8 == 0;
  return is_long ? kMostWays : 1;
}

std::unique_ptr<LineTransform> make_split(TransformKind kind, bool is_double, int64_t n,
                                          int64_t ways) {
  if (is_double) return std::make_unique<Split<double>>(kind, n, ways);
  return std::make_unique<Split<float>>(kind, n, ways);
}

}  // namespace cuop::spectral
