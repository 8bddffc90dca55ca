#include "tests/conformance/runtime_suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"
#include "tests/error_of.h"

namespace cuop::backend::conformance {

namespace {

using Bytes = std::vector<unsigned char>;

/// A block of the device between two guard zones of a known pattern.
class Guarded {
 public:
  Guarded(Device device, int64_t bytes)
      : storage_(memory::allocate_storage(bytes + 2 * kZone, device)), bytes_(bytes) {
    runtime(device).fill_bytes(storage_->data(), kPattern, bytes + 2 * kZone, current());
  }
  ~Guarded() {
    const Bytes all = read(storage_->data(), bytes_ + 2 * kZone);
    const Bytes zone(kZone, kPattern);
    EXPECT_EQ(Bytes(all.begin(), all.begin() + kZone), zone) << "written before the block";
    EXPECT_EQ(Bytes(all.end() - kZone, all.end()), zone) << "written behind the block";
  }
  void* data() const { return static_cast<unsigned char*>(storage_->data()) + kZone; }
  Bytes values() const { return read(data(), bytes_); }

 private:
  static constexpr int64_t kZone = 256;
  static constexpr unsigned char kPattern = 0xA5;
  Stream current() const { return current_stream(storage_->device()); }
  Bytes read(void* from, int64_t bytes) const {
    Bytes host(static_cast<size_t>(bytes));
    runtime(storage_->device()).copy(host.data(), from, bytes, current());
    return host;
  }
  std::shared_ptr<Storage> storage_;
  int64_t bytes_;
};

Bytes counting(int64_t bytes, int from = 0) {
  Bytes values(static_cast<size_t>(bytes));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<unsigned char>(static_cast<size_t>(from) + i * 7 + (i >> 8));
  }
  return values;
}

void copies_there_and_back(Device device) {
  for (int64_t bytes : {0, 1, 13, 4096, 100003}) {
    const Bytes values = counting(bytes);
    const Guarded first(device, bytes), second(device, bytes);
    const Stream stream = current_stream(device);
    runtime(device).copy(first.data(), values.data(), bytes, stream);
    runtime(device).copy(second.data(), first.data(), bytes, stream);
    EXPECT_EQ(second.values(), values) << bytes << " bytes";
  }
}

void fills_bytes_and_elements(Device device) {
  for (int64_t size : {1, 2, 4, 8, 16}) {
    for (int64_t count : {0, 1, 3, 1000, 70001}) {
      for (const bool is_uniform : {false, true}) {
        const Bytes element = is_uniform ? Bytes(static_cast<size_t>(size), 7) : counting(size, 3);
        const Guarded block(device, size * count);
        runtime(device).fill(block.data(), element.data(), size, count, current_stream(device));
        Bytes expected;
        for (int64_t i = 0; i < count; ++i) {
          expected.insert(expected.end(), element.begin(), element.end());
        }
        EXPECT_EQ(block.values(), expected) << count << " elements of " << size << " bytes";
      }
    }
  }
}

void orders_streams(Device device) {
  constexpr int64_t kBytes = 1 << 24;
  Runtime& device_runtime = runtime(device);
  const OwnedStream first(device), second(device);
  const Guarded from(device, kBytes), to(device, kBytes);
  device_runtime.synchronize();  // the guards were written on another stream
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < 20; ++i) {
      device_runtime.fill_bytes(from.data(), round, kBytes, first.get());
    }
    device_runtime.order(second.get(), first.get());
    device_runtime.copy(to.data(), from.data(), kBytes, second.get());
    device_runtime.synchronize(second.get());
    const Bytes values = to.values();
    EXPECT_EQ(std::count(values.begin(), values.end(), static_cast<unsigned char>(round)), kBytes);
  }
  device_runtime.synchronize();
  EXPECT_TRUE(device_runtime.is_idle(first.get()));
  EXPECT_TRUE(device_runtime.is_idle(second.get()));
}

