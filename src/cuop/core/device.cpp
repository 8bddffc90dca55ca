#include "cuop/core/device.h"

#include <charconv>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

const char* name(DeviceType type) { return type == DeviceType::kCpu ? "cpu" : "cuda"; }

Device parse_device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  Device device{type == "cuda" ? DeviceType::kCuda : DeviceType::kCpu, 0};
  bool is_valid = type == "cpu" || type == "cuda";
  if (is_valid && colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), device.index);
    is_valid = error == std::errc() && end == digits.data() + digits.size() && device.index >= 0;
  }
  if (!is_valid || (device.is_cpu() && device.index != 0)) {
    throw DeviceError(
        cat("device: '", text, "' is not a device; allowed are 'cpu', 'cuda' and 'cuda:N'"));
  }
  return device;
}

std::ostream& operator<<(std::ostream& out, Device device) {
  out << name(device.type);
  if (!device.is_cpu()) out << ':' << device.index;
  return out;
}

}  // namespace cuop
