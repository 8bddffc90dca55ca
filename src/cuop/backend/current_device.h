// The device on which a thread makes its tensors: the one that it has chosen, or else the default:
// CUOP_DEVICE's, else the first GPU that can be used, else the CPU. Of the ranks of a host each
// looks from another GPU on, and takes that one for "cuda" without a number.
#pragma once

#include <string>

#include "cuop/core/device.h"

namespace cuop::backend {

/// What set_current_device chose for this thread, else the default device.
Device current_device();
/// DeviceError when the device cannot be used.
void set_current_device(Device device);
/// What "cuda" without a number is on this thread: the GPU that it has chosen, else the one that
/// this process prefers, of a process alone the first, whether or not it is there.
Device current_gpu();

struct DefaultDevice {
  Device device;
  std::string reason;  ///< why it is this one
};

/// Found out by the first call, which is the first to look for a GPU, and the same ever after. With
/// CUOP_DEVICE unset a machine without a GPU is on the CPU without a word; a GPU that is there and
/// cannot be used (a driver that does not start, no compiler for kernels) is passed over with one
/// warning. DeviceError when CUOP_DEVICE names a device that cannot be used.
const DefaultDevice& default_device();

/// Takes the function that returns the number of the GPU that this process should prefer, counted
/// round where there are fewer: processes that share a host choose different ones. A layer above
/// knows them.
void set_gpu_preference(int (*preferred)());

/// Takes the function that says why no kernels can be made for a GPU, "" when they can: the
/// compiler stands in a layer above, and a GPU without one is of no use as a default.
void set_kernel_check(std::string (*absence_of_kernels)(Device));

}  // namespace cuop::backend
