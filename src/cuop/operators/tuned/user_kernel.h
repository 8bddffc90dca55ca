// A kernel of the user's own: CUDA C++ compiled for the GPU on first use, cached on disk, and tried
// out in several configurations.
//
//   UserKernel add(source, "add", {.configs = {{{{"BLOCK", "128"}}}, {{{"BLOCK", "256"}}}},
//                                  .key = {"n"}});
//   add.launch({x, y, out, n}, [&](size_t i) { return grid_for(add.configs()[i], n); });
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuop/core/noncopyable.h"
#include "cuop/jit/kernel_signature.h"
#include "cuop/jit/nvrtc.h"
#include "cuop/operators/tuned/user_kernel_options.h"

namespace cuop {

class UserKernel : NonCopyable {
 public:
  /// CompilationError when the source declares no such kernel (jit/kernel_signature.h), or a
  /// configuration, a key or an option makes no sense. Nothing is compiled yet.
  UserKernel(std::string source, std::string name, UserKernelOptions options = {});
  ~UserKernel();

  const std::string& name() const;
  const std::vector<KernelConfig>& configs() const;
  /// As the first configuration has them.
  const std::vector<jit::KernelParameter>& parameters() const;

  using LaunchFor = std::function<KernelLaunch(size_t config)>;
  /// Starts the kernel on this thread's current stream of the tensors' device, in the configuration
  /// that `choose` returns. Tensors lie row-major on one GPU and have the dtypes that the source
  /// says; numbers must fit. ExecutionError, DTypeError, DeviceError or OverflowError that names
  /// the argument otherwise, before any work.
  void launch(std::span<const KernelArgument> arguments, const LaunchFor& launch_for);
  void launch(std::initializer_list<KernelArgument> arguments, const LaunchFor& launch_for) {
    launch(std::span(arguments.begin(), arguments.size()), launch_for);
  }

  /// The index of the best configuration for these arguments: remembered, stored on disk, or
  /// searched for on copies of the tensors (tune/search.h). The first one while nothing may be
  /// measured (tune/permission.h), auto-tuning is off or tensors share memory in part.
  size_t choose(std::span<const KernelArgument> arguments, const LaunchFor& launch_for);
  /// What the last search of this kernel found, one line a configuration; "" before the first.
  std::string last_search() const;

  /// The binary of one configuration for an architecture such as "sm_90a"; needs no GPU.
  jit::CompiledKernel compile(size_t config, const std::string& arch) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace cuop
