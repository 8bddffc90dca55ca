#include "cuop/backend/cache.h"

#include <gtest/gtest.h>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "cuop/ops/create/create.h"

namespace cuop {
namespace {

/// Hands on to the resource it stands before, and counts how often it had to give memory back.
class CountingResource final : public memory::MemoryResource {
 public:
  explicit CountingResource(memory::MemoryResource& upstream) : upstream_(upstream) {}
  void* allocate(int64_t bytes, Stream stream) override {
    return upstream_.allocate(bytes, stream);
  }
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override {
    upstream_.deallocate(data, bytes, stream);
  }
  memory::Statistics statistics() const override { return upstream_.statistics(); }
  void reset_peak() override { upstream_.reset_peak(); }
  int64_t release_cached() override {
    ++releases;
    return 1000;
  }
  Device device() const override { return kCpu; }

  int releases = 0;

 private:
  memory::MemoryResource& upstream_;
};

class Cache : public testing::Test {
 protected:
  Cache() : counting_(memory::current_resource(kCpu)) {
    before_ = memory::set_current_resource(kCpu, &counting_);
  }
  ~Cache() override { memory::set_current_resource(kCpu, before_); }

  CountingResource counting_;
  memory::MemoryResource* before_;
};

TEST_F(Cache, IsEmptiedByItsResourceAndLeavesTensorsAlone) {
  const Tensor kept = ones({1000});
  EXPECT_GE(empty_cache(kCpu), 1000);
  EXPECT_EQ(counting_.releases, 1);
  EXPECT_EQ(kept.data<float>()[999], 1.0f);
}

TEST_F(Cache, AContextEmptiesItWhenItEnds) {
  Tensor kept;
  {
    const MemoryContext context(kCpu);
    kept = ones({10});
    EXPECT_EQ(counting_.releases, 0);
  }
  EXPECT_EQ(counting_.releases, 1);
  EXPECT_EQ(kept.data<float>()[9], 1.0f);
}

TEST(CacheOfAnAbsentDevice, IsAnErrorButNotOfADestructor) {
  if (backend::device_count(DeviceType::kCuda) > 0) GTEST_SKIP() << "there is a usable GPU";
  const Device cuda{DeviceType::kCuda, 0};
  EXPECT_THROW(empty_cache(cuda), DeviceError);
  EXPECT_NO_THROW({ const MemoryContext context(cuda); });
}

}  // namespace
}  // namespace cuop
