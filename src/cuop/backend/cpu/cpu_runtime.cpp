#include <cstddef>
#include <cstring>
#include <fstream>
#include <optional>

#include "cuop/backend/cpu/dnn.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/device_runtime.h"
#include "cuop/backend/event_pair_internal.h"
#include "cuop/core/copy_bytes.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/memory/host_memory.h"

namespace cuop::backend {

namespace {

/// The value of a "Key:  123 kB" or "key : text" line of a /proc file; "" when absent.
std::string proc_field(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const size_t value = line.find_first_not_of(" \t", line.find(':') + 1);
    return value == std::string::npos ? "" : line.substr(value);
  }
  return "";
}

/// Work is done when it has been asked for, so a mark is a moment.
class CpuEvent final : public Event {
 public:
  explicit CpuEvent(bool is_timed) : is_timed_(is_timed) {}
  Device device() const { return kCpu; }
  void record(Stream) override { moment_ = trace::now_ns(); }
  void wait(Stream) const override {}
  void synchronize() const override {}
  bool is_done() const override { return true; }
  double elapsed_ms(const Event& since) const override {
    return static_cast<double>(moment() - same_device(*this, since).moment()) * 1e-6;
  }

 private:
  int64_t moment() const {
    if (!is_timed_) throw ExecutionError("event: made without timing; pass timed=True");
    if (!moment_) throw ExecutionError("event: nothing was recorded yet");
    return *moment_;
  }
  bool is_timed_;
  std::optional<int64_t> moment_;
};

class CpuRuntime final : public Runtime {
 public:
  Device device() const override { return kCpu; }
  void copy(void* dst, const void* src, int64_t bytes, Stream) override {
    copy_bytes(dst, src, bytes);
  }
  void copy_locked(void* dst, const void* src, int64_t bytes, Stream stream) override {
    copy(dst, src, bytes, stream);
  }
  bool is_locked(const void*, int64_t) override { return true; }
  void fill_bytes(void* dst, int value, int64_t bytes, Stream) override {
    if (bytes > 0) std::memset(dst, value, static_cast<size_t>(bytes));
  }
  void fill(void* dst, const void* element, int64_t element_bytes, int64_t count, Stream) override {
    const auto size = static_cast<size_t>(element_bytes);
    auto* to = static_cast<std::byte*>(dst);
    for (int64_t i = 0; i < count; ++i, to += size) std::memcpy(to, element, size);
  }
  Stream create_stream(int) override { return {kCpu}; }
  void destroy_stream(Stream) noexcept override {}
  std::unique_ptr<Event> create_event(bool is_timed) override {
    return std::make_unique<CpuEvent>(is_timed);
  }
  std::unique_ptr<Graph> create_graph() override {
    throw NotImplementedError(
        "graph: none on cpu, where work is done at once; there is one on cuda");
  }
  void order(Stream, Stream) override {}
  bool is_idle(Stream) override { return true; }
  void synchronize(Stream) override {}
  void synchronize() override {}
  MemoryInfo memory_info() const override {
    const memory::DeviceMemory host = memory::host_memory();
    return {host.free, host.total};
  }
  std::string description() const override {
    return cat(proc_field("/proc/cpuinfo", "model name"), ", ", core_count(), " cores");
  }
  const DeviceProperties& properties() const override {
    throw NotImplementedError("properties: there are none of cpu; ask a GPU");
  }
  int64_t release_prepared() override { return dnn::release(); }
};

}  // namespace

Runtime& cpu_runtime() {
  // Never destroyed: threads may compute while the process ends.
  static auto& instance = *new CpuRuntime;
  return instance;
}

}  // namespace cuop::backend
