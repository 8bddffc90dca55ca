// The simulated devices: what they say about themselves, which one a thread uses, and whether one
// was lost to an error.
#pragma once

#include <string>

#include "cuop/backend/cuda/driver_types.h"
#include "tests/simulator/address_space.h"

namespace cuop::simulator {

using backend::cuda::ContextHandle;
using backend::cuda::DeviceAttribute;
using backend::cuda::Result;

/// SIM_DEVICES, one by default.
int device_count();
bool is_device(int device);
/// The value, or -1 for an attribute that the simulator does not know.
int attribute(DeviceAttribute which, int device);
int capability();  ///< as 90

ContextHandle context_of(int device);
/// -1 when the handle is no context.
int device_of(ContextHandle context);

/// The device of the calling thread's context; -1 when it has none.
int current_device();
void set_current_device(int device);

/// Ends the use of a device: every later call for it answers the error.
void lose(int device, Result error);
bool is_lost(int device);
/// kSuccess or the error by which it was lost.
Result error_of(int device);

/// Devices whose kernels reach what `owner` allocates: itself and those with peer access to it.
unsigned reached_by(int owner);
/// Whether it was new.
bool enable_peer(int device, int owner);

}  // namespace cuop::simulator
