// Tensors on a GPU: they get there, are filled there and come back.
#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/create/create_kernels.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/guarded.h"

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

TEST_F(GpuTensor, SequencesAreTheCpusBits) {
  const auto expect_equal = [](const char* what, DType dtype, auto make) {
    EXPECT_EQ(bytes_of(make(kGpu)), bytes_of(make(kCpu))) << what << ' ' << dtype;
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const int64_t count : {0, 1, 16, 100}) {
      expect_equal("arange", dtype, [&](Device at) { return arange(1, count, 1, dtype, at); });
      expect_equal("falling arange", dtype,
                   [&](Device at) { return arange(count, 0, -3, dtype, at); });
      expect_equal("real arange", dtype,
                   [&](Device at) { return arange(0.1, count, 0.7, dtype, at); });
      for (const bool endpoint : {false, true}) {
        expect_equal("linspace", dtype,
                     [&](Device at) { return linspace(0.1, 77.7, count, dtype, endpoint, at); });
      }
      expect_equal("logspace", dtype,
                   [&](Device at) { return logspace(0, 2, count, 10.0, dtype, true, at); });
    }
    for (const int64_t k : {-7, -1, 0, 2, 9}) {
      expect_equal("eye", dtype, [&](Device at) { return eye(5, 8, k, dtype, at); });
    }
    expect_equal("number", dtype, [&](Device at) { return scalar_tensor("number", 1, dtype, at); });
  }
  const uint64_t large = uint64_t{1} << 63;
  for (const DType dtype : {DType::kUInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    expect_equal("large arange", dtype, [&](Device at) {
      return arange(Scalar(large - 5000), Scalar(large + 5000), 999, dtype, at);
    });
  }
}

/// They make their tensors themselves, so what fills these is given guarded ones.
TEST_F(GpuTensor, SequencesWriteNothingAroundThem) {
  const jit::PowerBase two{{1.0, 0.0}, 2.0, 2.0, 0, 0};
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const int64_t count : {1, 15, 17, 255, 1025}) {
      const test::Guarded whole({count}, dtype, kGpu), real({count}, dtype, kGpu),
          powers({count}, dtype, kGpu);
      kernels::fill_whole_cuda(whole.tensor(), {1, 1});
      kernels::fill_real_cuda(real.tensor(), {0.0, 0.01});
      kernels::fill_powers_cuda(powers.tensor(), {two, {0.0, 0.005}});
      const Tensor wanted = empty({count}, dtype);
      kernels::fill_whole_cpu(wanted, {1, 1});
      EXPECT_EQ(bytes_of(whole.tensor()), bytes_of(wanted)) << dtype << ' ' << count;
      kernels::fill_real_cpu(wanted, {0.0, 0.01});
      EXPECT_EQ(bytes_of(real.tensor()), bytes_of(wanted)) << dtype << ' ' << count;
      kernels::fill_powers_cpu(wanted, {two, {0.0, 0.005}});
      EXPECT_EQ(bytes_of(powers.tensor()), bytes_of(wanted)) << dtype << ' ' << count;
      whole.expect_intact("arange");
      real.expect_intact("linspace");
      powers.expect_intact("logspace");
    }
  }
}

TEST_F(GpuTensor, GridsAreTheCpusBits) {
  for (const char* indexing : {"xy", "ij"}) {
    std::vector<Tensor> axes{arange(0, 5, 1, DType::kInt16), linspace(0, 1, 3),
                             arange(0, 1, 1, DType::kInt8)};
    const std::vector<Tensor> wanted = meshgrid(axes, indexing);
    for (Tensor& axis : axes) axis = to_device(axis, kGpu);
    const std::vector<Tensor> given = meshgrid(axes, indexing);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(bytes_of(given[i]), bytes_of(wanted[i]));
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

TEST_F(GpuTensor, CopiesAcrossDevicesConvertBroadcastAndTakeAnyLayout) {
  const Tensor host = reshape(arange(0, 35, 1, DType::kFloat32), {5, 7});
  const auto copied = [&](const Tensor& dst, const Tensor& src) {
    copy_across(dst, src);
    return bytes_of(contiguous(dst));
  };
  for (const auto& [to, from] : {std::pair{kGpu, kCpu}, {kCpu, kGpu}, {kGpu, kGpu}}) {
    const Tensor source = to_device(host, from);
    const auto made = [&, device = to](const Shape& shape, DType dtype = DType::kFloat32) {
      return zeros(shape, dtype, device);
    };
    EXPECT_EQ(copied(made({5, 7}), source), bytes_of(host));
    EXPECT_EQ(copied(transpose(made({7, 5})), source), bytes_of(host));
    EXPECT_EQ(copied(made({7, 5}), transpose(source)), bytes_of(contiguous(transpose(host))));
    EXPECT_EQ(copied(made({5, 7}, DType::kInt64), source), bytes_of(cast(host, DType::kInt64)));
    EXPECT_EQ(copied(made({3, 7}), slice(source, 0, 1, 2)),
              bytes_of(contiguous(broadcast_to(slice(host, 0, 1, 2), {3, 7}))));
    EXPECT_THROW(copy_across(made({2, 2}), source), ShapeError);
    EXPECT_THROW(copy_across(broadcast_to(made({7}), {5, 7}), source), ExecutionError);
  }
}

TEST_F(GpuTensor, ACopyBetweenRowMajorTensorsMakesNothingInBetween) {
  const Tensor host = ones({1 << 20}), gpu = to_device(host, kGpu);
  const auto made = [](Device device) {
    return memory::current_resource(device).statistics().allocation_count;
  };
  const int64_t on_gpu = made(kGpu), on_cpu = made(kCpu);
  copy_across(gpu, host);
  copy_across(host, gpu);
  EXPECT_EQ(made(kGpu), on_gpu);
  EXPECT_EQ(made(kCpu), on_cpu);
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
