// The tests of tests/dist with the ranks' parts on GPUs: as many as there are, shared by more
// ranks.
#include <gtest/gtest.h>

#include "cuop/backend/runtime.h"
#include "tests/dist/rank_tensors.h"

const bool cuop::dist::rank_test::kRanksOnGpus = true;

namespace {

class NeedsGpu : public testing::Environment {
 public:
  void SetUp() override {
    const int gpus = cuop::backend::device_count(cuop::DeviceType::kCuda);
    if (gpus == 0) GTEST_SKIP() << "nothing is run: needs a CUDA GPU";
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new NeedsGpu);
  return RUN_ALL_TESTS();
}
