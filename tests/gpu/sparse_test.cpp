// Sparse matrices of a GPU against those of the CPU, whose own loops are the oracle.
#include "cuop/ops/sparse/sparse.h"

#include <gmock/gmock.h>

#include "cuop/backend/cuda/cusparse.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/error.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"
#include "tests/gpu/gpu_values.h"

namespace cuop {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GpuSparse : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    const DynLib& library = backend::cuda_library(backend::CudaLibrary::kCusparse);
    if (!library.is_loaded()) GTEST_SKIP() << "needs cuSPARSE: " << library.reason();
  }
};

/// Numbers of [-1, 1] above 0.6 of either sign, and zeros.
Tensor mostly_zeros(const Shape& shape, DType dtype, uint32_t seed = 1) {
  const Tensor x = random_values(shape, seed, dtype);
  return multiply(x, cast(greater(abs(x), 0.6), dtype));
}

double sparse_tolerance(DType dtype) { return dtype == DType::kFloat64 ? 1e-14 : 1e-6; }

const std::vector<Shape> kSparseShapes{{0, 4}, {4, 0}, {1, 1}, {9, 30}, {70, 33}, {300, 5}};

void expect_equal(const Tensor& got, const Tensor& expected) { expect_close(got, expected, 0); }

TEST_F(GpuSparse, ThereAndBackInEitherLayout) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : kSparseShapes) {
      const Tensor x = mostly_zeros(shape, dtype);
      for (const SparseLayout layout : {SparseLayout::kCsr, SparseLayout::kCoo}) {
        const SparseMatrix there = to_sparse(gpu(x), layout), here = to_sparse(x, layout);
        EXPECT_EQ(there.device(), kGpu);
        expect_equal(there.rows(), here.rows());
        expect_equal(there.columns(), here.columns());
        expect_equal(there.values(), here.values());
        expect_equal(to_dense(there), x);
        expect_equal(to_device(here, kGpu).values(), here.values());
      }
    }
  }
}

TEST_F(GpuSparse, ProductsAreThoseOfTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const Shape& shape : kSparseShapes) {
      for (const int64_t columns : {0, 1, 2, 17, 64}) {
        const SparseMatrix a = to_sparse(mostly_zeros(shape, dtype));
        const Tensor b = random_values({shape[1], columns}, 2, dtype);
        for (const SparseLayout layout : {SparseLayout::kCsr, SparseLayout::kCoo}) {
          const SparseMatrix there = to_device(in_layout(a, layout), kGpu);
          expect_close(matmul(there, gpu(b)), matmul(a, b), sparse_tolerance(dtype));
        }
      }
    }
  }
}

TEST_F(GpuSparse, TakesViewsVectorsLongIndicesAndOutputs) {
  const SparseMatrix a = to_sparse(mostly_zeros({12, 20}, DType::kFloat32));
  const SparseMatrix there = to_device(a, kGpu);
  const Tensor b = random_values({40, 9}, 2, DType::kFloat64), b_there = gpu(b);
  const auto views = [](const Tensor& x) {
    const Tensor rows = slice(x, 0, 0, 40, 2);
    return std::vector<Tensor>{rows, slice(rows, 1, 0, 9, 2), slice(x, 0, 19, std::nullopt, -1),
                               select(rows, 1, 3), transpose(contiguous(transpose(rows)))};
  };
  const auto given = views(b_there), same = views(b);
  for (size_t i = 0; i < given.size(); ++i) {
    expect_close(matmul(there, given[i]), matmul(a, same[i]), 1e-14, std::to_string(i));
  }
  const Tensor wanted = matmul(a, same[0]);
  const SparseMatrix wide(SparseLayout::kCsr, a.shape(), gpu(cast(a.rows(), DType::kInt64)),
                          gpu(cast(a.columns(), DType::kInt64)), there.values());
  expect_close(matmul(wide, given[0]), wanted, 1e-14);
  const Tensor out = transpose(full({9, 12}, 7.0, DType::kFloat64, kGpu));
  matmul(there, given[0], &out);
  expect_close(out, wanted, 1e-14);
}

TEST_F(GpuSparse, ARefusedProductIsAnError) {
  const SparseMatrix a = to_device(to_sparse(mostly_zeros({4, 5}, DType::kFloat32)), kGpu);
  const Tensor b = gpu(random_values({5, 3}, 2, DType::kFloat32)),
               c = zeros({4, 3}, b.dtype(), kGpu);
  backend::cuda::SparseProduct product;
  product.m = 4;
  product.n = 3;
  product.k = 5;
  product.nonzeros = a.nonzeros();
  product.positions = a.rows().data();
  product.columns = a.columns().data();
  product.values = a.values().data();
  product.b = b.data();
  product.c = c.data();
  product.b_stride = 2;  // rows overlap
  product.c_stride = 3;
  EXPECT_THAT([&] { backend::cuda::sparse_product("mine", product, current_stream(kGpu)); },
              ThrowsMessage<ExecutionError>(HasSubstr(
                  "mine: cuSPARSE answered CUSPARSE_STATUS_INVALID_VALUE to the dense matrix")));
  expect_close(matmul(a, b), matmul(to_device(a, kCpu), to_device(b, kCpu)), 1e-6);
}

TEST_F(GpuSparse, OperandsStandOnOneDevice) {
  const SparseMatrix here = to_sparse(mostly_zeros({4, 5}, DType::kFloat32));
  EXPECT_THROW(matmul(here, zeros({5, 2}, DType::kFloat32, kGpu)), DeviceError);
  EXPECT_THROW(SparseMatrix(SparseLayout::kCsr, here.shape(), here.rows(), here.columns(),
                            gpu(here.values())),
               DeviceError);
}

}  // namespace
}  // namespace cuop
