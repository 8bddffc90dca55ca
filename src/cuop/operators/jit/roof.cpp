#include "cuop/operators/jit/roof.h"

#include <algorithm>
#include <cstring>

#include "cuop/backend/cpu/blas.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/matmul/matmul.h"

namespace cuop {

namespace {

constexpr int kRepetitions = 3;

/// Shortest of some runs, in seconds; one more run before them warms up.
template <class Function>
double best_time(Function&& f) {
  f();
  int64_t best = INT64_MAX;
  for (int i = 0; i < kRepetitions; ++i) {
    const int64_t start = trace::now_ns();
    f();
    best = std::min(best, trace::now_ns() - start);
  }
  return static_cast<double>(std::max<int64_t>(best, 1)) * 1e-9;
}

double measure_copy() {
  constexpr int64_t kBytes = int64_t{64} << 20;  // beyond the caches
  const Tensor from = ones({kBytes / 4}), to = zeros({kBytes / 4});
  auto* const dst = static_cast<char*>(to.data());
  const auto* const src = static_cast<const char*>(from.data());
  const double seconds = best_time([&] {
    backend::parallel_for(kBytes, 1 << 20, [&](int64_t begin, int64_t end) {
      std::memcpy(dst + begin, src + begin, static_cast<size_t>(end - begin));
    });
  });
  return 2.0 * static_cast<double>(kBytes) / seconds;
}

double measure_product(DType dtype) {
  if (!backend::blas::info().is_available) return 0.0;
  constexpr int64_t kSize = 768;
  const Tensor a = full({kSize, kSize}, 0.5, dtype), b = full({kSize, kSize}, 0.25, dtype);
  const Tensor c = empty({kSize, kSize}, dtype);
  const double seconds = best_time([&] { matmul(a, b, {}, &c); });
  return 2.0 * static_cast<double>(kSize * kSize * kSize) / seconds;
}

double copy_roof() {
  static const double measured = measure_copy();
  return measured;
}

}  // namespace

const Roof& measured_roof(DType dtype) {
  if (dtype == DType::kFloat64) {
    static const Roof roof{measure_product(DType::kFloat64), copy_roof()};
    return roof;
  }
  static const Roof roof{measure_product(DType::kFloat32), copy_roof()};
  return roof;
}

double percent_of_roof(const Cost& cost, double milliseconds, DType dtype) {
  if (!(milliseconds > 0.0)) return 0.0;
  const Roof& roof = measured_roof(dtype);
  const double for_flops = roof.flops_per_second > 0.0 ? cost.flops / roof.flops_per_second : 0.0;
  const double for_bytes = static_cast<double>(cost.bytes) / roof.bytes_per_second;
  return std::max(for_flops, for_bytes) * 1e3 / milliseconds * 100.0;
}

}  // namespace cuop
