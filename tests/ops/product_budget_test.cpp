// The kernels of products, convolutions and sequences that are our own, compiled for three GPUs.
#include <gtest/gtest.h>

#include "cuop/ops/conv/conv_kernels.h"
#include "cuop/ops/create/create_kernels.h"
#include "cuop/ops/matmul/matmul_kernels.h"
#include "tests/jit/resources.h"

namespace cuop::kernels {
namespace {

class ProductBudget : public test::KernelBudget {};

/// Sums are of 32 or 64 bits, elements of every size.
constexpr DType kIntegers[] = {DType::kBool, DType::kInt8, DType::kUInt16, DType::kInt32,
                               DType::kUInt64};

TEST_F(ProductBudget, IntegerProducts) {
  for (const DType dtype : kIntegers) {
    for (const bool is_symmetric : {false, true}) {
      if (is_symmetric && is_bool(dtype)) continue;
      // Of 64 bits: room for one number that is needed once a tile.
      const int frame = itemsize(dtype) == 8 ? 8 : 0;
      expect_within(integer_product_kernel(dtype, 4, is_symmetric), 128, frame);
      if (itemsize(dtype) < 8) expect_within(integer_product_kernel(dtype, 8, is_symmetric), 184);
    }
  }
}

TEST_F(ProductBudget, MatricesTimesVectors) {
  for (const DType dtype :
       {DType::kBool, DType::kInt8, DType::kUInt64, DType::kFloat16, DType::kBFloat16,
        DType::kFloat32, DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    const auto width = static_cast<int>(16 / itemsize(dtype));
    for (const bool is_column : {false, true}) {
      MatrixVectorForm form{dtype, is_column ? 1 : width, is_complex(dtype), is_column ? 8 : 256,
                            is_column};
      expect_within(matrix_vector_kernel(form), 96);
      form.is_wide = true;
      // With indices of 64 bits one register goes to the stack on one architecture.
      const int frame = dtype == DType::kComplex128 && !is_column ? 8 : 0;
      if (itemsize(dtype) >= 8) expect_within(matrix_vector_kernel(form), 96, frame);
    }
  }
}

TEST_F(ProductBudget, DirectConvolutions) {
  for (const DType dtype : {DType::kInt8, DType::kInt32, DType::kUInt64, DType::kFloat16,
                            DType::kFloat64, DType::kComplex64, DType::kComplex128}) {
    expect_within(direct_conv_kernel(dtype, 1, false), 96);
    expect_within(direct_conv_kernel(dtype, itemsize(dtype) == 16 ? 4 : 8, false), 96);
  }
  expect_within(direct_conv_kernel(DType::kComplex128, 4, true), 128);
  expect_within(direct_conv_kernel(DType::kInt32, 8, true), 128);
}

TEST_F(ProductBudget, Sequences) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kFloat16, DType::kBFloat16,
                            DType::kFloat32, DType::kComplex128}) {
    const int registers = itemsize(dtype) == 1 ? 80 : 48;  // 16 elements a thread
    expect_within(fill_sequence_kernel(dtype, SequenceKind::kWhole), registers);
    expect_within(fill_sequence_kernel(dtype, SequenceKind::kReal), registers);
    expect_within(fill_sequence_kernel(dtype, SequenceKind::kPowers), 64);
  }
}

}  // namespace
}  // namespace cuop::kernels
