// The text of the GPU's transposed copies, run on the host beside the CPU's copy.
#include <gtest/gtest.h>

#include <cstring>

#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "tests/jit/host_text.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "cuop/ops/copy/copy.cuh"
#pragma GCC diagnostic pop

namespace cuop::kernels {
namespace {

Tensor numbered(const Shape& shape, DType dtype) {
  return reshape(
      cast(arange(0, static_cast<double>(element_count(shape)), 1, DType::kInt32), dtype), shape);
}

void run_copy_text(const jit::TransposedCopy& copy, int64_t itemsize) {
  test::run_together(3, jit::kTransposeThreads, [&] {
    switch (itemsize) {
      case 1:
        return jit::transposed_copy<uint8_t, 64>(copy);
      case 2:
        return jit::transposed_copy<uint16_t, 64>(copy);
      case 4:
        return jit::transposed_copy<uint32_t, 64>(copy);
      case 8:
        return jit::transposed_copy<uint64_t, 32>(copy);
      default:
        return jit::transposed_copy<jit::Word16, 32>(copy);
    }
  });
}

/// `to` is written by the kernel's text where it has a plan; the CPU says what belongs there.
void expect_transposed(const Tensor& to, const Tensor& from, const std::string& what) {
  const Tensor wanted = clone(from);
  const auto copy = plan_transposed_copy(to, from);
  ASSERT_TRUE(copy.has_value()) << what;
  run_copy_text(*copy, itemsize(to.dtype()));
  const Tensor given = contiguous(to);
  EXPECT_EQ(std::memcmp(given.data(), wanted.data(), static_cast<size_t>(wanted.nbytes())), 0)
      << what;
}

TEST(TransposedCopy, EveryWidthAndEdge) {
  for (const DType dtype :
       {DType::kUInt8, DType::kFloat16, DType::kFloat32, DType::kComplex64, DType::kComplex128}) {
    for (const auto& [rows, columns] : {std::pair{64, 64}, {8, 8}, {65, 31}, {33, 130}, {9, 257}}) {
      const Tensor matrix = numbered({rows, columns}, dtype);
      const int64_t swapped[] = {1, 0};
      expect_transposed(empty({columns, rows}, dtype), permute(matrix, swapped),
                        cat(dtype, " ", rows, "x", columns));
    }
  }
}

TEST(TransposedCopy, BatchesAndViews) {
  const Tensor images = numbered({3, 10, 11, 20}, DType::kFloat32);
  const int64_t channels_first[] = {0, 3, 1, 2}, mixed[] = {3, 1, 0, 2}, last_two[] = {0, 1, 3, 2};
  for (const auto& order : {channels_first, mixed, last_two}) {
    const Tensor view = permute(images, {order, 4});
    expect_transposed(empty(view.shape(), DType::kFloat32), view, cat(view.shape()));
  }
  // Between rows of both sides lies what must not be touched.
  const Tensor wide = numbered({40, 50}, DType::kFloat64);
  const Tensor frame = full({40, 60}, -1.0, DType::kFloat64);
  const int64_t swapped[] = {1, 0};
  const Tensor inside = slice(slice(frame, 0, 0, 40), 1, 10, 50);
  expect_transposed(inside, permute(slice(wide, 1, 5, 45), swapped), "inside a frame");
  EXPECT_EQ(frame.data<double>()[9], -1.0);
  EXPECT_EQ(frame.data<double>()[50], -1.0);
}

TEST(TransposedCopy, IsForNeighboursAlongDifferentAxesOnly) {
  const Tensor x = numbered({32, 32}, DType::kFloat32), y = empty({32, 32});
  EXPECT_FALSE(plan_transposed_copy(y, x));
  const int64_t swapped[] = {1, 0};
  EXPECT_TRUE(plan_transposed_copy(y, permute(x, swapped)));
  EXPECT_FALSE(
      plan_transposed_copy(empty({4, 32}), permute(numbered({32, 4}, DType::kFloat32), swapped)))
      << "tiles would be mostly empty";
}

}  // namespace
}  // namespace cuop::kernels
