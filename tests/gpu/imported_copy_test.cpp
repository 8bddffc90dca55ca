// Copies of memory of another GPU, in any layout. That of another process lies like this GPU's own.
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/compare.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

using test::expect_same;

class GpuImportedCopy : public GpuTest {};

Tensor middle(const Tensor& x, int64_t width) {
  return slice(slice(slice(x, 2, 1, 1 + width), 1, 3, 33), 0, 1, 3);
}

/// Every way of copying parts of [3, 40, 4100] elements of `there` to this GPU.
template <class Copy>
void expect_copies(const Tensor& host, const Tensor& there, const Copy& copy) {
  for (const int64_t width : {1, 1000, 1024, 4099}) {
    const std::string what = cat("rows of ", width);
    const Tensor wanted = contiguous(middle(host, width));
    const Tensor dense = empty({2, 30, width}, DType::kFloat32, kGpu);
    copy(dense, middle(there, width));
    expect_same(to_device(dense, kCpu), wanted, 0, what);

    const Tensor larger = full({3, 40, 4100}, 7, DType::kFloat32, kGpu);
    copy(middle(larger, width), middle(there, width));
    const Tensor around = full({3, 40, 4100}, 7, DType::kFloat32);
    copy_into(middle(around, width), wanted);
    expect_same(to_device(larger, kCpu), around, 0, what + " and around them");

    const Tensor turned = empty({width, 30, 2}, DType::kFloat32, kGpu);
    copy(transpose(turned), middle(there, width));
    expect_same(to_device(turned, kCpu), contiguous(transpose(wanted)), 0, what + ", transposed");
  }
  const Tensor planes = empty({3, 40, 4100}, DType::kFloat32, kGpu);
  copy(planes, broadcast_to(slice(there, 1, 0, 1), {3, 40, 4100}));
  expect_same(to_device(planes, kCpu),
              contiguous(broadcast_to(slice(host, 1, 0, 1), {3, 40, 4100})), 0, "a repeated row");
}

// Long rows go by the copy engine, everything else by kernels.
TEST_F(GpuImportedCopy, ViewsOfAnyLayout) {
  const Tensor host = random_values({3, 40, 4100}, 2, DType::kFloat32);
  expect_copies(host, gpu(host), kernels::copy_beside_work_cuda);
}

TEST_F(GpuImportedCopy, ThreadsReadViewsOfAPeersMemory) {
  if (backend::device_count(DeviceType::kCuda) < 2) GTEST_SKIP() << "needs two CUDA GPUs";
  const Tensor host = random_values({3, 40, 4100}, 3, DType::kFloat32);
  expect_copies(host, to_device(host, Device{DeviceType::kCuda, 1}), copy_across);
}

}  // namespace
}  // namespace cuop