void marks_and_measures(Device device) {
  constexpr int64_t kBytes = 1 << 24;
  Runtime& device_runtime = runtime(device);
  const Stream stream = current_stream(device);
  const auto start = device_runtime.create_event(true), end = device_runtime.create_event(true);
  EXPECT_THROW(end->elapsed_ms(*start), ExecutionError);
  start->record(stream);
  const Guarded block(device, kBytes);
  device_runtime.fill_bytes(block.data(), 1, kBytes, stream);
  end->record(stream);
  end->synchronize();
  EXPECT_TRUE(end->is_done());
  EXPECT_TRUE(start->is_done());
  EXPECT_GT(end->elapsed_ms(*start), 0.0);
  const auto untimed = device_runtime.create_event(false);
  untimed->record(stream);
  untimed->wait(stream);
  EXPECT_THROW(untimed->elapsed_ms(*start), ExecutionError);
}

void a_scope_chooses_the_stream(Device device) {
  const Stream before = current_stream(device);
  const OwnedStream own(device);
  {
    const StreamScope scope(own.get());
    EXPECT_EQ(current_stream(device), own.get());
  }
  EXPECT_EQ(current_stream(device), before);
}

void counts_its_memory(Device device) {
  memory::MemoryResource& resource = memory::current_resource(device);
  EXPECT_EQ(resource.device(), device);
  const int64_t before = resource.statistics().allocated_bytes;
  const Stream stream = current_stream(device);
  void* block = resource.allocate(1 << 20, stream);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % memory::kAlignment, 0u);
  EXPECT_GE(resource.statistics().allocated_bytes, before + (1 << 20));
  resource.deallocate(block, 1 << 20, stream);
  EXPECT_EQ(resource.statistics().allocated_bytes, before);
  EXPECT_EQ(resource.allocate(0, stream), nullptr);
}

void refuses_what_cannot_fit_and_goes_on(Device device) {
  const int64_t total = runtime(device).memory_info().total;
  const auto error =
      test::caught<MemoryError>([&] { memory::allocate_storage(4 * total, device); });
  EXPECT_EQ(error.figures().requested, 4 * total);
  copies_there_and_back(device);
}

void tells_its_memory(Device device) {
  const MemoryInfo info = runtime(device).memory_info();
  EXPECT_GT(info.free, 0);
  EXPECT_GE(info.total, info.free);
  EXPECT_NE(runtime(device).description(), "");
}

class RuntimeTest : public testing::Test {
 public:
  RuntimeTest(Device device, std::function<void(Device)> body)
      : device_(device), body_(std::move(body)) {}
  void SetUp() override {
    if (device_.index >= device_count(device_.type)) GTEST_SKIP() << "needs a CUDA GPU";
  }
  void TestBody() override { body_(device_); }

 private:
  Device device_;
  std::function<void(Device)> body_;
};

}  // namespace

void register_runtime_suite(const std::string& kind, Device device) {
  const struct {
    const char* name;
    void (*body)(Device);
  } cases[] = {{"CopiesThereAndBack", copies_there_and_back},
               {"FillsBytesAndElements", fills_bytes_and_elements},
               {"OrdersStreams", orders_streams},
               {"MarksAndMeasures", marks_and_measures},
               {"AScopeChoosesTheStream", a_scope_chooses_the_stream},
               {"CountsItsMemory", counts_its_memory},
               {"RefusesWhatCannotFitAndGoesOn", refuses_what_cannot_fit_and_goes_on},
               {"TellsItsMemory", tells_its_memory}};
  for (const auto& each : cases) {
    testing::RegisterTest(
        ("Runtime_" + kind).c_str(), each.name, nullptr, nullptr, __FILE__, __LINE__,
        [device, body = each.body]() -> RuntimeTest* { return new RuntimeTest(device, body); });
  }
}

}  // namespace cuop::backend::conformance
