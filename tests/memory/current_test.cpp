// Which resource a storage comes from, and that what is told of it goes there.
#include "cuop/memory/current.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "cuop/memory/host.h"

namespace cuop::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

/// The host's memory, with a note of every mark.
class Noted final : public MemoryResource {
 public:
  void* allocate(int64_t bytes, Stream stream) override { return host_.allocate(bytes, stream); }
  void deallocate(void* data, int64_t bytes, Stream stream) noexcept override {
    host_.deallocate(data, bytes, stream);
  }
  void record_stream(void* data, Stream stream) override { marks.emplace_back(data, stream); }
  Statistics statistics() const override { return host_.statistics(); }
  void reset_peak() override { host_.reset_peak(); }
  int64_t release_cached() override { return host_.release_cached(); }
  Device device() const override { return kCpu; }

  std::vector<std::pair<void*, Stream>> marks;

 private:
  HostResource host_;
};

Stream side() { return {kCpu, reinterpret_cast<void*>(uintptr_t{5})}; }

TEST(CurrentResource, IsTheInnermostScopesThenTheChosenOne) {
  Noted chosen, outer, inner;
  MemoryResource& own = device_resource(kCpu);
  EXPECT_EQ(&current_resource(kCpu), &own);
  set_current_resource(kCpu, &chosen);
  EXPECT_EQ(&current_resource(kCpu), &chosen);
  {
    const ResourceScope first(outer);
    EXPECT_EQ(&current_resource(kCpu), &outer);
    const ResourceScope second(inner);
    EXPECT_EQ(&current_resource(kCpu), &inner);
    EXPECT_EQ(&device_resource(kCpu), &own);
  }
  EXPECT_EQ(set_current_resource(kCpu, nullptr), &chosen);
  EXPECT_EQ(&current_resource(kCpu), &own);
}

TEST(CurrentResource, MarksGoToWhereAStorageCameFrom) {
  Noted scoped, chosen, other;
  std::shared_ptr<Storage> a, b;
  {
    const ResourceScope scope(scoped);
    a = allocate_storage(100, kCpu);
  }
  set_current_resource(kCpu, &chosen);
  b = allocate_storage(100, kCpu);
  {
    const ResourceScope scope(other);
    record_stream(*a, side());
    record_stream(*b, side());
  }
  set_current_resource(kCpu, nullptr);
  record_stream(*b, side());
  EXPECT_THAT(scoped.marks, ElementsAre(Pair(a->data(), side())));
  EXPECT_THAT(chosen.marks, ElementsAre(Pair(b->data(), side()), Pair(b->data(), side())));
  EXPECT_THAT(other.marks, IsEmpty());
  EXPECT_EQ(scoped.statistics().allocated_bytes, 100);
  a.reset();
  b.reset();
  EXPECT_EQ(scoped.statistics().allocated_bytes, 0);
  EXPECT_EQ(chosen.statistics().allocated_bytes, 0);
}

TEST(CurrentResource, HearsNothingOfMemoryThatIsNotItsOwn) {
  Noted scoped;
  const std::shared_ptr<Storage> own = allocate_storage(100, kCpu);
  std::shared_ptr<Storage> empty;
  char elsewhere = 0;
  Storage foreign(&elsewhere, 1, kCpu, nullptr);
  {
    const ResourceScope scope(scoped);
    empty = allocate_storage(0, kCpu);
    record_stream(*own, side());
    record_stream(*empty, side());
    record_stream(foreign, side());
  }
  EXPECT_THAT(scoped.marks, IsEmpty());
}

}  // namespace
}  // namespace cuop::memory
