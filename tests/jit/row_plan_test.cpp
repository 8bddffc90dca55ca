// How the threads of a block share the rows of a matrix.
#include "cuop/jit/cuda/row_plan.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace cuop::jit {
namespace {

TEST(RowPlan, KeepsWhatFitsIntoRegisters) {
  const auto plan = [](int64_t length, DType dtype, int64_t group = 0) {
    return plan_rows(length, group == 0 ? length : group, dtype, {}).text();
  };
  EXPECT_EQ(plan(1, DType::kFloat32), "1, 4, 1");
  EXPECT_EQ(plan(64, DType::kFloat32), "4, 4, 4");
  EXPECT_EQ(plan(4096, DType::kFloat32), "4, 512, 2");
  EXPECT_EQ(plan(16384, DType::kFloat32), "4, 1024, 4");
  EXPECT_EQ(plan(16388, DType::kFloat32), "4, 1024, 0");
  EXPECT_EQ(plan(4096, DType::kFloat16), "8, 512, 1");
  EXPECT_EQ(plan(4096, DType::kFloat64), "2, 512, 4");
  EXPECT_EQ(plan(100000, DType::kFloat64), "2, 512, 0");
  EXPECT_EQ(plan(100003, DType::kFloat32), "1, 1024, 0");  // a prime
  EXPECT_EQ(plan(96, DType::kFloat32, 6), "2, 32, 2");     // packs lie within a group
  EXPECT_EQ(plan_rows(1, 1, DType::kFloat32, {}).blocks(33), 2);
}

TEST(RowPlan, AccessesAreAligned) {
  alignas(16) static std::byte memory[64];
  const auto width = [](const void* address, DType dtype) {
    return plan_rows(64, 64, dtype, {address}).width;
  };
  EXPECT_EQ(width(memory, DType::kFloat32), 4);
  EXPECT_EQ(width(memory + 8, DType::kFloat32), 2);
  EXPECT_EQ(width(memory + 4, DType::kFloat32), 1);
  EXPECT_EQ(width(memory + 2, DType::kFloat16), 1);
}

}  // namespace
}  // namespace cuop::jit
