// A device is a type and an index; "cpu" or "cuda:0".
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

namespace cuop {

enum class DeviceType : uint8_t { kCpu, kCuda };
inline constexpr int kDeviceTypeCount = 2;
inline constexpr int kMaxDevices = 64;  ///< GPUs of one host

struct Device {
  DeviceType type = DeviceType::kCpu;
  int index = 0;

  bool is_cpu() const { return type == DeviceType::kCpu; }
  bool operator==(const Device&) const = default;
};

inline constexpr Device kCpu{};

/// "cpu", "cuda" or "cuda:1"; anything else is a DeviceError that names the forms.
Device parse_device(std::string_view text);
const char* name(DeviceType type);
std::ostream& operator<<(std::ostream& out, Device device);

}  // namespace cuop
