// What the tests of calls in tiles share.
#pragma once

#include <cstdint>
#include <memory>

#include "cuop/executor/tiled_call.h"
#include "cuop/ops/index/view.h"
#include "tests/dist/algo_test.h"

namespace cuop::executor::testing {

inline constexpr int64_t kKiB = 1024;

inline Tensor host_noise(const Shape& shape, DType dtype = DType::kFloat64, unsigned seed = 1) {
  return to_device(dist::rank_test::noise(shape, dtype, seed), kCpu);
}

/// Within so many bytes a device, with a report.
inline TiledOptions within(int64_t bytes) {
  return {{0.2, bytes}, 1, {}, std::make_shared<TiledReport>()};
}

inline Tensor real_or_none(const Tensor& x) { return x.is_defined() ? as_real(x) : x; }

}  // namespace cuop::executor::testing
