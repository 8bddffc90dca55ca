// Who of the ranks could use NCCL together, by what each says of itself; fabric_cases.cpp has the
// rest.
#include "cuop/dist/comm/nccl_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuop::dist {
namespace {

using NcclCandidate = NcclLinks::Candidate;
using fabric::Text;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

NcclCandidate candidate(int64_t version, const char* gpu) { return {version, Text(gpu)}; }

TEST(NcclLinks, EachMemberHasAGpuOfItsOwn) {
  EXPECT_THAT(
      NcclLinks::members(std::vector<NcclCandidate>{candidate(22809, "a"), candidate(22809, "b"),
                                                    candidate(22809, "a"), candidate(22809, "c")}),
      ElementsAre(0, 1, 3));
}

TEST(NcclLinks, MembersHaveOneVersionAndSomeAreWithout) {
  EXPECT_THAT(
      NcclLinks::members(std::vector<NcclCandidate>{candidate(0, ""), candidate(22000, "a"),
                                                    candidate(22809, "b"), candidate(22000, "c")}),
      ElementsAre(1, 3));
}

/// As with CUOP_NCCL=0: such a rank offers none, and where fewer than two are left nobody connects.
TEST(NcclLinks, WithoutItNoneIsAMember) {
  EXPECT_THAT(NcclLinks::members(std::vector<NcclCandidate>{
                  candidate(0, "a"), candidate(22809, "b"), candidate(0, "c")}),
              ElementsAre(1));
  EXPECT_THAT(NcclLinks::members(std::vector<NcclCandidate>{candidate(0, "a"), candidate(0, "b")}),
              IsEmpty());
}

}  // namespace
}  // namespace cuop::dist
