// How the threads of a block share the rows of a matrix.
#include "cuop/jit/cuda/row_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

namespace cuop::jit {
namespace {

TEST(RowPlan, KeepsWhatFitsIntoRegisters) {
  const auto plan = [](int64_t length, DType dtype, int64_t group = 0) {
    return plan_rows(length, group == 0 ? length : group, dtype, 20, {}).text();
  };
  EXPECT_EQ(plan(1, DType::kFloat32), "1, 4, 1");
  EXPECT_EQ(plan(64, DType::kFloat32), "4, 4, 4");
  EXPECT_EQ(plan(4096, DType::kFloat32), "4, 256, 4");
  EXPECT_EQ(plan(10000, DType::kFloat32), "4, 512, 5");
  EXPECT_EQ(plan(20480, DType::kFloat32), "4, 512, 10");
  EXPECT_EQ(plan(20484, DType::kFloat32), "4, 512, 0");
  EXPECT_EQ(plan(4096, DType::kFloat16), "8, 256, 2");
  EXPECT_EQ(plan(4096, DType::kFloat64), "2, 512, 4");
  EXPECT_EQ(plan(100000, DType::kFloat64), "2, 512, 0");
  EXPECT_EQ(plan(100003, DType::kFloat32), "1, 512, 0");  // a prime
  EXPECT_EQ(plan(96, DType::kFloat32, 6), "2, 32, 2");    // packs lie within a group
  EXPECT_EQ(plan_rows(1, 1, DType::kFloat32, 20, {}).blocks(33), 2);
}

TEST(RowPlan, RegistersLeaveRoomForOtherBlocks) {
  const auto resident = [](int64_t length, int own_registers) {
    return plan_rows(length, length, DType::kFloat32, own_registers, {}).resident;
  };
  EXPECT_EQ(resident(64, 20), 12);  // of 128 threads with 40 registers
  EXPECT_EQ(resident(10000, 20), 3);
  EXPECT_EQ(resident(20480, 20), 2);
  EXPECT_EQ(resident(100000, 20), 3);
  EXPECT_EQ(resident(10000, 44), 2);
  EXPECT_EQ(resident(20480, 44), 1);
}

TEST(RowPlan, AccessesAreAligned) {
  alignas(16) static std::byte memory[64];
  const auto width = [](const void* address, DType dtype) {
    return plan_rows(64, 64, dtype, 20, {address}).width;
  };
  EXPECT_EQ(width(memory, DType::kFloat32), 4);
  EXPECT_EQ(width(memory + 8, DType::kFloat32), 2);
  EXPECT_EQ(width(memory + 4, DType::kFloat32), 1);
  EXPECT_EQ(width(memory + 2, DType::kFloat16), 1);
}

TEST(RowSharing, PiecesCoverEveryStepAndNoneIsEmpty) {
  for (const int64_t rows : {1, 2, 31, 257, 100000}) {
    for (const int64_t steps : {0, 1, 7, 256, 5000, 123457, 10000000}) {
      for (const bool is_column : {false, true}) {
        const int team = team_of_row(rows, steps, is_column, 4 * steps);
        const RowSharing sharing = share_rows(rows, steps, team, 132);
        EXPECT_GE(sharing.groups * (256 / team), rows);
        EXPECT_GE(sharing.pieces * sharing.piece, steps);
        EXPECT_LE((sharing.pieces - 1) * sharing.piece, std::max<int64_t>(0, steps - 1));
        EXPECT_TRUE(sharing.pieces == 1 || sharing.groups <= 4096);
      }
    }
  }
  EXPECT_GE(share_rows(1, 10000000, 256, 132).pieces, 4 * 132);  // the device is busy
  EXPECT_EQ(share_rows(100000, 10000000, 256, 132).pieces, 1);
}

}  // namespace
}  // namespace cuop::jit
