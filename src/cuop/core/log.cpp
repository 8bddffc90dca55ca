#include "cuop/core/log.h"

#include <cstdio>

#include "cuop/core/env.h"
#include "cuop/core/error.h"

namespace cuop {

namespace {

LogLevel chosen_level() {
  const std::string& text = env().log.value;
  if (text == "off") return LogLevel::kOff;
  if (text == "warn") return LogLevel::kWarn;
  if (text == "info") return LogLevel::kInfo;
  if (text == "debug") return LogLevel::kDebug;
  throw ExecutionError(cat("CUOP_LOG: '", text, "' is not off, warn, info or debug"));
}

}  // namespace

bool log_enabled(LogLevel level) {
  static const LogLevel chosen = chosen_level();
  return level <= chosen;
}

void log_write(LogLevel level, std::string_view message) {
  static constexpr const char* kNames[] = {"", "warning", "info", "debug"};
  const std::string line =
      cat("cuop: ", kNames[static_cast<int>(level)], ": ", message, "\n");  // one write a line
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace cuop
