#include "cuop/operators/jit/demands.h"

#include "cuop/core/text.h"

namespace cuop {

std::string KernelDemands::text() const {
  using backend::MatrixUnits;
  const jit::BuildScope scope(build);
  std::string text = jit::build_key();
  if (matrix_units == MatrixUnits::kForbidden) text += " without matrix units";
  if (matrix_units == MatrixUnits::kRequired) text += " on matrix units";
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

KernelDemands demands_of(const JitConfig& config, Device device) {
  KernelDemands demands;
  if (device.is_cpu()) return demands;
  const bool is_simple = wants_simple(config);
  const std::string& level = config.optimization_level;
  demands.build.max_registers = static_cast<int>(config.max_registers);
  demands.build.is_unrolled = config.enable_loop_unroll && !is_simple;
  if (level == "O1") demands.build.assembler_level = 1;
  if (level == "O2") demands.build.assembler_level = 2;
  if (is_simple) demands.build.assembler_level = 0;
  if (!config.enable_tensor_core) demands.matrix_units = backend::MatrixUnits::kForbidden;
  if (config.kernel_type == backend::KernelType::kTensorCore) {
    demands.matrix_units = backend::MatrixUnits::kRequired;
  }
  return demands;
}

}  // namespace cuop
