#include <gtest/gtest.h>

#include "cuop/dist/comm/bootstrap.h"
#include "cuop/dist/comm/run_ranks.h"

namespace cuop::dist {

namespace {

TEST(World, APlainProcessIsAloneAndStaysTheSame) {
  const auto comm = world();
  EXPECT_EQ(comm->kind(), "self");
  EXPECT_EQ(comm->size(), 1);
  EXPECT_EQ(world(), comm);
}

TEST(World, OfARankThreadIsItsOwn) {
  run_ranks(2, [](const std::shared_ptr<Communicator>& comm) { EXPECT_EQ(world(), comm); });
  EXPECT_EQ(world()->kind(), "self");
}

}  // namespace

}  // namespace cuop::dist
