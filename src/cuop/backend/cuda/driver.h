// The CUDA driver, opened on first use and never linked. Entry points carry NVIDIA's names without
// "cu", in the form that CUDA 12 gives them; every one of them returns a Result.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/driver_types.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

/// An entry point: its name, the version of CUDA that gave it its form, and where it lies.
struct EntryPoint {
  const char* name;
  int version;
  void* address = nullptr;
};

template <class... Arguments>
class Call : private EntryPoint {
 public:
  Call(std::vector<EntryPoint*>& entries, const char* cuda_name, int cuda_version)
      : EntryPoint{cuda_name, cuda_version} {
    entries.push_back(this);
  }
  Result operator()(Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Arguments...)>(address)(arguments...);
  }
};

struct Driver : NonCopyable {
  int version = 0;                   ///< as 13000 for 13.0: the newest CUDA that the driver serves
  std::vector<EntryPoint*> entries;  ///< those below

  Call<Result, const char**> get_error_name{entries, "cuGetErrorName", 6000};
  Call<Result, const char**> get_error_string{entries, "cuGetErrorString", 6000};

  Call<int*> device_get_count{entries, "cuDeviceGetCount", 2000};
  Call<DeviceId*, int> device_get{entries, "cuDeviceGet", 2000};
  Call<char*, int, DeviceId> device_get_name{entries, "cuDeviceGetName", 2000};
  Call<Uuid*, DeviceId> device_get_uuid{entries, "cuDeviceGetUuid", 11040};
  Call<size_t*, DeviceId> device_total_mem{entries, "cuDeviceTotalMem", 3020};
  Call<int*, DeviceAttribute, DeviceId> device_get_attribute{entries, "cuDeviceGetAttribute", 2000};
  Call<int*, DeviceId, DeviceId> device_can_access_peer{entries, "cuDeviceCanAccessPeer", 4000};
  Call<ContextHandle*, DeviceId> device_primary_ctx_retain{entries, "cuDevicePrimaryCtxRetain",
                                                           7000};

  Call<ContextHandle> ctx_set_current{entries, "cuCtxSetCurrent", 4000};
  Call<ContextHandle*> ctx_get_current{entries, "cuCtxGetCurrent", 4000};
  Call<> ctx_synchronize{entries, "cuCtxSynchronize", 2000};
  Call<ContextHandle, unsigned> ctx_enable_peer_access{entries, "cuCtxEnablePeerAccess", 4000};

  Call<StreamHandle*, unsigned, int> stream_create_with_priority{
      entries, "cuStreamCreateWithPriority", 5050};
  Call<StreamHandle> stream_synchronize{entries, "cuStreamSynchronize", 2000};
  Call<StreamHandle> stream_query{entries, "cuStreamQuery", 2000};
  Call<StreamHandle, EventHandle, unsigned> stream_wait_event{entries, "cuStreamWaitEvent", 3020};
  Call<StreamHandle, DevicePointer, uint32_t, unsigned> stream_wait_value{
      entries, "cuStreamWaitValue32", 11070};
  Call<StreamHandle, DevicePointer, uint32_t, unsigned> stream_write_value{
      entries, "cuStreamWriteValue32", 11070};
  Call<StreamHandle, CaptureStatus*> stream_is_capturing{entries, "cuStreamIsCapturing", 10000};
  Call<StreamHandle, CaptureStatus*, uint64_t*, GraphHandle*, const GraphNodeHandle**, size_t*>
      stream_get_capture_info{entries, "cuStreamGetCaptureInfo", 11030};
  Call<StreamHandle, CaptureMode> stream_begin_capture{entries, "cuStreamBeginCapture", 10010};
  Call<StreamHandle, GraphHandle*> stream_end_capture{entries, "cuStreamEndCapture", 10000};
  Call<CaptureMode*> thread_exchange_stream_capture_mode{
      entries, "cuThreadExchangeStreamCaptureMode", 10010};

  Call<EventHandle*, unsigned> event_create{entries, "cuEventCreate", 2000};
  Call<EventHandle> event_destroy{entries, "cuEventDestroy", 4000};
  Call<EventHandle, StreamHandle> event_record{entries, "cuEventRecord", 2000};
  Call<EventHandle> event_query{entries, "cuEventQuery", 2000};
  Call<EventHandle> event_synchronize{entries, "cuEventSynchronize", 2000};
  Call<float*, EventHandle, EventHandle> event_elapsed_time{entries, "cuEventElapsedTime", 2000};

  Call<DevicePointer, DevicePointer, size_t, StreamHandle> memcpy_async{entries, "cuMemcpyAsync",
                                                                        4000};
  Call<DevicePointer, ContextHandle, DevicePointer, ContextHandle, size_t, StreamHandle>
      memcpy_peer_async{entries, "cuMemcpyPeerAsync", 4000};
  Call<const Copy2d*, StreamHandle> memcpy_2d_async{entries, "cuMemcpy2DAsync", 3020};
  Call<DevicePointer, unsigned char, size_t, StreamHandle> memset_d8_async{entries,
                                                                           "cuMemsetD8Async", 3020};
  Call<DevicePointer, unsigned short, size_t, StreamHandle> memset_d16_async{
      entries, "cuMemsetD16Async", 3020};
  Call<DevicePointer, unsigned, size_t, StreamHandle> memset_d32_async{entries, "cuMemsetD32Async",
                                                                       3020};
  Call<DevicePointer, size_t, unsigned, size_t, size_t, StreamHandle> memset_d2d32_async{
      entries, "cuMemsetD2D32Async", 3020};

