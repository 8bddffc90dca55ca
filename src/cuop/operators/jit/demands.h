// What a JitConfig asks of the kernels that a call compiles and of the libraries that it uses.
#pragma once

#include <string>

#include "cuop/backend/library_use.h"
#include "cuop/jit/build_options.h"
#include "cuop/operators/jit/config.h"

namespace cuop {

/// Nothing on the CPU, whose kernels are compiled ahead of time.
struct KernelDemands {
  jit::BuildOptions build{};
  backend::MatrixUnits matrix_units = backend::MatrixUnits::kAllowed;
  /// Tells apart what was chosen under one demand from what was under another; "" for none.
  std::string text() const;
};
/// True where the operator's plain kernel is asked for.
bool wants_simple(const JitConfig& config);
/// Why a GPU cannot keep to max_registers, or "": for kernels of our own.
std::string registers_obstacle(const JitConfig& config, Device device);
KernelDemands demands_of(const JitConfig& config, Device device);

/// While it lives, this thread's kernels and libraries are asked for as demanded.
class DemandScope {
 public:
  explicit DemandScope(const KernelDemands& demands)
      : build_(demands.build), units_(demands.matrix_units) {}

 private:
  jit::BuildScope build_;
  backend::MatrixUnitsScope units_;
};

}  // namespace cuop
