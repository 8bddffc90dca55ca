// Instruction sets whose loops a test tries.
#pragma once

#include <vector>

#include "cuop/backend/cpu/isa.h"

namespace cuop::test {

/// Those that this processor has, the least first.
inline std::vector<isa::Level> levels() {
  std::vector<isa::Level> supported;
  for (const isa::Level level : {isa::Level::kBaseline, isa::Level::kV3, isa::Level::kV4}) {
    if (isa::is_supported(level)) supported.push_back(level);
  }
  return supported;
}

}  // namespace cuop::test
