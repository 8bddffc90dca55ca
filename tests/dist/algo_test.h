// Frame of the tests of distributed algorithms: random inputs, every number of ranks, the result
// compared with the same operator on one tensor.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <span>
#include <string>

#include "cuop/core/error.h"
#include "cuop/dist/comm/run_ranks.h"
#include "cuop/dist/cost/machine.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/ops/stencil/boundary.h"
#include "tests/dist/rank_tensors.h"
#include "tests/noise.h"

namespace cuop::dist::rank_test {

/// How many ranks to try: with one that is alone, or on a grid of two by two, where all would take
/// minutes.
inline std::span<const int> rank_counts() {
  static constexpr int kAll[] = {1, 4, 2, 3, 7};
  return std::span(kAll).first(is_slow() ? 2 : std::size(kAll));
}

inline constexpr Boundary kBoundaries[] = {Boundary::kZero, Boundary::kPeriodic};

/// Uniform in [-1, 1), the same on every rank.
inline Tensor noise(const Shape& shape, DType dtype = DType::kFloat64, unsigned seed = 1) {
  return to_device(test::noise(shape, dtype, seed), home());
}

/// Slow links whose moves arithmetic hides, begun at once: whatever can goes in chunks, and what
/// several ranks need is passed on.
inline Machine hiding_moves() {
  Machine machine;
  machine.overlap = 1;
  machine.link_bandwidth = 1e6;
  machine.flops = 1e6;  // arithmetic takes long enough to be cut
  machine.latency = machine.message_overhead = 1e-12;
  return machine;
}

/// On which deep halos, and few looks at norms, are worth the cells that are computed twice.
inline Machine slow_wire() {
  Machine machine;
  machine.latency = 1.0;
  return machine;
}

inline Tensor on_root(const CommunicatorPtr& comm, const Tensor& tensor) {
  return comm->rank() == 0 ? tensor : Tensor();
}

/// Same shape and dtype, and no element further off than `tolerance` (0: equal; NaN equals NaN).
inline void expect_close(const Tensor& given, const Tensor& expected, double tolerance,
                         const std::string& what) {
  ASSERT_TRUE(given.is_defined()) << what;
  ASSERT_EQ(given.shape(), expected.shape()) << what;
  ASSERT_EQ(given.dtype(), expected.dtype()) << what;
  const std::vector<double> a = values(given);
  const std::vector<double> b = values(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance) << what << " element " << i;
  }
}

/// A result given on the root must equal `expected` and be undefined elsewhere.
inline void expect_rooted(const CommunicatorPtr& comm, const Tensor& given, const Tensor& expected,
                          double tolerance, const std::string& what) {
  if (comm->rank() == 0) {
    expect_close(given, expected, tolerance, what);
  } else {
    EXPECT_FALSE(given.is_defined()) << what;
  }
}

/// What `work` fails with; "" when it does not fail.
template <class Work>
std::string failure_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace cuop::dist::rank_test
