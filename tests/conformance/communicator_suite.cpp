#include "tests/conformance/communicator_suite.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cuop/core/text.h"

namespace cuop::dist::conformance {

namespace {

class SuiteTest : public testing::Test {
 public:
  SuiteTest(Runner runner, int ranks, Case tested)
      : runner_(std::move(runner)), ranks_(ranks), case_(std::move(tested)) {}
  void TestBody() override {
    runner_(ranks_, [&](Rank comm) {
      comm->barrier();  // deadlines count from here on all ranks
      all_report_to_rank_0(comm);
      case_.body(comm);
      EXPECT_EQ(comm->failure(), "") << "the case left a failed communicator behind";
    });
  }

 private:
  Runner runner_;
  int ranks_;
  Case case_;
};

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part : {movement_cases(), reduction_cases(), failure_cases(), given_up_cases(),
                           health_cases(), misuse_cases(), agreement_cases()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void register_suite(const std::string& kind, std::span<const int> rank_counts, const Runner& runner,
                    std::span<const Case> cases) {
  const std::string suite = "Communicator_" + kind;
  for (const Case& each : cases) {
    for (int ranks : rank_counts) {
      testing::RegisterTest(suite.c_str(), cat(each.name, "_", ranks).c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [=]() -> SuiteTest* { return new SuiteTest(runner, ranks, each); });
    }
  }
}

void all_report_to_rank_0(Rank comm) {
  char byte = 0;
  if (comm->rank() != 0) comm->send(&byte, 1, 0, 99);
  for (int src = 1; comm->rank() == 0 && src < comm->size(); ++src) comm->recv(&byte, 1, src, 99);
}

void all_report_to(Rank comm, int rank) {
  char byte = 0;
  if (comm->rank() != rank) comm->send(&byte, 1, rank, 98);
  for (int src = 0; comm->rank() == rank && src < comm->size(); ++src) {
    if (src != rank) comm->recv(&byte, 1, src, 98);
  }
}

std::vector<char> pattern_bytes(int rank, int64_t bytes) {
  std::vector<char> data(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < bytes; ++i) data[static_cast<size_t>(i)] = pattern(rank, i);
  return data;
}

std::vector<Block> uneven_blocks(int ranks, int64_t scale) {
  std::vector<Block> blocks;
  int64_t offset = 3;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t bytes = rank % 3 == 1 ? 0 : scale + 5 * rank;
    blocks.push_back({offset, bytes});
    offset += bytes + rank % 4;
  }
  return blocks;
}

int64_t total_extent(std::span<const Block> blocks) {
  int64_t extent = 0;
  for (const Block& block : blocks) extent = std::max(extent, block.offset + block.bytes);
  return extent;
}

}  // namespace cuop::dist::conformance
