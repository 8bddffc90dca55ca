// Copies between places of every distance, and nothing beside them.
#include "cuop/core/copy_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cuop/dist/comm/copy.h"

namespace cuop {
namespace {

constexpr int64_t kPage = 4096, kRoom = 4 * kPage;

/// Two pages of a buffer each, whose contents differ everywhere.
class CopyBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < kRoom; ++i) {
      from_[i] = static_cast<char>(i % 251);
      to_[i] = -1;
    }
  }
  alignas(kPage) char from_[kRoom];
  alignas(kPage) char to_[kRoom];
};

TEST_F(CopyBytes, EveryDistanceAndLength) {
  for (const int64_t distance : {0, 1, 4, 12, 31, 63, 64, 65, 1000, 4095}) {
    for (const int64_t bytes : {0, 1, 1023, 1024, 1025, 2047, 2048, 5000, 8192}) {
      for (const auto copy : {&copy_bytes, &copy_bytes_past_caches}) {
        SetUp();
        copy(to_ + distance, from_, bytes);
        for (int64_t i = 0; i < kRoom; ++i) {
          const int64_t at = i - distance;
          ASSERT_EQ(to_[i], at >= 0 && at < bytes ? from_[at] : char{-1})
              << i << " of " << bytes << " bytes, " << distance
              << " behind, past caches: " << (copy != &copy_bytes);
        }
      }
    }
  }
}

TEST_F(CopyBytes, RanksCopyWhatOverlapsToo) {
  const std::vector<char> before(from_, from_ + kRoom);
  for (const int64_t distance : {12, 0}) {
    dist::copy_bytes(from_ + distance, from_ + 12 - distance, 5000);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + 5000, from_ + distance));
  }
  dist::copy_bytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace cuop
