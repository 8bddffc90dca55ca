#include "cuop/dist/algo/index.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/arithmetic.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

using Indices = std::vector<Index>;

constexpr NewAxisIndex kNew;
constexpr EllipsisIndex kAll;

/// start:stop:step of each dimension, integers and new axes, at random.
Indices random_indices(const Shape& shape, std::mt19937& generator) {
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  };
  Indices list;
  for (const int64_t size : shape) {
    const int64_t kind = between(0, 9);
    if (kind == 0) list.emplace_back(kNew);
    if (kind < 3 && size > 0) {
      list.emplace_back(between(-size, size - 1));
    } else {
      SliceIndex s;
      if (between(0, 3) > 0) s.start = between(-size - 1, size + 1);
      if (between(0, 3) > 0) s.stop = between(-size - 1, size + 1);
      s.step = between(1, 3) * (between(0, 3) == 0 ? -1 : 1);
      list.emplace_back(s);
    }
  }
  return list;
}

TEST(DistIndex, AnswersWhatOneTensorAnswers) {
  for (const int ranks : rank_counts()) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      std::mt19937 generator(5);
      for (const Shape& shape : {Shape{11, 6}, Shape{1, 7}, Shape{3, 0}, Shape{13, 2}}) {
        const Tensor whole = counting(shape);
        for (const Sharding& sharding : matrix_shardings(ranks)) {
          for (int i = 0; i < 12; i += case_step()) {
            const Indices index = random_indices(shape, generator);
            const DistTensor x = laid_out(comm, whole, sharding);
            const std::string what = cat(shape, ' ', sharding, ' ', i);
            expect_close(gather_all(get_item(x, index)), get_item(whole, index), 0, what);

            const Tensor expected = clone(whole);
            set_item(expected, index, scalar_tensor("test", -1, DType::kFloat64, home()));
            const DistTensor target(comm, sharding, shape, DType::kFloat64,
                                    x.local().is_defined() ? clone(x.local()) : Tensor(), home());
            set_item(target, index, -1);
            expect_close(gather_all(target), expected, 0, what + " = -1");
            set_item(target, index, get_item(x, index));
            expect_close(gather_all(target), whole, 0, what + " = x");
          }
        }
      }
    });
  }
}

TEST(DistIndex, KeepsRowsWhereTheyAre) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const Sharding rows(Mesh::line(3), split_dim(2, 0));
    const DistTensor x = laid_out(comm, counting({5, 4}), rows);
    const int64_t sent = comm->bytes_sent();
    const DistTensor middle = get_item(x, Indices{SliceIndex{1, 4}});
    EXPECT_EQ(middle.sharding(), rows.with_blocks(0, {1, 2, 0}));
    if (middle.local().size() > 0) {
      EXPECT_EQ(middle.local().storage(), x.local().storage());
    }
    EXPECT_EQ(get_item(x, Indices{int64_t{-2}}).sharding(), Sharding::on_rank(Mesh::line(3), 1));
    EXPECT_EQ(get_item(x, Indices{kAll, int64_t{0}}).sharding(),
              Sharding(Mesh::line(3), split_dim(1, 0)));
    EXPECT_EQ(comm->bytes_sent(), sent);
    EXPECT_EQ(get_item(x, Indices{SliceIndex{{}, {}, -1}}).sharding(), rows);
    EXPECT_GT(comm->bytes_sent(), sent);
  });
}

TEST(DistIndex, SaysWhatIsWrong) {
  run_ranks(2, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, counting({4, 3}), Sharding(Mesh::line(2), split_dim(2, 0)));
    EXPECT_THROW(get_item(x, Indices{int64_t{4}}), IndexError);
    EXPECT_THROW(get_item(x, Indices{kAll, kAll}), IndexError);
    EXPECT_THROW(get_item(DistTensor(), Indices{kAll}), ExecutionError);
    EXPECT_THROW(set_item(x, Indices{kAll}, DistTensor()), ExecutionError);
    EXPECT_THROW(set_item(x, Indices{int64_t{0}, int64_t{0}, int64_t{0}}, 1), IndexError);
    EXPECT_THAT(failure_of([&] { get_item(x, Indices{counting({2}, DType::kInt64)}); }),
                HasSubstr("masks and index arrays do not index distributed tensors"));
  });
}

}  // namespace
}  // namespace cuop::dist
