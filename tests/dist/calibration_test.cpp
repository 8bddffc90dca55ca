#include "cuop/dist/exec/calibration.h"

#include <gmock/gmock.h>

#include "cuop/core/text.h"
#include "cuop/dist/algo/matmul.h"
#include "cuop/dist/cost/machine_figures.h"
#include "cuop/dist/exec/call_frame.h"
#include "cuop/dist/exec/report.h"
#include "cuop/dist/strict.h"
#include "cuop/memory/limited.h"
#include "cuop/tune/database.h"
#include "cuop/tune/permission.h"
#include "tests/dist/algo_test.h"
#include "tests/temporary_folder.h"

namespace cuop::dist {
namespace {

using namespace rank_test;  // NOLINT: the frame of these tests

using Figures = Communicator::Figures;

/// The tuner's choices in a folder of the test's own.
class Calibration : public ::testing::Test {
 protected:
  void SetUp() override { tune::set_database({.directory = folder_.path()}); }
  void TearDown() override {
    tune::set_frozen(false);
    tune::set_database({});
  }
  test::TemporaryFolder folder_;
};

TEST_F(Calibration, GivesAllRanksTheSameFiguresAndKeepsThem) {
  for (const int ranks : {1, 3}) {
    std::vector<std::string> measured(static_cast<size_t>(ranks));
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {
      const Machine machine = calibrate(comm, home(), true);
      measured[static_cast<size_t>(comm->rank())] = to_text(machine);
      EXPECT_GT(machine.flops, 0.0);
      EXPECT_GT(machine.fft_speed, 0.0);
      EXPECT_GT(machine.call_overhead, 0.0);
      EXPECT_GT(machine.sharded_call_overhead, 0.0);
      EXPECT_EQ(last_report().plan.op, "");  // what was called to be timed is nobody's call
      EXPECT_NE(machine.fft_speed, Machine{}.fft_speed);
      EXPECT_NE(machine.long_fft_speed, Machine{}.long_fft_speed);
      EXPECT_NE(machine.conv_speed, Machine{}.conv_speed);
      EXPECT_NE(machine.transposed_speed, Machine{}.transposed_speed);
      ASSERT_NE(comm->figures(Figures::kParts), nullptr);
      EXPECT_EQ(to_text(*comm->figures(Figures::kParts)), to_text(machine));
      EXPECT_EQ(to_text(*comm->figures(figures_of(home()))), to_text(machine));
    });
    for (const std::string& each : measured) EXPECT_EQ(each, measured[0]);
    run_ranks(ranks, [&](const CommunicatorPtr& comm) {  // other ranks like those: nothing measured
      EXPECT_EQ(to_text(calibrate(comm, home(), false)), measured[0]);
    });
  }
}

TEST_F(Calibration, GathersForNobody) {
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    const StrictScope strict;
    EXPECT_GT(calibrate(comm, home(), true).sharded_call_overhead, 0.0);
    EXPECT_TRUE(is_strict());
  });
}

TEST_F(Calibration, MeasuresNothingWhereTheTunerIsFrozen) {
  tune::set_frozen(true);
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    Machine assumed;
    assumed.flops = comm->rank() == 0 ? 7e9 : 8e9;
    EXPECT_EQ(calibrate(comm, home(), Figures::kParts, assumed).flops, 7e9);  // rank 0's
  });
}

TEST_F(Calibration, ARankWithoutRoomLeavesWhatIsAssumed) {
  run_ranks(3, [&](const CommunicatorPtr& comm) {
    Machine assumed;
    assumed.flops = comm->rank() == 0 ? 7e9 : 8e9;
    const auto found = [&] { return calibrate(comm, home(), Figures::kParts, assumed).flops; };
    {
      const auto limited = memory::make_limited(home(), int64_t{1} << 16);
      std::optional<memory::ResourceScope> scope;
      if (comm->rank() == 1) scope.emplace(*limited);
      EXPECT_EQ(found(), 7e9);  // rank 0's
      EXPECT_EQ(comm->figures(Figures::kParts), nullptr);
    }
    const double measured = found();  // there is room now
    ASSERT_NE(comm->figures(Figures::kParts), nullptr);
    EXPECT_EQ(comm->figures(Figures::kParts)->flops, measured);
    EXPECT_NE(measured, 7e9);
  });
}

TEST_F(Calibration, ALongCallPlansWithWhatItsRanksFindOut) {
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    const Tensor small = noise({8, 8}), large = noise({1100, 1100});
    matmul_from_root(comm, on_root(comm, small), on_root(comm, small));
    EXPECT_EQ(comm->figures(figures_of(home())), nullptr);
    const Sharding rows(Mesh::line(2), split_dim(2, 0));
    const DistTensor x = laid_out(comm, large, rows);
    const Tensor expected = gather_all(matmul(x, x));
    EXPECT_NE(comm->figures(Figures::kParts), nullptr);
    // Planned again with the figures that are agreed on: the same plan.
    const double seconds = last_report().plan.seconds();
    matmul(x, x);
    EXPECT_EQ(last_report().plan.seconds(), seconds);
    EXPECT_EQ(last_report().plan.call_seconds,
              comm->figures(Figures::kParts)->sharded_call_overhead);
    EXPECT_THAT(last_report().plan.explain(),
                ::testing::ContainsRegex("whole call +[0-9.]+ [mun]?s"));
    expect_rooted(comm, matmul_from_root(comm, on_root(comm, large), on_root(comm, large)),
                  expected, 1e-11, "from the root");
    if (comm->rank() == 0) {
      EXPECT_EQ(last_report().plan.call_seconds, comm->figures(figures_of(home()))->call_overhead);
    }
  });
}

TEST_F(Calibration, ALongCallGoesOnWithoutFiguresWhereARankHasNoRoomToMeasure) {
  run_ranks(2, [&](const CommunicatorPtr& comm) {
    const Tensor large = noise({1100, 1100});
    const auto limited = memory::make_limited(home(), int64_t{60} << 20);
    const DistTensor x = laid_out(comm, large, Sharding(Mesh::line(2), split_dim(2, 0)));
    std::optional<memory::ResourceScope> scope;
    if (comm->rank() == 1) scope.emplace(*limited);
    const DistTensor product = matmul(x, x);
    EXPECT_EQ(comm->figures(Figures::kParts), nullptr);
    const Tensor rooted = matmul_from_root(comm, on_root(comm, large), on_root(comm, large));
    EXPECT_EQ(comm->figures(figures_of(home())), nullptr);
    expect_rooted(comm, rooted, gather_all(product), 1e-11, "without figures");
  });
}

}  // namespace
}  // namespace cuop::dist
