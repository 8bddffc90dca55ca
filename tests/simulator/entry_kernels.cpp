// Entry points about modules, kernels and their launch.
#include <algorithm>
#include <map>
#include <mutex>

#include "tests/simulator/block.h"
#include "tests/simulator/capture.h"
#include "tests/simulator/entry.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/module.h"

namespace cuop::simulator {

namespace {

/// Registers are a matter of the real compiler; this many a thread leave a multiprocessor full.
constexpr int kRegisters = 32;

struct Modules {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<Module>> all;
};
Modules& modules() {
  static auto* made = new Modules;
  return *made;
}

std::shared_ptr<Module> module_of(const void* handle) {
  const std::lock_guard lock(modules().mutex);
  const auto found = modules().all.find(handle);
  return found == modules().all.end() ? nullptr : found->second;
}

template <class Handle>
Result load(Handle* handle, const void* image) {
  if (image == nullptr) return Result::kInvalidValue;
  std::shared_ptr<Module> module;
  const Result result = Module::load(image, module);
  if (result != Result::kSuccess) return result;
  *handle = reinterpret_cast<Handle>(module.get());
  const std::lock_guard lock(modules().mutex);
  modules().all.emplace(module.get(), std::move(module));
  return Result::kSuccess;
}

Result unload(const void* handle) {
  std::shared_ptr<Module> last;  // destroyed outside the lock
  const std::lock_guard lock(modules().mutex);
  const auto node = modules().all.extract(handle);
  if (node.empty()) return kInvalidHandle;
  last = node.mapped();
  return Result::kSuccess;
}

template <class Handle>
Result find(Handle* handle, const void* module, const char* name) {
  const auto found = module_of(module);
  if (found == nullptr) return kInvalidHandle;
  *handle = reinterpret_cast<Handle>(found->find(name));
  return *handle != nullptr ? Result::kSuccess : Result::kNotFound;
}

Function& function_of(FunctionHandle handle) { return *reinterpret_cast<Function*>(handle); }

int active_blocks(const Function& function, int threads, size_t dynamic_shared) {
  constexpr size_t kReserved = 1 << 10, kShared = 228 << 10;
  constexpr int kThreads = 2048, kBlocks = 32, kAllRegisters = 65536;
  if (threads <= 0 || threads > static_cast<int>(function.max_threads())) return 0;
  const int rounded = (threads + 31) / 32 * 32;
  const size_t shared = function.shared_bytes() + dynamic_shared + kReserved;
  return std::min({kThreads / rounded, kBlocks, kAllRegisters / (rounded * kRegisters),
                   static_cast<int>(kShared / shared)});
}

}  // namespace

CUOP_SIMULATOR_ENTRY Result cuModuleLoadDataEx(ModuleHandle* module, const void* image, unsigned,
                                               JitOption*, void**) {
  return in_context([&](int) { return load(module, image); });
}
CUOP_SIMULATOR_ENTRY Result cuModuleUnload(ModuleHandle module) {
  return answered([&] { return unload(module); });
}
CUOP_SIMULATOR_ENTRY Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle module,
                                                const char* name) {
  return in_context([&](int) { return find(function, module, name); });
}
CUOP_SIMULATOR_ENTRY Result cuModuleGetGlobal(DevicePointer*, size_t*, ModuleHandle, const char*) {
  return Result::kNotSupported;
}
CUOP_SIMULATOR_ENTRY Result cuLibraryLoadData(LibraryHandle* library, const void* image, JitOption*,
                                              void**, unsigned, int*, void**, unsigned) {
  return answered([&] { return load(library, image); });
}
CUOP_SIMULATOR_ENTRY Result cuLibraryUnload(LibraryHandle library) {
  return answered([&] { return unload(library); });
}
CUOP_SIMULATOR_ENTRY Result cuLibraryGetKernel(KernelHandle* kernel, LibraryHandle library,
                                               const char* name) {
  return answered([&] { return find(kernel, library, name); });
}
CUOP_SIMULATOR_ENTRY Result cuKernelGetFunction(FunctionHandle* function, KernelHandle kernel) {
  *function = reinterpret_cast<FunctionHandle>(kernel);
  return Result::kSuccess;
}
CUOP_SIMULATOR_ENTRY Result cuFuncGetAttribute(int* value, FunctionAttribute which,
                                               FunctionHandle handle) {
  return answered([&] {
    const Function& function = function_of(handle);
    switch (which) {
      case FunctionAttribute::kMaxThreadsPerBlock:
        *value = static_cast<int>(function.max_threads());
        return Result::kSuccess;
      case FunctionAttribute::kStaticSharedBytes:
        *value = static_cast<int>(function.shared_bytes());
        return Result::kSuccess;
      case FunctionAttribute::kMaxDynamicSharedBytes:
        *value = static_cast<int>(function.max_dynamic_shared);
        return Result::kSuccess;
      case FunctionAttribute::kRegisters:
        *value = kRegisters;
        return Result::kSuccess;
      case FunctionAttribute::kPtxVersion:
      case FunctionAttribute::kBinaryVersion:
        *value = capability();
        return Result::kSuccess;
      default:
        *value = 0;
        return Result::kSuccess;
    }
  });
}
CUOP_SIMULATOR_ENTRY Result cuFuncSetAttribute(FunctionHandle handle, FunctionAttribute which,
                                               int value) {
  return answered([&] {
    if (which != FunctionAttribute::kMaxDynamicSharedBytes) return Result::kSuccess;
    Function& function = function_of(handle);
    // What a launch gives is part of what the binary declares (module.cpp).
    const int most = attribute(DeviceAttribute::kMaxSharedMemoryPerBlockOptin, 0);
    if (value < 0 || value > most) return Result::kInvalidValue;
    function.max_dynamic_shared = static_cast<size_t>(value);
    return Result::kSuccess;
  });
}

