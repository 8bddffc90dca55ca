#include "cuop/dist/exec/redistribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/exec/combine.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using rank_test::counting;
using rank_test::failure_of;
using rank_test::laid_out;
using rank_test::matrix_shardings;
using rank_test::rank_counts;
using rank_test::values;
using ::testing::HasSubstr;

TEST(Redistribute, BringsAnythingToAnything) {
  for (const int ranks : rank_counts()) {
    for (const Shape& shape : {Shape{0, 3}, Shape{1, 5}, Shape{6, 7}}) {
      run_ranks(ranks, [&](const CommunicatorPtr& comm) {
        const Tensor whole = counting(shape, DType::kInt32);
        for (const Sharding& from : matrix_shardings(ranks)) {
          for (const Sharding& to : matrix_shardings(ranks)) {
            const DistTensor moved = redistribute(laid_out(comm, whole, from), to);
            const DistTensor expected = laid_out(comm, whole, to);
            ASSERT_EQ(moved.sharding(), to);
            ASSERT_EQ(values(moved.local()), values(expected.local())) << from << " -> " << to;
          }
        }
      });
    }
  }
}

TEST(Redistribute, MovesOnlyWhatIsNotThere) {
  run_ranks(4, [](const CommunicatorPtr& comm) {
    const DistTensor rows =
        laid_out(comm, counting({8, 8}), Sharding(Mesh::line(4), split_dim(2, 0)));
    const int64_t before = comm->bytes_sent();
    const DistTensor columns = moved_to(rows, Sharding(Mesh::line(4), split_dim(2, 1)));
    EXPECT_EQ(comm->bytes_sent() - before, 8 * 8 * 3 / 16 * 8);
    // A rank that has what it needs takes a view.
    const DistTensor all = laid_out(comm, counting({8, 8}), Sharding::replicated(Mesh::line(4)));
    EXPECT_EQ(moved_to(all, columns.sharding()).local().storage(), all.local().storage());
  });
}

// A rank's own pieces are copied beside those of others, which neither what follows on the result
// nor what follows on the source may notice.
TEST(Redistribute, LargePiecesAreThereForWhatFollows) {
  for (const int ranks : {1, 2, 3}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Tensor whole = counting({1100, 1500}, DType::kFloat64);
      const Mesh line = Mesh::line(ranks);
      const DistTensor expected = laid_out(comm, add(whole, 1), Sharding(line, split_dim(2, 1)));
      for (int round = 0; round < 3; ++round) {
        const DistTensor rows = laid_out(comm, clone(whole), Sharding(line, split_dim(2, 0)));
        const DistTensor columns = redistribute(rows, expected.sharding());
        const Tensor result = add(columns.local(), 1);
        if (ranks > 1) fill(rows.local(), -1);
        ASSERT_EQ(values(result), values(expected.local()));
        ASSERT_EQ(values(add(columns.local(), 1)), values(expected.local()));
      }
    });
  }
}

TEST(Redistribute, HandlesStridedPartsAndMoreDimensions) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor whole = swap_axes(counting({5, 4, 2, 3}), 0, 3);
    const Mesh line = Mesh::line(3);
    const DistTensor x = laid_out(comm, whole, Sharding(line, split_dim(4, 3)));
    const DistTensor y = redistribute(x, Sharding(line, split_dim(4, 1)));
    EXPECT_EQ(values(y.local()), values(laid_out(comm, whole, y.sharding()).local()));
    const DistTensor t = transposed(y, 1, 2);
    EXPECT_EQ(t.shape(), (Shape{3, 2, 4, 5}));
    EXPECT_EQ(values(gather_all(t)), values(swap_axes(whole, 1, 2)));
  });
}

TEST(DistTensor, GoesFromTheRootAndBack) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      for (const Shape& shape : {Shape{}, Shape{5}, Shape{3, 0, 2}, Shape{2, 3, 4}}) {
        const int root = ranks - 1;
        const Tensor whole = counting(shape);
        const DistTensor x =
            DistTensor::from_root(comm, comm->rank() == root ? whole : Tensor(), root);
        EXPECT_EQ(x.shape(), shape);
        const DistTensor everywhere = redistribute(x, Sharding::replicated(Mesh::line(ranks)));
        EXPECT_EQ(values(everywhere.local()), values(whole));
        const Tensor back = gather(everywhere, 0);
        EXPECT_EQ(back.is_defined(), comm->rank() == 0);
        if (comm->rank() == 0) {
          EXPECT_EQ(values(back), values(whole));
        }
      }
    });
  }
}

TEST(DistTensor, StacksPartsOfDifferentSize) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor local = full({2, comm->rank() * 2}, comm->rank(), DType::kFloat32);
    const DistTensor x = DistTensor::from_parts(comm, local, -1);
    EXPECT_EQ(x.shape(), (Shape{2, 6}));
    EXPECT_EQ(values(gather_all(x)), (std::vector<double>{1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 2, 2}));
  });
}

