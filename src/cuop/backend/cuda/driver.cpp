#include "cuop/backend/cuda/driver.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "cuop/backend/cuda/recent_operations.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/device.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/memory/host_memory.h"

namespace cuop::backend::cuda {

namespace {

constexpr int kOldestVersion = 12000;
constexpr int64_t kFewestAddresses = int64_t{8} << 30;
constexpr const char* kAdvice = "; use device 'cpu', or set CUOP_DEVICE=cpu to make it the default";

/// Asks the driver for the form of an entry point that a CUDA version has given it.
class Loader {
 public:
  explicit Loader(const DynLib& library)
      : get_(reinterpret_cast<Get>(library.find("cuGetProcAddress_v2"))) {}
  bool is_usable() const { return get_ != nullptr; }
  const std::string& missing() const { return missing_; }

  template <class... Arguments>
  void bind(Result (*&entry)(Arguments...), const char* name, int version) {
    void* found = nullptr;
    int status = 0;
    if (get_(name, &found, version, 0, &status) != Result::kSuccess || found == nullptr) {
      missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
      return;
    }
    entry = reinterpret_cast<Result (*)(Arguments...)>(found);
  }

 private:
  using Get = Result (*)(const char* symbol, void** entry, int version, uint64_t flags,
                         int* status);
  Get get_;
  std::string missing_;
};

void bind_devices(Loader& load, Driver& d) {
  load.bind(d.get_error_name, "cuGetErrorName", 6000);
  load.bind(d.get_error_string, "cuGetErrorString", 6000);
  load.bind(d.device_get_count, "cuDeviceGetCount", 2000);
  load.bind(d.device_get, "cuDeviceGet", 2000);
  load.bind(d.device_get_name, "cuDeviceGetName", 2000);
  load.bind(d.device_get_uuid, "cuDeviceGetUuid", 11040);
  load.bind(d.device_total_mem, "cuDeviceTotalMem", 3020);
  load.bind(d.device_get_attribute, "cuDeviceGetAttribute", 2000);
  load.bind(d.device_can_access_peer, "cuDeviceCanAccessPeer", 4000);
  load.bind(d.device_primary_ctx_retain, "cuDevicePrimaryCtxRetain", 7000);
  load.bind(d.ctx_set_current, "cuCtxSetCurrent", 4000);
  load.bind(d.ctx_get_current, "cuCtxGetCurrent", 4000);
  load.bind(d.ctx_synchronize, "cuCtxSynchronize", 2000);
  load.bind(d.ctx_enable_peer_access, "cuCtxEnablePeerAccess", 4000);
}

void bind_streams(Loader& load, Driver& d) {
  load.bind(d.stream_create_with_priority, "cuStreamCreateWithPriority", 5050);
  load.bind(d.stream_synchronize, "cuStreamSynchronize", 2000);
  load.bind(d.stream_query, "cuStreamQuery", 2000);
  load.bind(d.stream_wait_event, "cuStreamWaitEvent", 3020);
  load.bind(d.stream_is_capturing, "cuStreamIsCapturing", 10000);
  load.bind(d.stream_get_capture_info, "cuStreamGetCaptureInfo", 11030);
  load.bind(d.stream_begin_capture, "cuStreamBeginCapture", 10010);
  load.bind(d.stream_end_capture, "cuStreamEndCapture", 10000);
  load.bind(d.thread_exchange_stream_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010);
  load.bind(d.event_create, "cuEventCreate", 2000);
  load.bind(d.event_destroy, "cuEventDestroy", 4000);
  load.bind(d.event_record, "cuEventRecord", 2000);
  load.bind(d.event_query, "cuEventQuery", 2000);
  load.bind(d.event_synchronize, "cuEventSynchronize", 2000);
  load.bind(d.event_elapsed_time, "cuEventElapsedTime", 2000);
}

void bind_memory(Loader& load, Driver& d) {
  load.bind(d.memcpy_async, "cuMemcpyAsync", 4000);
  load.bind(d.memcpy_peer_async, "cuMemcpyPeerAsync", 4000);
  load.bind(d.memset_d8_async, "cuMemsetD8Async", 3020);
  load.bind(d.memset_d16_async, "cuMemsetD16Async", 3020);
  load.bind(d.memset_d32_async, "cuMemsetD32Async", 3020);
  load.bind(d.memset_d2d32_async, "cuMemsetD2D32Async", 3020);
  load.bind(d.mem_get_info, "cuMemGetInfo", 3020);
  load.bind(d.mem_alloc, "cuMemAlloc", 3020);
  load.bind(d.mem_free, "cuMemFree", 3020);
  load.bind(d.mem_alloc_async, "cuMemAllocAsync", 11020);
  load.bind(d.mem_free_async, "cuMemFreeAsync", 11020);
  load.bind(d.mem_host_alloc, "cuMemHostAlloc", 2020);
  load.bind(d.mem_free_host, "cuMemFreeHost", 2000);
  load.bind(d.mem_address_reserve, "cuMemAddressReserve", 10020);
  load.bind(d.mem_address_free, "cuMemAddressFree", 10020);
  load.bind(d.mem_create, "cuMemCreate", 10020);
  load.bind(d.mem_release, "cuMemRelease", 10020);
  load.bind(d.mem_map, "cuMemMap", 10020);
  load.bind(d.mem_unmap, "cuMemUnmap", 10020);
  load.bind(d.mem_set_access, "cuMemSetAccess", 10020);
  load.bind(d.mem_get_allocation_granularity, "cuMemGetAllocationGranularity", 10020);
  load.bind(d.device_get_default_mem_pool, "cuDeviceGetDefaultMemPool", 11020);
  load.bind(d.mem_pool_get_attribute, "cuMemPoolGetAttribute", 11020);
  load.bind(d.mem_pool_set_attribute, "cuMemPoolSetAttribute", 11020);
  load.bind(d.mem_pool_trim_to, "cuMemPoolTrimTo", 11020);
  load.bind(d.mem_pool_set_access, "cuMemPoolSetAccess", 11020);
  load.bind(d.pointer_get_attributes, "cuPointerGetAttributes", 7000);
}

void bind_kernels(Loader& load, Driver& d) {
  load.bind(d.module_load_data_ex, "cuModuleLoadDataEx", 2010);
  load.bind(d.module_get_function, "cuModuleGetFunction", 2000);
  load.bind(d.func_get_attribute, "cuFuncGetAttribute", 2020);
  load.bind(d.func_set_attribute, "cuFuncSetAttribute", 9000);
  load.bind(d.launch_kernel, "cuLaunchKernel", 4000);
  load.bind(d.graph_instantiate, "cuGraphInstantiateWithFlags", 11040);
  load.bind(d.graph_launch, "cuGraphLaunch", 10000);
  load.bind(d.graph_exec_destroy, "cuGraphExecDestroy", 10000);
  load.bind(d.graph_destroy, "cuGraphDestroy", 10000);
  load.bind(d.graph_get_nodes, "cuGraphGetNodes", 10000);
}

/// Why the driver cannot be used: "" when it can.
struct Absence {
  std::string reason = {};
  bool is_broken = false;  ///< a driver is there, and something is wrong with it
};

struct Opened {
  Driver driver;
  Absence absence;
};

std::string version_text(int version) { return cat(version / 1000, '.', version % 1000 / 10); }

Absence broken(std::string reason) { return {std::move(reason), true}; }

Absence open(Driver& d) {
  const std::string& wanted = env().device.value;
  if (wanted != "auto" && parse_device(wanted).is_cpu()) {
    return {"CUOP_DEVICE=cpu keeps this process on the CPU; unset it to use a GPU"};
  }
  const DynLib library("CUDA driver", {"libcuda.so.1"});  // DynLib never closes what it opened
  if (!library.is_loaded()) {
    return {cat("the NVIDIA driver was not found (", library.reason(), ")", kAdvice)};
  }
  const auto get_version = reinterpret_cast<Result (*)(int*)>(library.find("cuDriverGetVersion"));
  if (get_version != nullptr) get_version(&d.version);
  Loader load(library);
  if (!load.is_usable() || d.version < kOldestVersion) {
    return broken(cat("the NVIDIA driver is too old: it serves CUDA ", version_text(d.version),
                      ", cuOP needs ", version_text(kOldestVersion), " or later", kAdvice));
  }
  bind_devices(load, d);
  bind_streams(load, d);
  bind_memory(load, d);
  bind_kernels(load, d);
  if (!load.missing().empty()) {
    return broken(cat("the NVIDIA driver for CUDA ", version_text(d.version), " lacks ",
                      load.missing(), kAdvice));
  }
  // CUDA reserves addresses for all memory of the machine and its devices. Where it cannot, it
  // fails and keeps what it took, of which the process then has too few.
  if (const int64_t addresses = memory::address_space_limit(); addresses < kFewestAddresses) {
    return broken(cat("the NVIDIA driver does not start in ", format_bytes(addresses),
                      " of addresses (ulimit -v), it takes more than ",
                      format_bytes(kFewestAddresses), kAdvice));
  }
  const auto init = library.require_function<Result(unsigned)>("cuInit");
  if (const Result result = init(0); result != Result::kSuccess) {
    if (result == Result::kNoDevice) {
      const std::string& visible = env().cuda_visible_devices.value;
      return {cat("the NVIDIA driver sees no device; CUDA_VISIBLE_DEVICES",
                  visible.empty() ? "" : "=" + visible, " may hide them", kAdvice)};
    }
    const char* name = "an unknown error";
    d.get_error_name(result, &name);
    return broken(
        cat("the NVIDIA driver is there but did not start (cuInit answered ", name, ")", kAdvice));
  }
  return {};
}

const Opened& opened() {
  // Never destroyed: threads may compute while the process ends.
  static const Opened& result = *[] {
    auto* made = new Opened;
    made->absence = open(made->driver);
    return made;
  }();
  return result;
}

pid_t first_process() {
  static const pid_t process = getpid();
  return process;
}

std::string hint_about_failure() {
  const std::string recent = recently_started();
  return cat("; an earlier operation failed and this process cannot use the device any more",
             recent.empty() ? "" : cat(" (started last: ", recent, ")"),
             ": start it again, with CUOP_CUDA_BLOCKING=1 to learn which operation it was");
}

/// Whether work that was started earlier has failed, after which nothing runs any more.
bool is_failure(Result result) {
  constexpr Result kFailures[] = {
      Result::kEccUncorrectable,
      Result::kNvlinkUncorrectable,
      Result::kIllegalAddress,
      Result::kLaunchTimeout,
      Result::kAssert,
      Result::kHardwareStackError,
      Result{715},  // illegal instruction
      Result{716},  // misaligned address
      Result{717},  // invalid address space
      Result{718},  // invalid program counter
      Result::kLaunchFailed,
  };
  return std::ranges::find(kFailures, result) != std::end(kFailures);
}

/// What the reader of a message can do about it; "" when the name says it all.
std::string hint(Result result) {
  switch (result) {
    case Result::kNotInitialized:
      return getpid() != first_process()
                 ? "; CUDA cannot be used by a process that was forked after its first use: start "
                   "it with the method 'spawn'"
                 : "";
    case Result::kDeinitialized:
      return "; the process is ending";
    case Result::kSystemDriverMismatch:
    case Result::kRequiresNewerDriver:
    case Result::kCompatNotSupported:
    case Result::kUnsupportedPtxVersion:
      return "; a newer NVIDIA driver is needed";
    default:
      return is_failure(result) ? hint_about_failure() : "";
  }
}

}  // namespace

const Driver* find_driver() {
  const Opened& result = opened();
  first_process();
  return result.absence.reason.empty() ? &result.driver : nullptr;
}

const std::string& driver_absence() { return opened().absence.reason; }

bool is_driver_broken() { return opened().absence.is_broken; }

const Driver& driver() {
  const Driver* found = find_driver();
  if (found == nullptr) throw DeviceError(cat("cuda: ", driver_absence()));
  return *found;
}

std::string describe(Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (const Driver* found = find_driver()) {
    found->get_error_name(result, &name);
    found->get_error_string(result, &text);
  }
  const std::string number = cat("CUDA error ", static_cast<int>(result));
  return cat(name != nullptr ? name : number, text != nullptr ? ": " : "",
             text != nullptr ? text : "");
}

void raise(Result result, const std::string& what) {
  const std::string message = cat(what, ": ", describe(result), hint(result));
  switch (result) {
    case Result::kOutOfMemory:
      throw MemoryError(message);
    case Result::kNotInitialized:
    case Result::kDeinitialized:
    case Result::kStubLibrary:
    case Result::kRequiresNewerDriver:
    case Result::kDeviceUnavailable:
    case Result::kNoDevice:
    case Result::kInvalidDevice:
    case Result::kSystemNotReady:
    case Result::kSystemDriverMismatch:
    case Result::kCompatNotSupported:
      throw DeviceError(message);
    case Result::kInvalidImage:
    case Result::kNoBinaryForGpu:
    case Result::kInvalidPtx:
    case Result::kJitCompilerNotFound:
    case Result::kUnsupportedPtxVersion:
      throw CompilationError(message);
    default:
      throw ExecutionError(message);
  }
}

}  // namespace cuop::backend::cuda