CUOP_SIMULATOR_ENTRY Result cuLaunchKernelEx(const LaunchConfig* config, FunctionHandle function,
                                             void** arguments, void** extra) {
  return on_stream(config->stream, [&](Stream& stream) {
    // Clusters and the like would need kernels that run at the same time.
    if (function == nullptr) return kInvalidHandle;
    if (extra != nullptr || config->attribute_count > 0) return Result::kNotSupported;
    Launch launch;
    launch.function = &function_of(function);
    launch.grid = {config->grid_x, config->grid_y, config->grid_z};
    launch.block = {config->block_x, config->block_y, config->block_z};
    launch.dynamic_shared = config->shared_bytes;
    Work work;
    const Result result = prepare(launch, arguments, stream.device(), work);
    if (result != Result::kSuccess) return result;
    return start(Asked::kLaunch, stream, launch.function, std::move(work));
  });
}
CUOP_SIMULATOR_ENTRY Result cuLaunchKernel(FunctionHandle function, unsigned grid_x,
                                           unsigned grid_y, unsigned grid_z, unsigned block_x,
                                           unsigned block_y, unsigned block_z, unsigned shared,
                                           StreamHandle stream, void** arguments, void** extra) {
  const LaunchConfig config{grid_x,  grid_y, grid_z, block_x, block_y,
                            block_z, shared, stream, nullptr, 0};
  return cuLaunchKernelEx(&config, function, arguments, extra);
}

CUOP_SIMULATOR_ENTRY Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                        FunctionHandle function,
                                                                        int threads,
                                                                        size_t shared) {
  return answered([&] {
    *blocks = active_blocks(function_of(function), threads, shared);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuOccupancyMaxPotentialBlockSize(int* grid, int* threads,
                                                             FunctionHandle handle,
                                                             size_t (*shared_of)(int),
                                                             size_t shared, int limit) {
  return answered([&] {
    const Function& function = function_of(handle);
    int best = 0;
    const int most = static_cast<int>(function.max_threads());
    for (int size = limit > 0 ? std::min(limit, most) : most; size >= 32; size -= 32) {
      const int active = active_blocks(function, size, shared_of ? shared_of(size) : shared);
      if (active * size <= best) continue;
      best = active * size;
      *threads = size;
      *grid = active * attribute(DeviceAttribute::kMultiprocessorCount, 0);
    }
    return best > 0 ? Result::kSuccess : Result::kInvalidValue;
  });
}
CUOP_SIMULATOR_ENTRY Result cuOccupancyMaxActiveClusters(int*, FunctionHandle,
                                                         const LaunchConfig*) {
  return Result::kNotSupported;
}

}  // namespace cuop::simulator
