// The CUDA driver, opened on first use and never linked. Entry points carry NVIDIA's names without
// "cu", in the form that CUDA 12 gives them; every one of them answers a Result.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cuop/backend/cuda/driver_types.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

struct Driver {
  template <class... Arguments>
  using Call = Result (*)(Arguments...);

  int version = 0;  ///< as 13000 for 13.0: the newest CUDA that the driver serves

  Call<Result, const char**> get_error_name = nullptr;
  Call<Result, const char**> get_error_string = nullptr;

  Call<int*> device_get_count = nullptr;
  Call<DeviceId*, int> device_get = nullptr;
  Call<char*, int, DeviceId> device_get_name = nullptr;
  Call<Uuid*, DeviceId> device_get_uuid = nullptr;
  Call<size_t*, DeviceId> device_total_mem = nullptr;
  Call<int*, DeviceAttribute, DeviceId> device_get_attribute = nullptr;
  Call<int*, DeviceId, DeviceId> device_can_access_peer = nullptr;
  Call<ContextHandle*, DeviceId> device_primary_ctx_retain = nullptr;

  Call<ContextHandle> ctx_set_current = nullptr;
  Call<ContextHandle*> ctx_get_current = nullptr;
  Call<> ctx_synchronize = nullptr;
  Call<ContextHandle, unsigned> ctx_enable_peer_access = nullptr;

  Call<StreamHandle*, unsigned, int> stream_create_with_priority = nullptr;
  Call<StreamHandle> stream_synchronize = nullptr;
  Call<StreamHandle> stream_query = nullptr;
  Call<StreamHandle, EventHandle, unsigned> stream_wait_event = nullptr;
  Call<StreamHandle, CaptureStatus*> stream_is_capturing = nullptr;
  Call<StreamHandle, CaptureStatus*, uint64_t*, GraphHandle*, const GraphNodeHandle**, size_t*>
      stream_get_capture_info = nullptr;
  Call<StreamHandle, CaptureMode> stream_begin_capture = nullptr;
  Call<StreamHandle, GraphHandle*> stream_end_capture = nullptr;
  Call<CaptureMode*> thread_exchange_stream_capture_mode = nullptr;

  Call<EventHandle*, unsigned> event_create = nullptr;
  Call<EventHandle> event_destroy = nullptr;
  Call<EventHandle, StreamHandle> event_record = nullptr;
  Call<EventHandle> event_query = nullptr;
  Call<EventHandle> event_synchronize = nullptr;
  Call<float*, EventHandle, EventHandle> event_elapsed_time = nullptr;

  Call<DevicePointer, DevicePointer, size_t, StreamHandle> memcpy_async = nullptr;
  Call<DevicePointer, ContextHandle, DevicePointer, ContextHandle, size_t, StreamHandle>
      memcpy_peer_async = nullptr;
  Call<DevicePointer, unsigned char, size_t, StreamHandle> memset_d8_async = nullptr;
  Call<DevicePointer, unsigned short, size_t, StreamHandle> memset_d16_async = nullptr;
  Call<DevicePointer, unsigned, size_t, StreamHandle> memset_d32_async = nullptr;
  Call<DevicePointer, size_t, unsigned, size_t, size_t, StreamHandle> memset_d2d32_async = nullptr;

  Call<size_t*, size_t*> mem_get_info = nullptr;
  Call<DevicePointer*, size_t> mem_alloc = nullptr;
  Call<DevicePointer> mem_free = nullptr;
  Call<DevicePointer*, size_t, StreamHandle> mem_alloc_async = nullptr;
  Call<DevicePointer, StreamHandle> mem_free_async = nullptr;
  Call<void**, size_t, unsigned> mem_host_alloc = nullptr;
  Call<void*> mem_free_host = nullptr;
  Call<DevicePointer*, size_t, size_t, DevicePointer, uint64_t> mem_address_reserve = nullptr;
  Call<DevicePointer, size_t> mem_address_free = nullptr;
  Call<MemoryHandle*, size_t, const AllocationProperties*, uint64_t> mem_create = nullptr;
  Call<MemoryHandle> mem_release = nullptr;
  Call<DevicePointer, size_t, size_t, MemoryHandle, uint64_t> mem_map = nullptr;
  Call<DevicePointer, size_t> mem_unmap = nullptr;
  Call<DevicePointer, size_t, const AccessDescription*, size_t> mem_set_access = nullptr;
  Call<size_t*, const AllocationProperties*, Granularity> mem_get_allocation_granularity = nullptr;
  Call<MemoryPoolHandle*, DeviceId> device_get_default_mem_pool = nullptr;
  Call<MemoryPoolHandle, PoolAttribute, void*> mem_pool_get_attribute = nullptr;
  Call<MemoryPoolHandle, PoolAttribute, void*> mem_pool_set_attribute = nullptr;
  Call<MemoryPoolHandle, size_t> mem_pool_trim_to = nullptr;
  Call<MemoryPoolHandle, const AccessDescription*, size_t> mem_pool_set_access = nullptr;
  Call<unsigned, PointerAttribute*, void**, DevicePointer> pointer_get_attributes = nullptr;

  Call<ModuleHandle*, const void*, unsigned, JitOption*, void**> module_load_data_ex = nullptr;
  Call<FunctionHandle*, ModuleHandle, const char*> module_get_function = nullptr;
  Call<int*, FunctionAttribute, FunctionHandle> func_get_attribute = nullptr;
  Call<FunctionHandle, FunctionAttribute, int> func_set_attribute = nullptr;
  Call<FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
       StreamHandle, void**, void**>
      launch_kernel = nullptr;

  Call<GraphExecHandle*, GraphHandle, uint64_t> graph_instantiate = nullptr;
  Call<GraphExecHandle, StreamHandle> graph_launch = nullptr;
  Call<GraphExecHandle> graph_exec_destroy = nullptr;
  Call<GraphHandle> graph_destroy = nullptr;
  Call<GraphHandle, GraphNodeHandle*, size_t*> graph_get_nodes = nullptr;
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
