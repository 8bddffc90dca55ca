// Engines of cuDNN that were found to be better than the first of its ranking.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "cuop/backend/cuda/cudnn.h"
#include "cuop/core/hash.h"

namespace cuop::backend::cuda {

struct ConvShapeHash {
  size_t operator()(const ConvShape& s) const {
    const int64_t fields[] = {static_cast<int64_t>(s.dtype) * 8 + (s.has_relu ? 4 : 0) +
                                  (s.has_bias ? 2 : 0) + (s.adds_to_y ? 1 : 0),
                              s.batch, s.in_channels, s.out_channels, s.groups};
    const auto bytes = [](const auto& values) {
      return hash_text({reinterpret_cast<const char*>(&values), sizeof values});
    };
    uint64_t hash = bytes(fields);
    for (const auto* axes : {&s.in, &s.kernel, &s.out, &s.stride, &s.padding, &s.dilation}) {
      hash = hash * 31 + bytes(*axes);
    }
    return hash;
  }
};

/// By device and problem: what this process has found, else what the advisor knows.
class KnownEngines {
 public:
  void set_advisor(ConvAdvisor advisor) { advisor_ = std::move(advisor); }
  void put(const ConvShape& shape, Device device, const std::string& engine) {
    const std::lock_guard lock(mutex_);
    engines_[device.index][shape] = engine;
    ++version_;
  }
  std::optional<std::string> find(const ConvShape& shape, Device device) const {
    {
      const std::lock_guard lock(mutex_);
      const auto of_device = engines_.find(device.index);
      if (of_device != engines_.end()) {
        const auto known = of_device->second.find(shape);
        if (known != of_device->second.end()) return known->second;
      }
    }
    return advisor_.ask ? advisor_.ask(shape, device) : std::nullopt;
  }
  void tell(bool is_taken) const {
    if (advisor_.tell) advisor_.tell(is_taken);
  }
  /// Changes when plans that were made before may be out of date.
  int64_t version() const { return version_; }

 private:
  ConvAdvisor advisor_;
  mutable std::mutex mutex_;
  std::unordered_map<int, std::unordered_map<ConvShape, std::string, ConvShapeHash>> engines_;
  std::atomic<int64_t> version_ = 0;
};

inline KnownEngines& known_engines() {
  static KnownEngines* engines = new KnownEngines;
  return *engines;
}

}  // namespace cuop::backend::cuda
