// Entry points about the driver itself, its devices and their contexts.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/simulator/capture.h"
#include "tests/simulator/entry.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/settings.h"

namespace cuop::simulator {

namespace {

constexpr int kVersion = 13000;

std::atomic<pid_t> process = 0;

/// Says so in the end, to those who look whether a process that ended waited for it.
void take_time_to_start() {
  if (settings().start_ms == 0) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(settings().start_ms));
  std::fputs("simulated GPU: started\n", stderr);
}

struct ErrorText {
  Result result;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {Result::kSuccess, "CUDA_SUCCESS", "no error"},
    {Result::kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {Result::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {Result::kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {Result::kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {Result::kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {Result::kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {Result::kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {Result::kNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image for the device"},
    {Result::kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {Result{401}, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in this state"},
    {Result::kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {Result::kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {Result::kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {Result::kLaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out and was terminated"},
    {Result::kAssert, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {Result{716}, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {Result::kPeerAccessAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {Result::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {Result::kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {Result::kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {Result::kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {Result{903}, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the stream in which it began"},
    {Result{904}, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {Result{905}, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {Result::kGraphExecUpdateFailure, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
     "the graph update was not performed because it included changes which violated constraints"},
    {Result::kUnknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

Result find_text(Result result, const char** to, const char* ErrorText::*which) {
  for (const ErrorText& error : kErrors) {
    if (error.result != result) continue;
    *to = error.*which;
    return Result::kSuccess;
  }
  *to = nullptr;
  return Result::kInvalidValue;
}

Result write_text(char* to, int room, const std::string& text) {
  std::snprintf(to, static_cast<size_t>(room), "%s", text.c_str());
  return Result::kSuccess;
}

template <class Call>
Result about(DeviceId device, Call&& call) {
  return answered([&] { return is_device(device) ? call() : Result::kInvalidDevice; });
}

}  // namespace

void set_initialised() { process = getpid(); }
Result check_process() { return process == getpid() ? Result::kSuccess : Result::kNotInitialized; }

CUOP_SIMULATOR_ENTRY Result cuGetProcAddress_v2(const char* symbol, void** entry, int, uint64_t,
                                                int* status) {
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&cuGetProcAddress_v2), &own);
  void* library = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *entry = library != nullptr ? dlsym(library, symbol) : nullptr;
  if (status != nullptr) *status = *entry != nullptr ? 0 : 1;
  return *entry != nullptr ? Result::kSuccess : Result::kNotFound;
}

CUOP_SIMULATOR_ENTRY Result cuDriverGetVersion(int* version) {
  *version = kVersion;
  return Result::kSuccess;
}
CUOP_SIMULATOR_ENTRY Result cuInit(unsigned flags) {
  if (flags != 0) return Result::kInvalidValue;
  take_time_to_start();
  if (const char* text = std::getenv("SIM_INIT_RESULT"))
    return static_cast<Result>(std::atoi(text));
  const pid_t first = process;
  if (first != 0 && first != getpid()) return Result::kNotInitialized;
  if (device_count() == 0) return Result::kNoDevice;
  set_initialised();
  return Result::kSuccess;
}
CUOP_SIMULATOR_ENTRY Result cuGetErrorName(Result result, const char** name) {
  return find_text(result, name, &ErrorText::name);
}
CUOP_SIMULATOR_ENTRY Result cuGetErrorString(Result result, const char** text) {
  return find_text(result, text, &ErrorText::text);
}

CUOP_SIMULATOR_ENTRY Result cuDeviceGetCount(int* count) {
  return answered([&] {
    *count = device_count();
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceGet(DeviceId* device, int ordinal) {
  return about(ordinal, [&] {
    *device = ordinal;
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceGetName(char* name, int room, DeviceId device) {
  return about(device, [&] { return write_text(name, room, "simulated GPU"); });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceGetUuid(Uuid* uuid, DeviceId device) {
  return about(device, [&] {
    *uuid = {};
    uuid->bytes[15] = static_cast<unsigned char>(device);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceGetPCIBusId(char* id, int room, DeviceId device) {
  return about(device, [&] {
    return write_text(id, room, "0000:0" + std::to_string(device + 1) + ":00.0");
  });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceTotalMem(size_t* bytes, DeviceId device) {
  return about(device, [&] {
    *bytes = budget_of(device).total;
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceGetAttribute(int* value, DeviceAttribute which,
                                                 DeviceId device) {
  return about(device, [&] {
    *value = attribute(which, device);
    return *value >= 0 ? Result::kSuccess : Result::kInvalidValue;
  });
}
CUOP_SIMULATOR_ENTRY Result cuDeviceCanAccessPeer(int* can, DeviceId device, DeviceId peer) {
  return about(device, [&] {
    if (!is_device(peer)) return Result::kInvalidDevice;
    *can = device != peer ? 1 : 0;
    return Result::kSuccess;
  });
}

CUOP_SIMULATOR_ENTRY Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceId device) {
  take_time_to_start();
  return about(device, [&] {
    *context = context_of(device);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuDevicePrimaryCtxRelease(DeviceId device) {
  return about(device, [] { return Result::kSuccess; });
}
CUOP_SIMULATOR_ENTRY Result cuDevicePrimaryCtxGetState(DeviceId device, unsigned* flags,
                                                       int* is_active) {
  return about(device, [&] {
    *flags = 0;
    *is_active = 1;
    return Result::kSuccess;
  });
}

CUOP_SIMULATOR_ENTRY Result cuCtxSetCurrent(ContextHandle context) {
  return answered([&] {
    const int device = context == nullptr ? -1 : device_of(context);
    if (context != nullptr && device < 0) return Result::kInvalidContext;
    set_current_device(device);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuCtxGetCurrent(ContextHandle* context) {
  return answered([&] {
    *context = current_device() < 0 ? nullptr : context_of(current_device());
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuCtxSynchronize() {
  return in_context([&](int device) {
    const Result allowed = check_no_strict_capture();
    if (allowed != Result::kSuccess) return allowed;
    const Result asked = answer_of(Asked::kWait, device);
    if (asked != Result::kSuccess) return asked;
    for (const Mark& mark : last_marks(device, false)) wait_for(mark);
    return error_of(device);
  });
}
CUOP_SIMULATOR_ENTRY Result cuCtxEnablePeerAccess(ContextHandle peer, unsigned flags) {
  return in_context([&](int device) {
    const int owner = device_of(peer);
    if (flags != 0) return Result::kInvalidValue;
    if (owner < 0 || owner == device) return Result::kInvalidDevice;
    return enable_peer(device, owner) ? Result::kSuccess : Result::kPeerAccessAlreadyEnabled;
  });
}
CUOP_SIMULATOR_ENTRY Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&](int) {
    *least = 0;
    *greatest = -5;
    return Result::kSuccess;
  });
}

}  // namespace cuop::simulator
