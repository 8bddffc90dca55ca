// Sorting on a GPU: the CPU's bits.
#include "cuop/ops/sort/sort.h"

#include <cstring>

#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/arrange.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/random/random.h"
#include "cuop/ops/sort/sort_kernels.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

using test::expect_same;
using test::random_tensor;

class GpuSort : public GpuTest {};

constexpr DType kSortDTypes[] = {DType::kBool,   DType::kInt8,    DType::kInt16,    DType::kInt32,
                                 DType::kInt64,  DType::kUInt8,   DType::kUInt16,   DType::kUInt32,
                                 DType::kUInt64, DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                 DType::kFloat64};

void expect_sorted(const Tensor& device, const Tensor& host, int64_t axis,
                   const std::string& what) {
  for (const bool is_descending : {false, true}) {
    expect_same(sort(device, axis, is_descending), sort(host, axis, is_descending), 0.0,
                "sort " + what);
    expect_same(argsort(device, axis, is_descending), argsort(host, axis, is_descending), 0.0,
                "argsort " + what);
  }
}

TEST_F(GpuSort, EveryDtypeAlongEveryAxis) {
  for (const DType dtype : kSortDTypes) {
    const Tensor host = random_tensor({13, 70, 31}, dtype, 1), device = to_device(host, kGpu);
    for (const int64_t axis : {0, 1, 2}) {
      expect_sorted(device, host, axis, cat(dtype, " axis ", axis));
    }
  }
}

TEST_F(GpuSort, LinesOfEveryLength) {
  for (const int64_t n : {0, 1, 2, 7, 8, 9, 255, 257, 2047, 2048, 2049, 4097, 100003}) {
    const Tensor host = random_tensor({n > 10000 ? 1 : 3, n}, DType::kFloat32, 2);
    expect_sorted(to_device(host, kGpu), host, 1, cat("rows of ", n));
  }
}

/// Whatever way the length would take.
void expect_sorted_by_digits(const Tensor& host, int axis, const std::string& what) {
  const Tensor device = to_device(host, kGpu);
  // In the middle of a larger tensor, every second element, backwards.
  Shape around = host.shape();
  around[axis] = 2 * around[axis] + 5;
  for (const bool is_descending : {false, true}) {
    for (const bool gives_positions : {false, true}) {
      const DType dtype = gives_positions ? DType::kInt64 : host.dtype();
      const Tensor given = full(around, 1, dtype, kGpu), wanted = full(around, 1, dtype);
      const auto part = [&](const Tensor& whole) {
        return flip(slice(whole, axis, 2, 2 + 2 * host.shape(axis), 2));
      };
      kernels::sort_by_digits_cuda(device, axis, is_descending, part(given),
                                   {host.dtype(), gives_positions, false});
      const Tensor out = part(wanted);
      gives_positions ? argsort(host, axis, is_descending, &out)
                      : sort(host, axis, is_descending, &out);
      expect_same(
          given, wanted, 0.0,
          cat(gives_positions ? "argsort " : "sort ", what, is_descending ? " falling" : ""));
    }
  }
}

TEST_F(GpuSort, DigitsOfEveryDtype) {
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUInt16, DType::kFloat16, DType::kBFloat16,
        DType::kInt32, DType::kFloat32, DType::kUInt64, DType::kFloat64}) {
    const Tensor x = random_tensor({2, 5003}, dtype, 6);
    expect_sorted_by_digits(x, 1, cat(dtype));
    expect_sorted_by_digits(transpose(x), 0, cat(dtype, " columns"));
  }
}

