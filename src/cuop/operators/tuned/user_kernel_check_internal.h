// What a kernel of the user's own may be given. Messages begin with `who`, as "kernel add".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cuop/jit/kernel_signature.h"
#include "cuop/jit/launch.h"
#include "cuop/operators/tuned/user_kernel_options.h"

namespace cuop {

/// CompilationError for options of the compiler and macros that cannot be passed on.
void check_kernel_options(const std::string& who, const UserKernelOptions& options);
/// CompilationError for a key that names no parameter.
void check_kernel_key(const std::string& who, const std::vector<std::string>& key,
                      const std::vector<jit::KernelParameter>& parameters);
/// The device of the arguments, all of which the parameters can take.
Device check_kernel_arguments(const std::string& who, std::span<const KernelArgument> arguments,
                              const std::vector<jit::KernelParameter>& parameters);
/// ExecutionError for a launch that the device cannot do.
jit::LaunchShape check_kernel_launch(const std::string& who, const KernelLaunch& launch,
                                     Device device);

/// Checked arguments as the driver takes them: the address of each one's value.
class PackedArguments {
 public:
  PackedArguments(std::span<const KernelArgument> arguments,
                  const std::vector<jit::KernelParameter>& parameters);
  std::span<void*> addresses() { return addresses_; }

 private:
  struct alignas(16) Value {
    std::byte bytes[16] = {};
  };
  std::vector<Value> values_;
  std::vector<void*> addresses_;
};

}  // namespace cuop
