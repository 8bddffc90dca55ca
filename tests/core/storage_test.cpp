#include "cuop/core/storage.h"

#include <gtest/gtest.h>

#include "cuop/core/error.h"
#include "cuop/core/tensor.h"

namespace cuop {
namespace {

TEST(Storage, DeferredWorkRunsOnceOnFirstUse) {
  int runs = 0;
  int cell = 0;
  std::shared_ptr<Storage> storage;
  storage = Storage::deferred(4, kCpu, [&] {
    ++runs;
    storage->fulfil(&cell, nullptr);
  });
  const Tensor tensor(storage, contiguous_layout({1}), DType::kInt32);
  EXPECT_TRUE(storage->is_deferred());
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(tensor.data<int32_t>(), &cell);
  EXPECT_EQ(tensor.data(), &cell);
  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(storage->is_deferred());
}

TEST(Storage, WorkThatProducesNothingIsAnError) {
  const auto storage = Storage::deferred(4, kCpu, [] {});
  EXPECT_THROW(storage->data(), Error);
}

TEST(Tensor, RefusesTheWrongType) {
  float cell = 0;
  const auto storage = std::make_shared<Storage>(&cell, 4, kCpu, nullptr);
  const Tensor tensor(storage, contiguous_layout({1}), DType::kFloat32);
  EXPECT_THROW(tensor.data<double>(), DTypeError);
  EXPECT_THROW(Tensor().data(), ExecutionError);
}

TEST(Tensor, KnowsWhatOverlaps) {
  float cells[12] = {};
  const auto storage = std::make_shared<Storage>(cells, 48, kCpu, nullptr);
  const Tensor all(storage, contiguous_layout({3, 4}), DType::kFloat32);
  const Tensor first_row = all.with_layout(select(all.layout(), 0, 0));
  const Tensor last_row = all.with_layout(select(all.layout(), 0, 2));
  EXPECT_TRUE(may_overlap(all, last_row));
  EXPECT_FALSE(may_overlap(first_row, last_row));
  EXPECT_TRUE(is_same_view(first_row, all.with_layout(select(all.layout(), 0, 0))));
  EXPECT_FALSE(is_same_view(first_row, last_row));
}

}  // namespace
}  // namespace cuop
