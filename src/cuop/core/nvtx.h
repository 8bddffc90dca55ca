// Ranges for profilers from outside (Nsight Systems, Nsight Compute) by the protocol of NVTX 3: the
// profiler names a library in CUOP_NVTX_LIBRARY (NVTX_INJECTION64_PATH, which it sets itself), and
// that library fills in the functions that it wants to be called. Source: NVIDIA's NVTX, version 3.
#pragma once

#include "cuop/core/dynlib.h"

namespace cuop::nvtx {

/// Whether a library was named and took the connection; opened by the first call. One that was
/// named and cannot be used is said once on stderr.
bool is_attached();
/// Opens a range of this thread, and closes the innermost one. Nothing without a profiler.
void push(const char* name);
void pop();

/// The same for a given library, for tests: false when it does not speak the protocol or declines.
bool attach(const DynLib& library);

}  // namespace cuop::nvtx
