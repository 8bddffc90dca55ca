#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/arithmetic.h"
#include "cuop/dist/algo/index.h"
#include "cuop/dist/strict.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/gather.h"
#include "cuop/ops/index/indexing.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

DistTensor copied(const DistTensor& x) {
  return DistTensor(x.comm_ptr(), x.sharding(), x.shape(), x.dtype(),
                    x.local().is_defined() ? clone(x.local()) : Tensor(), x.device());
}

TEST(DistMask, PicksInTheOrderOfOneTensor) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{11, 6}, Shape{1, 7}, Shape{3, 0}, Shape{2, 1}}) {
        const Tensor whole = noise(shape);
        const Tensor positive = cuop::greater(whole, 0.0);
        for (const Sharding& sharding : matrix_shardings(ranks)) {
          const std::string what = cat(shape, ' ', sharding);
          const DistTensor x = laid_out(comm, whole, sharding);
          expect_close(gather_all(get_item(x, x > 0.0)), masked_select(whole, positive), 0, what);
          expect_close(gather_all(get_item(x, x > 2.0)), empty({0}, whole.dtype(), home()), 0,
                       what);
          for (const Sharding& other : {matrix_shardings(ranks)[0], matrix_shardings(ranks)[3]}) {
            const DistTensor mask = laid_out(comm, positive, other);
            expect_close(gather_all(get_item(x, mask)), masked_select(whole, positive), 0,
                         cat(what, " by ", other));
            const DistTensor target = copied(x);
            const Tensor expected = clone(whole);
            set_item(target, mask, -7);
            cuop::set_item(expected, std::vector<Index>{positive},
                           scalar_tensor("test", -7, DType::kFloat64, home()));
            expect_close(gather_all(target), expected, 0, cat(what, " = -7 by ", other));
          }
        }
      }
    });
  }
}

TEST(DistMask, OfTheFirstDimensionsTakesRows) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{11, 6}, Shape{1, 7}, Shape{3, 0}, Shape{0, 2}}) {
        const Tensor whole = noise(shape);
        const Tensor bits = cuop::greater(noise({shape[0]}, DType::kFloat64, 9), 0.0);
        const std::vector<Index> index{bits};
        for (const Sharding& sharding : matrix_shardings(ranks)) {
          const std::string what = cat(shape, ' ', sharding);
          const DistTensor x = laid_out(comm, whole, sharding);
          for (const Sharding& other : {Sharding(Mesh::line(ranks), split_dim(1, 0)),
                                        Sharding::replicated(Mesh::line(ranks))}) {
            const DistTensor mask = laid_out(comm, bits, other);
            const DistTensor picked = get_item(x, mask);
            expect_close(gather_all(picked), cuop::get_item(whole, index), 0, what);
            const DistTensor target = copied(x);
            const Tensor expected = clone(whole);
            set_item(target, mask, -7);
            cuop::set_item(expected, index, scalar_tensor("test", -7, DType::kFloat64, home()));
            expect_close(gather_all(target), expected, 0, cat(what, " = -7 by ", other));
          }
        }
      }
    });
  }
}

TEST(DistMask, RowsStayWithTheirOwners) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(3), split_dim(2, 0));
    const DistTensor x = laid_out(comm, counting({5, 4}), rows);
    const StrictScope strict;
    const DistTensor picked = get_item(x, x >= 6.0);
    EXPECT_EQ(picked.sharding(),
              Sharding(Mesh::line(3), split_dim(1, 0)).with_blocks(0, {2, 8, 4}));
    expect_close(gather_all(picked + 1.0), cuop::add(counting({14}), 7.0), 0, "goes on in parts");
    const int64_t sent = comm->bytes_sent();
    set_item(x, x >= 6.0, 0.5);
    set_item(x, x < 1.0,
             laid_out(comm, scalar_tensor("test", 2, DType::kInt32, home()),
                      Sharding::replicated(Mesh::line(3))));
    EXPECT_EQ(comm->bytes_sent(), sent);
    // 0 became 2, then all from 6 on 0.5, and these 2.
    EXPECT_EQ(values(gather_all(x))[0], 2.0);
    EXPECT_EQ(values(gather_all(x))[5], 5.0);
    EXPECT_EQ(values(gather_all(x))[19], 2.0);
    // Views change what they are cut from.
    const DistTensor tail = get_item(x, std::vector<Index>{SliceIndex{3, 5}});
    set_item(tail, tail < 9.0, 9);
    EXPECT_EQ(values(gather_all(x))[19], 9.0);
    const DistTensor element = get_item(x, std::vector<Index>{int64_t{4}, int64_t{0}});
    set_item(x, x > 8.0, element * 2.0);  // one element of another rank
    EXPECT_EQ(values(gather_all(x))[12], 18.0);
  });
}

TEST(DistMask, SaysWhatIsWrong) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const Mesh line = Mesh::line(2);
    const DistTensor x =
        laid_out(comm, counting({4, 3}, DType::kInt8), Sharding(line, split_dim(2, 0)));
    EXPECT_THAT(failure_of([&] { get_item(x, x); }), HasSubstr("mask of dtype bool, given int8"));
    EXPECT_THAT(
        failure_of([&] { get_item(x, get_item(x, std::vector<Index>{int64_t{0}}) > 0); }),
        HasSubstr("a mask of shape (3,) does not fit a distributed tensor of shape (4, 3)"));
    EXPECT_THROW(get_item(x, DistTensor()), ExecutionError);
    EXPECT_THROW(get_item(DistTensor(), x > 1), ExecutionError);
    EXPECT_THROW(set_item(x, x > 1, 300), OverflowError);
    EXPECT_THROW(set_item(x, x > 1, x), ShapeError);
    // Beside a tensor that all ranks have a mask in parts would become whole.
    const DistTensor copies = laid_out(comm, counting({4, 3}), Sharding::replicated(line));
    const StrictScope strict;
    EXPECT_THROW(get_item(copies, x > 1), GatherError);
  });
}

}  // namespace
}  // namespace cuop::dist
