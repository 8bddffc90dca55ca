#include "cuop/jit/cuda/kernel_cache.h"

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/backend/execution.h"
#include "cuop/core/cache_directory.h"
#include "cuop/core/deadline.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/home_process.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/log.h"
#include "cuop/core/one_per_device.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/cuda/expr_cuda.h"

namespace cuop::jit {

namespace {

namespace cuda = backend::cuda;

std::atomic<int64_t> loaded_count = 0;
constexpr unsigned kSharedWithoutAsking = 48 << 10;

/// The names by which the binary of a request is loaded and spoken of.
struct KernelNames {
  explicit KernelNames(const CompileRequest& request)
      : title(request.name), entry(request.entry.empty() ? kEntry : request.entry) {}
  std::string title, entry;
};

LoadedKernel load(Device device, const KernelNames& names, const CompiledKernel& compiled) {
  const cuda::Driver& driver = cuda::driver();
  const cuda::ContextScope scope(device);
  const cuda::RelaxedCapture relaxed;  // loading is no work of a stream
  const std::string& title = names.title;
  LoadedKernel kernel{title, device};
  kernel.digest = std::hash<std::string>()(compiled.image);
  cuda::ModuleHandle module = nullptr;
  cuda::check(driver.module_load_data_ex(&module, compiled.image.data(), 0, nullptr, nullptr),
              "jit: loading ", title);
  cuda::check(driver.module_get_function(&kernel.function, module, names.entry.c_str()),
              "jit: ", title);
  cuda::check(driver.func_get_attribute(&kernel.registers, cuda::FunctionAttribute::kRegisters,
                                        kernel.function),
              "jit: ", title);
  cuda::check(driver.func_get_attribute(&kernel.local_bytes, cuda::FunctionAttribute::kLocalBytes,
                                        kernel.function),
              "jit: ", title);
  if (kernel.local_bytes > 0) {
    log(LogLevel::kDebug, "jit: ", title, ": ", kernel.registers, " registers, and ",
        kernel.local_bytes, " bytes of a thread in local memory");
  }
  ++loaded_count;
  return kernel;
}

CompileRequest request_for(Device device, const DescribeKernel& describe) {
  const backend::DeviceProperties& properties = cuda::cuda_runtime(device).properties();
  CompileRequest request = describe();
  request.arch = architecture_of(properties.major, properties.minor);
  return request;
}

/// One kernel, from the first question for it on.
class Slot {
 public:
  const LoadedKernel* find() const { return ready_.load(std::memory_order_acquire); }

  const LoadedKernel& get(Device device, const DescribeKernel& describe) {
    const trace::Interruption interruption;
    const std::lock_guard lock(mutex_);
    if (const LoadedKernel* kernel = find()) return *kernel;
    if (is_compiling()) return finish(device);
    const CompileRequest request = request_for(device, describe);
    return keep(load(device, KernelNames(request), compile_kernel(request)));
  }

  const LoadedKernel* get_if_ready(Device device, const DescribeKernel& describe) {
    const trace::Interruption interruption;
    const std::lock_guard lock(mutex_);
    if (const LoadedKernel* kernel = find()) return kernel;
    if (is_compiling()) return is_compiled() ? &finish(device) : nullptr;
    CompileRequest request = request_for(device, describe);
    if (const LoadedKernel* kernel = load_known(device, request)) return kernel;
    names_.emplace(request);
    compiling_ = compile_in_background(std::move(request));
    compiled_by_ = HomeProcess();
    return nullptr;
  }

  const LoadedKernel* get_known(Device device, const DescribeKernel& describe) {
    const trace::Interruption interruption;
    const std::lock_guard lock(mutex_);
    if (const LoadedKernel* kernel = find()) return kernel;
    if (is_compiling()) return is_compiled() ? &finish(device) : nullptr;
    return load_known(device, request_for(device, describe));
  }

