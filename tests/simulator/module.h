// Binaries of kernels, which are shared objects of the host, and their launch.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuop/backend/cuda/driver_types.h"
#include "tests/simulator/kernel_interface.h"
#include "tests/simulator/stream.h"

namespace cuop::simulator {

class Module;

/// A kernel of a loaded module.
struct Function {
  Module* module = nullptr;
  std::string name;
  KernelInfo info{};
  size_t max_dynamic_shared = 48 << 10;

  size_t shared_bytes() const { return static_cast<size_t>(info.shared_end - info.shared_begin); }
  unsigned max_threads() const;
};

class Module : public std::enable_shared_from_this<Module> {
 public:
  /// kInvalidImage when it is no binary for this device.
  static Result load(const void* image, std::shared_ptr<Module>& module);
  ~Module();

  /// Null when there is no such kernel. Lives as long as the module.
  Function* find(const std::string& name);
  /// Shared memory and the running thread are one for a module, so that it runs one block at a
  /// time.
  std::mutex running;

 private:
  void* handle_ = nullptr;
  std::string trap_;
  std::map<std::string, std::unique_ptr<Function>> functions_;
};

struct Launch {
  Function* function = nullptr;
  Index3 grid, block;
  size_t dynamic_shared = 0;
};
/// Checks the launch as the driver does, copies the arguments and answers what will run it.
Result prepare(const Launch& launch, void** arguments, int device, Work& work);

}  // namespace cuop::simulator
