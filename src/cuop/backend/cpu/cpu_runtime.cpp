#include "cuop/backend/cpu/cpu_runtime.h"

#include <cstring>
#include <fstream>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/text.h"

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

int64_t proc_bytes(const char* key) {
  const std::string text = proc_field("/proc/meminfo", key);
  return text.empty() ? 0 : std::stoll(text) * 1024;
}

class CpuRuntime final : public Runtime {
 public:
  Device device() const override { return kCpu; }
  void copy(void* dst, const void* src, int64_t bytes, Stream) override {
    if (bytes > 0) std::memcpy(dst, src, static_cast<size_t>(bytes));
  }
  void fill_bytes(void* dst, int value, int64_t bytes, Stream) override {
    if (bytes > 0) std::memset(dst, value, static_cast<size_t>(bytes));
  }
  void synchronize() override {}
  MemoryInfo memory_info() const override {
    return {proc_bytes("MemAvailable"), proc_bytes("MemTotal")};
  }
  std::string description() const override {
    return cat(proc_field("/proc/cpuinfo", "model name"), ", ", core_count(), " cores");
  }
};

}  // namespace

Runtime& cpu_runtime() {
  static CpuRuntime instance;
  return instance;
}

}  // namespace cuop::backend
