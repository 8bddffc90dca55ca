// Kernels that are loaded on a device, by what they were made from. One compilation and one load of
// each in a process, whatever number of threads ask for it.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cuop/backend/cuda/driver_types.h"
#include "cuop/core/stream.h"
#include "cuop/jit/launch.h"
#include "cuop/jit/nvrtc.h"

namespace cuop::jit {

/// Ready to be launched on its device; kept until the process ends.
struct LoadedKernel {
  std::string title;
  Device device;
  backend::cuda::FunctionHandle function = nullptr;
  int registers = 0;
  int local_bytes = 0;  ///< spilled registers and the stack of a thread
  size_t digest = 0;    ///< of the binary
};

/// Returns a request without an architecture; called only when the kernel is not yet loaded.
using DescribeKernel = std::function<CompileRequest()>;

/// The kernel that `key` stands for, whose entry is the request's. The key must tell apart
/// everything that `describe` depends on. Errors as compile_kernel and the driver's; nothing is
/// kept of a failure.
const LoadedKernel& loaded_kernel(Device device, const std::string& key,
                                  const DescribeKernel& describe);
/// The same without waiting: null, and the compilation started in the background, when it is
/// neither loaded nor on disk. A failure in the background is thrown by the call that finds it.
const LoadedKernel* kernel_if_ready(Device device, const std::string& key,
                                    const DescribeKernel& describe);
/// The same, but nothing is read or compiled: null when the kernel is not loaded.
const LoadedKernel* kernel_if_loaded(Device device, const std::string& key,
                                     const DescribeKernel& describe);
/// The same, but nothing is compiled: null when the kernel is neither loaded nor on disk.
const LoadedKernel* known_kernel(Device device, const std::string& key,
                                 const DescribeKernel& describe);

/// How many kernels the process has loaded.
int64_t loaded_kernel_count();
/// Starts the kernel, whose one parameter is the struct at `arguments`, on the stream.
void launch(const LoadedKernel& kernel, LaunchShape shape, const void* arguments, Stream stream);
/// The same with the addresses of several parameters.
void launch(const LoadedKernel& kernel, LaunchShape shape, std::span<void*> parameters,
            Stream stream);

}  // namespace cuop::jit