TEST(DistTensor, FailsOnEveryRankAndGoesOn) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Mesh line = Mesh::line(3);
    EXPECT_THAT(failure_of([&] { DistTensor::from_root(comm, Tensor(), 1); }),
                HasSubstr("no tensor was given on rank 1"));
    EXPECT_THAT(failure_of([&] { DistTensor::from_parts(comm, counting({2}), comm->rank() / 2); }),
                HasSubstr("from_parts"));
    const Tensor odd = comm->rank() == 2 ? counting({2, 3}) : counting({2, 2});
    EXPECT_THAT(failure_of([&] { DistTensor::from_parts(comm, odd, 0); }),
                HasSubstr("rank 2 holds float64 (2, 3)"));
    const DistTensor x = laid_out(comm, counting({6, 2}), Sharding(line, split_dim(2, 0)));
    // One rank asks for another sharding than the others.
    const Sharding wanted =
        comm->rank() == 1 ? Sharding(line, split_dim(2, 1)) : Sharding::replicated(line);
    EXPECT_THAT(failure_of([&] { redistribute(x, wanted); }),
                HasSubstr("ranks made different calls"));
    EXPECT_THAT(failure_of([&] { redistribute(x, Sharding::replicated(Mesh::line(2))); }),
                HasSubstr("not a mesh of the 3 ranks"));
    EXPECT_EQ(values(gather_all(x)), values(counting({6, 2})));
  });
  run_ranks(1, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(1), split_dim(1, 0));
    EXPECT_THROW(DistTensor(comm, rows, {3}, DType::kFloat64, counting({2})), ShapeError);
    EXPECT_THROW(DistTensor(comm, rows, {2}, DType::kFloat32, counting({2})), DTypeError);
    EXPECT_THROW(DistTensor(comm, rows, {2}, DType::kFloat32, Tensor()), ShapeError);
  });
}

TEST(Redistribute, ReducesWholeTensors) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Tensor mine = swap_axes(full({2, 3}, comm->rank() + 1, DType::kFloat32), 0, 1);
    EXPECT_EQ(values(all_reduce(comm, mine, ReduceKind::kSum)), std::vector<double>(6, 6.0));
    const Tensor most = reduce_to(comm, mine, ReduceKind::kMax, 1);
    EXPECT_EQ(most.is_defined(), comm->rank() == 1);
    if (most.is_defined()) {
      EXPECT_EQ(values(most), std::vector<double>(6, 3.0));
    }
    const Tensor odd = comm->rank() == 2 ? full({5}, 1) : mine;
    EXPECT_THAT(failure_of([&] { all_reduce(comm, odd, ReduceKind::kSum); }),
                HasSubstr("all_reduce sum of float32 (5,)"));
  });
}

TEST(Combine, FoldsPartialResultsInRankOrder) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Shape shape{5, 2};
      const std::vector<Box> owners(static_cast<size_t>(ranks), whole_box(shape));
      const Sharding rows(Mesh::line(ranks), split_dim(2, 0));
      const Part mine{full(shape, comm->rank() + 1, DType::kFloat64), whole_box(shape)};
      // Neither commutative nor associative: 10 * so far + next spells the order.
      const Fold spell = [](const std::vector<Tensor>& pieces) {
        Tensor result = zeros(pieces[0].shape(), DType::kFloat64);
        for (const Tensor& piece : pieces) {
          for (int64_t i = 0; i < result.size(); ++i) {
            result.data<double>()[i] = 10 * result.data<double>()[i] + piece.data<double>()[i];
          }
        }
        return result;
      };
      const Tensor combined =
          combine(*comm, mine, owners, rows.owner_boxes(shape), DType::kFloat64, spell);
      double expected = 0;
      for (int rank = 1; rank <= ranks; ++rank) expected = 10 * expected + rank;
      for (const double value : values(combined)) EXPECT_EQ(value, expected);
      EXPECT_EQ(combined.shape(), rows.owner_box(shape, comm->rank()).shape());
      const Tensor sum = combine(*comm, mine, owners, rows.owner_boxes(shape), DType::kFloat64,
                                 fold_by(ReduceKind::kSum));
      for (const double value : values(sum)) EXPECT_EQ(value, ranks * (ranks + 1) / 2);
    });
  }
}

/// Says that it is a GPU's, so that whoever touched it there would be found out on a real one.
Tensor on_gpu(const Shape& shape) {
  static std::array<double, 64> memory{};
  return from_memory(memory.data(), contiguous_layout(shape), DType::kFloat64,
                     {DeviceType::kCuda, 0}, nullptr);
}

TEST(Redistribute, RefusesTensorsOfAGpuThatIsNotThere) {
  if (backend::device_count(DeviceType::kCuda) > 0) GTEST_SKIP() << "there is a usable GPU";
  const char* const kText = "cuda:0 is not available";
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    const Tensor x = on_gpu({2, 4});
    const auto refused = [&](auto&& work) { EXPECT_THAT(failure_of(work), HasSubstr(kText)); };
    refused([&] { DistTensor::from_root(comm, x); });
    refused([&] { DistTensor::from_parts(comm, x); });
    refused([&] { all_reduce(comm, x, ReduceKind::kSum); });
    refused([&] { reduce_to(comm, x, ReduceKind::kSum, 0); });
    refused([&] { reduce_from_root(comm, x, {ReduceKind::kSum}, {}); });
    const Sharding all = Sharding::replicated(Mesh::line(2));
    refused([&] { DistTensor(comm, all, x.shape(), x.dtype(), x); });
    EXPECT_EQ(values(all_reduce(comm, ones({1}), ReduceKind::kSum)), std::vector<double>{2.0});
  });
}

}  // namespace
}  // namespace cuop::dist
