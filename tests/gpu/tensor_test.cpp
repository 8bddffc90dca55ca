// Tensors on a GPU: they get there, are filled there and come back.
#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "cuop/core/error.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {
namespace {

std::vector<char> bytes_of(const Tensor& t) {
  const Tensor host = to_device(t, kCpu);
  const auto* first = static_cast<const char*>(host.data());
  return {first, first + host.nbytes()};
}

class GpuTensor : public GpuTest {};

TEST_F(GpuTensor, EveryDtypeGoesThereAndComesBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3, 5, 7}, Shape{1031}}) {
      const Tensor host =
          cast(reshape(arange(0, element_count(shape), 1, DType::kInt64), shape), dtype);
      const Tensor gpu = to_device(host, kGpu);
      EXPECT_EQ(gpu.device(), kGpu);
      EXPECT_EQ(gpu.shape(), shape);
      EXPECT_EQ(bytes_of(gpu), bytes_of(host)) << dtype << ' ' << shape;
      EXPECT_EQ(bytes_of(clone(gpu)), bytes_of(host)) << dtype << ' ' << shape;
    }
  }
}

TEST_F(GpuTensor, EveryDtypeIsFilledAsOnTheCpu) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const int64_t size : {0, 1, 7, 100003}) {
      for (const int value : {0, 1, 77}) {
        EXPECT_EQ(bytes_of(full({size}, value, dtype, kGpu)), bytes_of(full({size}, value, dtype)))
            << dtype << ", " << size << " times " << value;
      }
      EXPECT_EQ(bytes_of(zeros({size}, dtype, kGpu)), bytes_of(zeros({size}, dtype)));
    }
  }
}

TEST_F(GpuTensor, AFilledSliceLeavesItsNeighboursAlone) {
  const Tensor whole = zeros({300}, DType::kFloat64, kGpu);
  fill(slice(whole, 0, 100, 200), 1.5);
  const Tensor host = to_device(whole, kCpu);
  for (int64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(host.data<double>()[i], i >= 100 && i < 200 ? 1.5 : 0.0) << i;
  }
}

TEST_F(GpuTensor, TensorsOfDifferentDevicesDoNotMeet) {
  EXPECT_THROW(copy_into(zeros({3}, DType::kFloat32, kGpu), zeros({3})), DeviceError);
}

TEST_F(GpuTensor, WorkOfAStreamIsReadBehindIt) {
  const backend::OwnedStream stream(kGpu);
  const StreamScope scope(stream.get());
  for (int round = 0; round < 20; ++round) {
    const Tensor filled = full({1 << 20}, round, DType::kInt32, kGpu);
    const Tensor host = to_device(clone(filled), kCpu);
    EXPECT_EQ(host.data<int32_t>()[0], round);
    EXPECT_EQ(host.data<int32_t>()[(1 << 20) - 1], round);
  }
}

}  // namespace
}  // namespace cuop