TEST_F(GpuSort, DigitsOfEveryLengthAndOrder) {
  for (const int64_t n : {1, 255, 256, 257, 2047, 2048, 2049, 4095, 4096, 4097}) {
    const Tensor x = random_tensor({n}, DType::kFloat32, static_cast<int>(n));
    expect_sorted_by_digits(x, 0, cat("of ", n));
  }
  expect_sorted_by_digits(random_tensor({11, 130}, DType::kFloat16, 7), 1, "many short lines");
  const Tensor rising = arange(-9000, 9000, 2, DType::kInt32);
  for (const Tensor& x : {rising, flip(rising), full({9000}, -3, DType::kInt32)}) {
    expect_sorted_by_digits(x, 0, "of a special order");
  }
  const Tensor wide = multiply(arange(0, 9000, 1, DType::kInt64), int64_t{0x9e3779b97f4a7c15 >> 1});
  expect_sorted_by_digits(wide, 0, "that need all digits of 64 bits");
}

TEST_F(GpuSort, SpecialNumbersViewsAndOutputs) {
  const Tensor host = random_tensor({40, 61}, DType::kFloat64, 3);
  for (int64_t i = 0; i < 40; ++i) {
    host.data<double>()[i * 61 + i] = NAN;
    host.data<double>()[i * 61 + i / 2] = i % 2 == 0 ? HUGE_VAL : -HUGE_VAL;
    host.data<double>()[i * 61 + 60] = -0.0;
  }
  const Tensor device = to_device(host, kGpu);
  expect_sorted(device, host, 1, "special numbers");
  expect_sorted(transpose(device), transpose(host), 1, "transposed");
  expect_sorted(flip(device), flip(host), 0, "backwards");
  const Tensor whole = full({40, 200}, 7, DType::kFloat64, kGpu);
  const Tensor expected = full({40, 200}, 7, DType::kFloat64);
  const Tensor out = slice(whole, 1, 10, 193, 3), wanted = slice(expected, 1, 10, 193, 3);
  sort(device, 1, false, &out);
  sort(host, 1, false, &wanted);
  expect_same(whole, expected, 0.0, "around a strided output");
  const Tensor bytes = random_tensor({2, 9001}, DType::kInt8, 4), same = to_device(bytes, kGpu);
  sort(same, 1, true, &same);  // one pass, and so not from the memory that it writes to
  expect_same(same, sort(bytes, 1, true), 0.0, "bytes in place");
  const Tensor in_place = to_device(random_tensor({5, 9001}, DType::kInt32, 4), kGpu);
  sort(in_place, 1, false, &in_place);
  expect_same(in_place, sort(random_tensor({5, 9001}, DType::kInt32, 4), 1), 0.0, "in place");
}

TEST_F(GpuSort, DistinctElements) {
  for (const DType dtype : kSortDTypes) {
    for (const int64_t size : {0, 1, 300, 20011}) {
      const Tensor host = random_tensor({size}, dtype, 5);
      const Unique given = unique(to_device(host, kGpu)), wanted = unique(host);
      const std::string what = cat("unique ", dtype, " of ", size);
      expect_same(given.values, wanted.values, 0.0, what);
      expect_same(given.index, wanted.index, 0.0, what + ": index");
      expect_same(given.inverse, wanted.inverse, 0.0, what + ": inverse");
      expect_same(given.counts, wanted.counts, 0.0, what + ": counts");
      const Unique fewer = unique(to_device(host, kGpu), {false, false, true});
      expect_same(fewer.values, wanted.values, 0.0, what + " by values");
      expect_same(fewer.counts, wanted.counts, 0.0, what + " by values: counts");
      EXPECT_FALSE(fewer.index.is_defined() || fewer.inverse.is_defined());
    }
  }
}

TEST_F(GpuSort, PermutationsAreTheCpus) {
  for (const int64_t n : {0, 1, 2, 1000, 50021}) {
    Generator host(11), device(11);
    const Tensor given = permutation(n, {DType::kInt64, kGpu, &device});
    EXPECT_EQ(given.device(), kGpu);
    expect_same(given, permutation(n, {DType::kInt64, kCpu, &host}), 0.0, cat("of ", n));
    EXPECT_EQ(host.counter(), device.counter());
  }
}

}  // namespace
}  // namespace cuop
