// The text of the GPU's running sums, run on host threads beside the CPU's.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"
#include "cuop/ops/reduce/reduce_kernels.h"
#include "cuop/ops/reduce/reduction.h"
#include "tests/gpu/compare.h"
#include "tests/jit/host_text.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/reduce/scan.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

template <class Source>
struct ScanTypes {
  using Sum = std::conditional_t<std::is_integral_v<Source>, uint64_t, double>;
  using Out = std::conditional_t<
      !std::is_integral_v<Source>, Source,
      std::conditional_t<std::is_signed_v<Source> || std::is_same_v<Source, bool>, int64_t,
                         uint64_t>>;
};
template <class R>
struct ScanTypes<std::complex<R>> {
  using Sum = std::complex<double>;
  using Out = std::complex<R>;
};

void scan_by_text(const Tensor& x, int axis, const Tensor& out) {
  ScanPlan plan = plan_scan(x, axis, out);
  std::vector<unsigned> zeros(static_cast<size_t>(plan.flags));
  std::vector<std::complex<double>> values(static_cast<size_t>(plan.sums));
  plan.set_scratch(zeros.data(), values.data());
  visit_dtype(AllTypes{}, x.dtype(), "test", [&](auto tag) {
    using Source = typename decltype(tag)::type;
    using Types = ScanTypes<Source>;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(plan.blocks, 3));
    if (plan.by_tiles) {
      test::run_together(blocks, jit::kScanThreads, [&] {
        jit::scan_tiles<Source, typename Types::Sum, typename Types::Out>(plan.arguments);
      });
    } else {
      test::run_threads(blocks, jit::kScanThreads, [&] {
        jit::scan_short_lines<Source, typename Types::Sum, typename Types::Out>(plan.arguments);
      });
    }
  });
}

/// Whole scanned_numbers, whose sums are exact in any order where they are small enough.
Tensor scanned_numbers(const Shape& shape, DType dtype, int seed) {
  return cast(test::random_tensor(shape, is_bool(dtype) ? dtype : DType::kInt8, seed), dtype);
}

/// Small sums for 16-bit floats, which hold few whole scanned_numbers.
void expect_scanned_as_cpu(const Tensor& x, int axis, const std::string& what, double ulps = 0.0) {
  const Tensor wanted = cumsum(x, axis), given = full(x.shape(), 77, wanted.dtype());
  scan_by_text(x, axis, given);
  test::expect_same(given, wanted, ulps,
                    cat(x.dtype(), ' ', x.shape(), " along ", axis, ' ', what));
}

TEST(ScanText, EveryDtypeAndLength) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const bool is_narrow = compute_dtype(dtype) != dtype;
    // The CPU rounds 16-bit floats once too, of sums in float.
    const double ulps = is_narrow ? 1.0 : 0.0;
    for (const int64_t n : {33, 2049})
      expect_scanned_as_cpu(scanned_numbers({2, n}, dtype, i), 1, "rows", ulps);
    expect_scanned_as_cpu(scanned_numbers({4, 40, 5}, dtype, i), 1, "short lines", ulps);
  }
  for (const int64_t n : {1, 2, 31, 64, 65, 257, 2047, 2048, 5003}) {
    expect_scanned_as_cpu(scanned_numbers({2, n}, DType::kFloat32, 2), 1, "rows");
  }
  expect_scanned_as_cpu(scanned_numbers({70, 3, 1}, DType::kFloat32, 2), 0, "outermost axis");
}

TEST(ScanText, ViewsAndOutputs) {
  const Tensor x = scanned_numbers({3, 5, 130}, DType::kFloat64, 3);
  const int64_t order[] = {2, 0, 1};
  for (const Tensor& view : {slice(x, 2, 0, 130, 2), flip(x), permute(x, order),
                             broadcast_to(slice(x, 1, 0, 1), x.shape())}) {
    for (const int axis : {0, 1, 2}) expect_scanned_as_cpu(view, axis, "of a view");
  }
  const Tensor whole = full({200, 3}, 9, DType::kFloat64), expected = clone(whole);
  const Tensor line = select(x, 0, 1);
  const Tensor from = reshape(line, {line.size()}), part = slice(from, 0, 0, 200);
  const Tensor out = select(whole, 1, 1), wanted = select(expected, 1, 1);
  scan_by_text(part, 0, out);
  cumsum(part, 0, &wanted);
  test::expect_same(whole, expected, 0.0, "a column as the output");
  const Tensor again = clone(x);
  scan_by_text(again, 1, again);
  test::expect_same(again, cumsum(x, 1), 0.0, "in place");
}

/// More tiles than a group has.
TEST(ScanText, GroupsFollowEachOther) {
  const int64_t n = jit::kScanTile * (jit::kScanGroup + 1) + 5;
  expect_scanned_as_cpu(scanned_numbers({n}, DType::kInt16, 4), 0, "several groups");
}

TEST(ScanText, SumsOfFractionsAreNearAndSpecialNumbersPass) {
  const Tensor x = test::random_tensor({2, 9001}, DType::kFloat64, 5);
  const Tensor narrow = cast(x, DType::kFloat32), given = empty(x.shape(), DType::kFloat32);
  scan_by_text(narrow, 1, given);
  test::expect_same(given, cast(cumsum(cast(narrow, DType::kFloat64), 1), DType::kFloat32), 1.0,
                    "float32 with sums in float64");
  x.data<double>()[3000] = HUGE_VAL;
  x.data<double>()[7000] = -HUGE_VAL;
  x.data<double>()[9001] = NAN;
  expect_scanned_as_cpu(x, 1, "with infinities", 1e9);
}

}  // namespace
}  // namespace cuop::kernels
