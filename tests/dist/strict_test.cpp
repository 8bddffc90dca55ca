#include "cuop/dist/strict.h"

#include <gmock/gmock.h>

#include "cuop/dist/algo/arithmetic.h"
#include "cuop/dist/algo/fft.h"
#include "cuop/dist/algo/index.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/algo/stencil.h"
#include "cuop/dist/exec/redistribute.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/matmul/matmul.h"
#include "tests/dist/algo_test.h"

namespace cuop::dist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace rank_test;  // NOLINT: the frame of these tests

TEST(DistStrict, HoldsForItsThreadAndItsTime) {
  EXPECT_FALSE(is_strict());
  {
    const StrictScope outer;
    EXPECT_TRUE(is_strict());
    const StrictScope inner(false);
    EXPECT_FALSE(is_strict());
  }
  EXPECT_FALSE(is_strict());
}

TEST(DistStrict, ForbidsWhatMakesATensorWhole) {
  for (const int ranks : {2, 3, 4, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Mesh line = Mesh::line(ranks);
      const Sharding rows(line, split_dim(2, 0)), columns(line, split_dim(2, 1));
      const DistTensor x = laid_out(comm, noise({14, 14}), rows);
      const DistTensor bias = laid_out(comm, noise({1, 14}), columns);
      const DistTensor kernel = laid_out(comm, noise({3, 3}), rows);
      const DistTensor line_of_all = laid_out(comm, noise({14}), Sharding(line, split_dim(1, 0)));
      expect_close(gather_all(x + bias), cuop::add(noise({14, 14}), noise({1, 14})), 0, "usual");
      const StrictScope strict;
      EXPECT_THAT(failure_of([&] { x + bias; }),
                  AllOf(HasSubstr("add: strict() forbids to gather silently: b (1, 14): "),
                        HasSubstr("-> needed makes it whole on"), HasSubstr("moved"),
                        HasSubstr("redistribute, gather_all or gather")));
      EXPECT_THROW(stencil_2d(x, kernel), GatherError);
      EXPECT_THROW(fft(line_of_all), GatherError);  // a single line, on one rank
      EXPECT_THROW(matmul(x, x, {.strategy = "row"}), GatherError);
      EXPECT_THROW(whole(x, "conversion"), GatherError);
      EXPECT_THROW(set_item(x, std::vector<Index>{}, bias), GatherError);
      // What is asked for, and what makes nothing whole.
      EXPECT_TRUE(gather_all(x).is_defined());
      gather(x);
      const Sharding everywhere = Sharding::replicated(line);
      expect_close(gather_all(x + redistribute(bias, everywhere)),
                   cuop::add(noise({14, 14}), noise({1, 14})), 0, "openly");
      EXPECT_TRUE(reduce(x, {}, {.output = everywhere}).sharding().is_replicated());
      EXPECT_TRUE(fft(line_of_all, {}, {.output = everywhere}).sharding().is_replicated());
      EXPECT_TRUE(whole(sum(x), "conversion").is_defined());
      EXPECT_TRUE(whole(get_item(x, std::vector<Index>{int64_t{3}, int64_t{3}}), "").is_defined());
      fft2d_pencil(x);
    });
  }
}

TEST(DistStrict, NamesTheStrategiesThatMakeNothingWhole) {
  for (const int ranks : {2, 3, 4, 7}) {
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Sharding rows(Mesh::line(ranks), split_dim(2, 0));
      const Tensor a = noise({40, 12}), b = noise({12, 10}, DType::kFloat64, 2);
      const DistTensor x = laid_out(comm, a, rows), y = laid_out(comm, b, rows);
      const StrictScope strict;
      EXPECT_THAT(failure_of([&] { matmul(x, y, {.strategy = "row"}); }),
                  HasSubstr("force strategy "));
      expect_close(gather_all(matmul(x, y, {.strategy = "k_split"})), cuop::matmul(a, b), 1e-13,
                   "matmul");
    });
  }
}

TEST(DistStrict, IsTheSameOnAllRanks) {
  run_ranks(3, [](const CommunicatorPtr& comm) {
    const DistTensor x = laid_out(comm, noise({6, 4}), Sharding(Mesh::line(3), split_dim(2, 0)));
    const StrictScope strict(comm->rank() == 1);
    EXPECT_THAT(failure_of([&] { x + x; }), HasSubstr("ranks made different calls"));
    EXPECT_NE(failure_of([&] { whole(x, "conversion"); }), "");
  });
}

}  // namespace
}  // namespace cuop::dist