 private:
  /// What a fork's parent compiles does not come here.
  bool is_compiling() const { return compiling_.valid() && compiled_by_.is_here(); }
  bool is_compiled() const {
    return compiling_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  const LoadedKernel* load_known(Device device, const CompileRequest& request) {
    const std::optional<CompiledKernel> compiled = find_compiled(request);
    return compiled ? &keep(load(device, KernelNames(request), *compiled)) : nullptr;
  }
  const LoadedKernel& finish(Device device) {
    const double seconds = seconds_left();
    if (!wait_interruptibly(compiling_, seconds)) {  // whoever asks next may wait for it
      throw CompilationError(too_late({names_->title, "", ""}, seconds));
    }
    const auto compiling = std::exchange(compiling_, {});  // a failure is not kept
    return keep(load(device, *names_, compiling.get()));
  }
  const LoadedKernel& keep(LoadedKernel kernel) {
    kernel_ = std::move(kernel);
    ready_.store(&*kernel_, std::memory_order_release);
    return *kernel_;
  }

  InterruptibleMutex mutex_{"jit: compiling a kernel"};  ///< held while it is compiled
  std::atomic<const LoadedKernel*> ready_ = nullptr;
  std::optional<LoadedKernel> kernel_;
  std::optional<KernelNames> names_;  ///< of what is being compiled
  std::shared_future<CompiledKernel> compiling_;
  HomeProcess compiled_by_;
};

/// Of one device. Never destroyed: the driver may be gone before static objects are.
struct DeviceKernels {
  ForkMutex mutex;
  std::unordered_map<std::string, std::unique_ptr<Slot>> slots;

  Slot& slot(const std::string& key) {
    const std::lock_guard lock(mutex);
    auto& slot = slots[key];
    if (!slot) slot = std::make_unique<Slot>();
    return *slot;
  }
};

DeviceKernels& kernels_of(Device device) {
  static OnePerDevice<DeviceKernels> all;
  return all.get(device, [] { return new DeviceKernels; });
}

/// Of the key, of this thread's build options, and of a directory of its own for binaries.
Slot& slot_of(Device device, const std::string& key) {
  DeviceKernels& kernels = kernels_of(device);
  std::string build = build_key();
  // What is loaded has been compiled into that directory, or found there.
  const CachePlace& place = backend::execution_options().cache_place;
  if (place.kind == CachePlace::Kind::kOwn) build += cat(" in ", place.directory);
  return build.empty() ? kernels.slot(key) : kernels.slot(key + build);
}

}  // namespace

const LoadedKernel& loaded_kernel(Device device, const std::string& key,
                                  const DescribeKernel& describe) {
  Slot& slot = slot_of(device, key);
  if (const LoadedKernel* kernel = slot.find()) return *kernel;
  return slot.get(device, describe);
}

const LoadedKernel* kernel_if_ready(Device device, const std::string& key,
                                    const DescribeKernel& describe) {
  Slot& slot = slot_of(device, key);
  if (const LoadedKernel* kernel = slot.find()) return kernel;
  return slot.get_if_ready(device, describe);
}

const LoadedKernel* kernel_if_loaded(Device device, const std::string& key, const DescribeKernel&) {
  return slot_of(device, key).find();
}

const LoadedKernel* known_kernel(Device device, const std::string& key,
                                 const DescribeKernel& describe) {
  Slot& slot = slot_of(device, key);
  if (const LoadedKernel* kernel = slot.find()) return kernel;
  return slot.get_known(device, describe);
}

int64_t loaded_kernel_count() { return loaded_count; }

void launch(const LoadedKernel& kernel, LaunchShape shape, const void* arguments, Stream stream) {
  void* parameters[] = {const_cast<void*>(arguments)};
  launch(kernel, shape, std::span<void*>(parameters), stream);
}

void launch(const LoadedKernel& kernel, LaunchShape shape, std::span<void*> parameters,
            Stream stream) {
  const cuda::ContextScope scope(kernel.device);
  if (shape.shared_bytes > kSharedWithoutAsking) {
    cuda::check(cuda::driver().func_set_attribute(kernel.function,
                                                  cuda::FunctionAttribute::kMaxDynamicSharedBytes,
                                                  static_cast<int>(shape.shared_bytes)),
                kernel.title, ": ", shape.shared_bytes, " bytes of shared memory");
  }
  LaunchWatch::note({kernel.digest, shape.grid_x, shape.grid_y, shape.grid_z, shape.threads});
  cuda::Operation operation(kernel.title.c_str(), stream);
  cuda::check(cuda::driver().launch_kernel(kernel.function, shape.grid_x, shape.grid_y,
                                           shape.grid_z, shape.threads, shape.threads_y,
                                           shape.threads_z, shape.shared_bytes,
                                           cuda::handle_of(stream), parameters.data(), nullptr),
              kernel.title.c_str(), ": launch");
  operation.started();
}

}  // namespace cuop::jit
