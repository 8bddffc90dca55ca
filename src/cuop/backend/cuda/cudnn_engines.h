// Engines of cuDNN that were found to be better than the first of its ranking.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "cuop/backend/cuda/conv_shape.h"
#include "cuop/core/device.h"

namespace cuop::backend::cuda {

/// Who knows better than the library's ranking. Asked about each new problem, and told whether the
/// library still offers what it answered.
struct ConvAdvisor {
  std::function<std::optional<std::string>(const ConvShape&, Device)> ask;
  std::function<void(bool is_taken)> tell;
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
/// Before the first convolution only.
inline void set_conv_advisor(ConvAdvisor advisor) {
  known_engines().set_advisor(std::move(advisor));
}

}  // namespace cuop::backend::cuda
