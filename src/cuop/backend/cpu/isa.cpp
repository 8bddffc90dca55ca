#include "cuop/backend/cpu/isa.h"

#include "cuop/backend/execution.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::isa {

namespace {

constexpr Level kLevels[] = {Level::kBaseline, Level::kV3, Level::kV4};

Level choose_level() {
  const std::string& asked = env().cpu_isa.value;
  if (asked == "auto") return highest_supported();
  for (const Level level : kLevels) {
    if (asked != name(level)) continue;
    if (is_supported(level)) return level;
    throw ExecutionError(cat("CUOP_CPU_ISA: ", asked, " cannot run here; the highest level is ",
                             name(highest_supported())));
  }
  throw ExecutionError(
      cat("CUOP_CPU_ISA: '", asked, "' is unknown; known are auto, baseline, v3, v4"));
}

}  // namespace

const char* name(Level level) {
  constexpr const char* kNames[] = {"baseline", "v3", "v4"};
  return kNames[static_cast<size_t>(level)];
}

bool is_supported(Level level) {
#ifdef CUOP_HAS_ISA_v4
  if (level == Level::kV4) return __builtin_cpu_supports("x86-64-v4") > 0;
#endif
#ifdef CUOP_HAS_ISA_v3
  if (level == Level::kV3) return __builtin_cpu_supports("x86-64-v3") > 0;
#endif
  return level == Level::kBaseline;
}

Level highest_supported() {
  Level best = Level::kBaseline;
  for (const Level level : kLevels) {
    if (is_supported(level)) best = level;
  }
  return best;
}

Level current() {
  static const Level level = choose_level();
  return backend::execution_options().is_baseline ? Level::kBaseline : level;
}

}  // namespace cuop::isa
