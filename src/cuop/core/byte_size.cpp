#include "cuop/core/byte_size.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <sstream>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

constexpr std::string_view kPrefixes = "KMGT";

/// The factor that a unit stands for; 0 for a unit that is none.
double factor_of(std::string unit) {
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (unit.empty() || unit == "B") return 1.0;
  const size_t power = kPrefixes.find(unit[0]);
  const std::string rest = unit.substr(1);
  const bool is_known = rest.empty() || rest == "B" || rest == "IB";
  if (power == std::string_view::npos || !is_known) return 0.0;
  return std::pow(1024.0, static_cast<double>(power + 1));
}

}  // namespace

int64_t whole_bytes(double bytes) {
  constexpr double kMost = 0x1p61;
  return static_cast<int64_t>(std::ceil(std::min(bytes, kMost)));
}

std::string format_bytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  std::ostringstream out;
  out.precision(value < 100 ? 3 : 4);
  out << value << ' ' << kUnits[unit];
  return out.str();
}

int64_t parse_bytes(std::string_view text, std::string_view who) {
  std::istringstream in{std::string(text)};
  double value = 0.0;
  std::string unit, rest;
  const bool is_number = static_cast<bool>(in >> value);
  in >> unit >> rest;
  const double bytes = is_number ? value * factor_of(unit) : -1.0;
  const bool is_size = is_number && rest.empty() && factor_of(unit) > 0.0 && bytes >= 0.0;
  if (!is_size) {
    throw ExecutionError(cat(
        who, ": '", text, "' is not a size; give bytes or a number with a unit: '512MB', '2GB'"));
  }
  if (bytes >= 0x1p63) {
    throw ExecutionError(
        cat(who, ": '", text, "' is more bytes than 64 bits count, needed are below 8388608TB"));
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace cuop
