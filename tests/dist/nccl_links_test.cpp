// Who of the ranks could use NCCL together, by what each offers; fabric_cases.cpp has the rest.
#include "cuop/dist/comm/nccl_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cuop::dist {
namespace {

using fabric::Offer;
using fabric::Text;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Offer offer(int64_t nccl, const char* gpu) {
  Offer made;
  made.nccl = nccl;
  made.gpu = Text(gpu);
  return made;
}

TEST(NcclLinks, EachMemberHasAGpuOfItsOwn) {
  EXPECT_THAT(NcclLinks::members(std::vector<Offer>{offer(22809, "a"), offer(22809, "b"),
                                                    offer(22809, "a"), offer(22809, "c")}),
              ElementsAre(0, 1, 3));
}

TEST(NcclLinks, MembersHaveOneVersionAndSomeAreWithout) {
  EXPECT_THAT(NcclLinks::members(std::vector<Offer>{offer(0, ""), offer(22000, "a"),
                                                    offer(22809, "b"), offer(22000, "c")}),
              ElementsAre(1, 3));
}

/// As with CUOP_NCCL=0: such a rank offers none, and where fewer than two are left nobody connects.
TEST(NcclLinks, WithoutItNoneIsAMember) {
  EXPECT_THAT(
      NcclLinks::members(std::vector<Offer>{offer(0, "a"), offer(22809, "b"), offer(0, "c")}),
      ElementsAre(1));
  EXPECT_THAT(NcclLinks::members(std::vector<Offer>{offer(0, "a"), offer(0, "b")}), IsEmpty());
}

}  // namespace
}  // namespace cuop::dist
