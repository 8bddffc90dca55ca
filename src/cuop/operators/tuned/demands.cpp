#include "cuop/operators/tuned/demands.h"

#include "cuop/core/text.h"

namespace cuop {

std::string demands_text() {
  using backend::MatrixUnits;
  const MatrixUnits units = backend::execution_options().matrix_units;
  std::string text = jit::build_key();
  if (units == MatrixUnits::kForbidden) text += " without matrix units";
  if (units == MatrixUnits::kRequired) text += " on matrix units";
  return text;
}

std::string registers_obstacle(const JitConfig& config, Device device) {
  if (config.max_registers == 0 || config.max_registers >= jit::kFewestRegisters) return "";
  return cat("max_registers is ", config.max_registers, ", but for ", device,
             " the assembler gives a thread at least ", jit::kFewestRegisters,
             "; allowed is 0 (no limit) or ", jit::kFewestRegisters, " to ", jit::kMostRegisters);
}

bool wants_simple(const JitConfig& config) {
  return config.kernel_type == backend::KernelType::kSimple || config.optimization_level == "O0";
}

backend::ExecutionOptions with_demands(const JitConfig& config, Device device) {
  backend::ExecutionOptions options = backend::execution_options();
  if (device.is_cpu()) return options;
  const bool is_simple = wants_simple(config);
  const std::string& level = config.optimization_level;
  options.build.max_registers = static_cast<int>(config.max_registers);
  options.build.is_unrolled = config.enable_loop_unroll && !is_simple;
  options.build.assembler_level = 3;
  if (level == "O1") options.build.assembler_level = 1;
  if (level == "O2") options.build.assembler_level = 2;
  if (is_simple) options.build.assembler_level = 0;
  options.matrix_units = backend::MatrixUnits::kAllowed;
  if (!config.enable_tensor_core) options.matrix_units = backend::MatrixUnits::kForbidden;
  if (config.kernel_type == backend::KernelType::kTensorCore) {
    options.matrix_units = backend::MatrixUnits::kRequired;
  }
  return options;
}

}  // namespace cuop
