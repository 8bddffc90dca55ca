// Messages for people, on stderr, chosen by CUOP_LOG. Never used instead of an error.
#pragma once

#include <string_view>

#include "cuop/core/text.h"

namespace cuop {

enum class LogLevel { kOff, kWarn, kInfo, kDebug };

bool log_enabled(LogLevel level);
void log_write(LogLevel level, std::string_view message);

template <class... Parts>
void log(LogLevel level, const Parts&... parts) {
  if (log_enabled(level)) log_write(level, cat(parts...));
}

}  // namespace cuop
