// Pooling on a GPU beside the CPU's.
#include "cuop/ops/pool/pool.h"

#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

namespace cuop {
namespace {

using test::expect_same;
using test::Guarded;
using test::random_tensor;

constexpr DType kPoolDTypes[] = {DType::kInt8,     DType::kInt16,   DType::kInt32,
                                 DType::kInt64,    DType::kUInt8,   DType::kUInt16,
                                 DType::kUInt32,   DType::kUInt64,  DType::kFloat16,
                                 DType::kBFloat16, DType::kFloat32, DType::kFloat64};

/// The CPU adds in another order; relative to sums that may cancel, so in units of 1.
constexpr double kSumUlps = 4096.0;

class GpuPooling : public GpuTest {};

TEST_F(GpuPooling, WindowsOfEveryDtype) {
  const PoolOptions options[] = {
      {.kernel = {3}},
      {.kernel = {3}, .stride = {1}, .padding = {1}},
      {.kernel = {2}, .stride = {3}, .count_include_pad = false},
      {.kernel = {5}, .stride = {2}, .padding = {2}, .count_include_pad = false},
      {.kernel = {1}}};
  for (const DType dtype : kPoolDTypes) {
    for (const PoolOptions& o : options) {
      const std::string what = cat(dtype, " kernel ", o.kernel, " stride ", o.stride);
      const Tensor line = random_tensor({2, 3, 101}, dtype, 1);
      const Tensor image = random_tensor({2, 3, 13, 37}, dtype, 2);
      const Tensor volume = random_tensor({1, 2, 7, 9, 11}, dtype, 3);
      const Tensor there1 = to_device(line, kGpu), there2 = to_device(image, kGpu),
                   there3 = to_device(volume, kGpu);
      expect_same(max_pool1d(there1, o), max_pool1d(line, o), 0.0, "max 1 " + what);
      expect_same(max_pool2d(there2, o), max_pool2d(image, o), 0.0, "max 2 " + what);
      expect_same(max_pool3d(there3, o), max_pool3d(volume, o), 0.0, "max 3 " + what);
      expect_same(avg_pool1d(there1, o), avg_pool1d(line, o), kSumUlps, "avg 1 " + what);
      expect_same(avg_pool2d(there2, o), avg_pool2d(image, o), kSumUlps, "avg 2 " + what);
      expect_same(avg_pool3d(there3, o), avg_pool3d(volume, o), kSumUlps, "avg 3 " + what);
    }
  }
}

TEST_F(GpuPooling, RowsOfWindowsThatAreOneAccessOrNearlySo) {
  for (const DType dtype : {DType::kInt8, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor flat = random_tensor({2 * 3 * 10 * 24 + 1}, dtype, 4);
    for (const int64_t width : {2, 4}) {
      for (const int64_t first : {0, 1}) {        // aligned, and not
        for (const int64_t columns : {24, 23}) {  // whole windows, and not
          const auto image = [&](const Tensor& of) {
            return reshape(slice(of, 0, first, first + 60 * columns), {2, 3, 10, columns});
          };
          const Tensor host = image(flat), device = image(to_device(flat, kGpu));
          const PoolOptions options{.kernel = {3, width}, .stride = {2, width}, .padding = {1, 0}};
          const std::string what = cat(dtype, " width ", width, " of ", columns, " from ", first);
          expect_same(max_pool2d(device, options), max_pool2d(host, options), 0.0, "max " + what);
          expect_same(avg_pool2d(device, options), avg_pool2d(host, options), kSumUlps,
                      "avg " + what);
        }
      }
    }
  }
}

TEST_F(GpuPooling, WholePlanes) {
  for (const DType dtype : kPoolDTypes) {
    for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 64, 17, 19}, Shape{2, 1, 3, 300, 41}}) {
      const Tensor host = random_tensor(shape, dtype, 1), device = to_device(host, kGpu);
      const std::string what = cat(dtype, ' ', shape);
      expect_same(global_max_pool(device), global_max_pool(host), 0.0, "max " + what);
      expect_same(global_avg_pool(device), global_avg_pool(host), kSumUlps, "avg " + what);
    }
  }
}

TEST_F(GpuPooling, NaNWinsAndInfinityCounts) {
  const Tensor host = random_tensor({1, 2, 9, 9}, DType::kFloat32, 1);
  host.data<float>()[12] = NAN;
  host.data<float>()[100] = HUGE_VALF;
  std::fill_n(host.data<float>() + 40, 12, -HUGE_VALF);
  const Tensor device = to_device(host, kGpu);
  const PoolOptions options{.kernel = {3}, .stride = {2}, .padding = {1}};
  expect_same(max_pool2d(device, options), max_pool2d(host, options), 0.0, "max");
  expect_same(avg_pool2d(device, options), avg_pool2d(host, options), kSumUlps, "avg");
  expect_same(global_max_pool(device), global_max_pool(host), 0.0, "global max");
}

TEST_F(GpuPooling, ViewsAndEmptyBatches) {
  const Tensor host = random_tensor({2, 3, 20, 31}, DType::kFloat32, 1);
  const Tensor device = to_device(host, kGpu);
  const PoolOptions options{.kernel = {3, 2}};
  expect_same(max_pool2d(slice(device, 3, 1, 30, 2), options),
              max_pool2d(slice(host, 3, 1, 30, 2), options), 0.0, "every second column");
  EXPECT_EQ(max_pool2d(zeros({0, 3, 20, 30}, DType::kFloat32, kGpu), options).shape(),
            (Shape{0, 3, 6, 15}));
}

TEST_F(GpuPooling, WritesNothingBeyondItsOutput) {
  for (const DType dtype : kPoolDTypes) {
    const Guarded out({1, 3, 6, 17}, dtype, kGpu);
    max_pool2d(ones({1, 3, 13, 35}, dtype, kGpu), {.kernel = {2}}, &out.tensor());
    out.expect_intact(cat(dtype));
  }
}

}  // namespace
}  // namespace cuop