  Call<size_t*, size_t*> mem_get_info{entries, "cuMemGetInfo", 3020};
  Call<DevicePointer*, size_t> mem_alloc{entries, "cuMemAlloc", 3020};
  Call<DevicePointer> mem_free{entries, "cuMemFree", 3020};
  Call<DevicePointer*, size_t, StreamHandle> mem_alloc_async{entries, "cuMemAllocAsync", 11020};
  Call<DevicePointer, StreamHandle> mem_free_async{entries, "cuMemFreeAsync", 11020};
  Call<void**, size_t, unsigned> mem_host_alloc{entries, "cuMemHostAlloc", 2020};
  Call<void*> mem_free_host{entries, "cuMemFreeHost", 2000};
  Call<void*, size_t, unsigned> mem_host_register{entries, "cuMemHostRegister", 6050};
  Call<void*> mem_host_unregister{entries, "cuMemHostUnregister", 4000};
  Call<DevicePointer*, void*, unsigned> mem_host_get_device_pointer{
      entries, "cuMemHostGetDevicePointer", 3020};
  Call<DevicePointer*, size_t, size_t, DevicePointer, uint64_t> mem_address_reserve{
      entries, "cuMemAddressReserve", 10020};
  Call<DevicePointer, size_t> mem_address_free{entries, "cuMemAddressFree", 10020};
  Call<MemoryHandle*, size_t, const AllocationProperties*, uint64_t> mem_create{
      entries, "cuMemCreate", 10020};
  Call<MemoryHandle> mem_release{entries, "cuMemRelease", 10020};
  Call<DevicePointer, size_t, size_t, MemoryHandle, uint64_t> mem_map{entries, "cuMemMap", 10020};
  Call<DevicePointer, size_t> mem_unmap{entries, "cuMemUnmap", 10020};
  Call<DevicePointer, size_t, const AccessDescription*, size_t> mem_set_access{
      entries, "cuMemSetAccess", 10020};
  Call<MemoryHandle*, void*> mem_retain_allocation_handle{entries, "cuMemRetainAllocationHandle",
                                                          11000};
  Call<void*, MemoryHandle, ShareableHandle, uint64_t> mem_export_to_shareable_handle{
      entries, "cuMemExportToShareableHandle", 10020};
  Call<MemoryHandle*, void*, ShareableHandle> mem_import_from_shareable_handle{
      entries, "cuMemImportFromShareableHandle", 10020};
  Call<size_t*, const AllocationProperties*, Granularity> mem_get_allocation_granularity{
      entries, "cuMemGetAllocationGranularity", 10020};
  Call<MemoryPoolHandle*, DeviceId> device_get_default_mem_pool{entries,
                                                                "cuDeviceGetDefaultMemPool", 11020};
  Call<MemoryPoolHandle, PoolAttribute, void*> mem_pool_get_attribute{
      entries, "cuMemPoolGetAttribute", 11020};
  Call<MemoryPoolHandle, PoolAttribute, void*> mem_pool_set_attribute{
      entries, "cuMemPoolSetAttribute", 11020};
  Call<MemoryPoolHandle, size_t> mem_pool_trim_to{entries, "cuMemPoolTrimTo", 11020};
  Call<MemoryPoolHandle, const AccessDescription*, size_t> mem_pool_set_access{
      entries, "cuMemPoolSetAccess", 11020};
  Call<unsigned, PointerAttribute*, void**, DevicePointer> pointer_get_attributes{
      entries, "cuPointerGetAttributes", 7000};

  Call<ModuleHandle*, const void*, unsigned, JitOption*, void**> module_load_data_ex{
      entries, "cuModuleLoadDataEx", 2010};
  Call<FunctionHandle*, ModuleHandle, const char*> module_get_function{entries,
                                                                       "cuModuleGetFunction", 2000};
  Call<int*, FunctionAttribute, FunctionHandle> func_get_attribute{entries, "cuFuncGetAttribute",
                                                                   2020};
  Call<FunctionHandle, FunctionAttribute, int> func_set_attribute{entries, "cuFuncSetAttribute",
                                                                  9000};
  Call<FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
       StreamHandle, void**, void**>
      launch_kernel{entries, "cuLaunchKernel", 4000};

  Call<GraphExecHandle*, GraphHandle, uint64_t> graph_instantiate{
      entries, "cuGraphInstantiateWithFlags", 11040};
  Call<GraphExecHandle, StreamHandle> graph_launch{entries, "cuGraphLaunch", 10000};
  Call<GraphExecHandle> graph_exec_destroy{entries, "cuGraphExecDestroy", 10000};
  Call<GraphHandle> graph_destroy{entries, "cuGraphDestroy", 10000};
  Call<GraphHandle, GraphNodeHandle*, size_t*> graph_get_nodes{entries, "cuGraphGetNodes", 10000};
};

/// The driver, opened and initialised by the first call. DeviceError that says what is missing and
/// how to use the CPU when there is none.
const Driver& driver();
/// The driver, or null when this process has none.
const Driver* find_driver();
/// Why there is no driver or no device of it for this process; "" when there is one.
/// CUOP_DEVICE=cpu is such a reason, and then nothing is opened.
const std::string& driver_absence();
/// Whether it is absent although one is installed: too old, incomplete or failing to start. That
/// there is none, that it shows no device or that none is wanted is no defect.
bool is_driver_broken();

/// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
std::string describe(Result result);
/// Throws the error of the kind that the result stands for: MemoryError, DeviceError,
/// CompilationError or ExecutionError, as "what: CUDA_ERROR_...: text".
[[noreturn]] void raise(Result result, const std::string& what);

/// Throws unless the call succeeded; the parts name the operation: check(r, "softmax: launch").
template <class... Parts>
void check(Result result, const Parts&... what) {
  if (result != Result::kSuccess) [[unlikely]]
    raise(result, cat(what...));
}

}  // namespace cuop::backend::cuda
