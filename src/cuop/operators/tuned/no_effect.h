// What of a JitConfig means nothing to a device: one configuration serves programs on GPUs and on
// the CPU.
#pragma once

#include <string>
#include <vector>

#include "cuop/operators/tuned/config.h"
#include "cuop/operators/tuned/config_check.h"

namespace cuop {

struct NoEffect {
  std::string field;  ///< of JitConfig
  std::string text;   ///< "block_size=256: no effect on cpu (it counts the threads of a GPU block)"
};

/// The fields that are not at their defaults and describe a GPU, on the CPU; none on a GPU, which
/// meets every field or refuses the configuration.
std::vector<NoEffect> fields_without_effect(const JitConfig& config, Device device,
                                            const KernelTraits& traits);

/// Says so, of each field once a process.
void warn_of_no_effect(const std::string& who, const std::vector<NoEffect>& fields);

/// Gets those warnings; null for stderr again. May throw: the error leaves the call that warned,
/// after it has done its work.
using WarningOutput = void (*)(const std::string& text);
void set_no_effect_output(WarningOutput output);

}  // namespace cuop
