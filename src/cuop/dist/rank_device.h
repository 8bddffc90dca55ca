// Which device is a rank's own.
#pragma once

#include "cuop/core/tensor.h"
#include "cuop/dist/comm/communicator.h"

namespace cuop::dist {

/// Where this rank keeps its parts of tensors that somebody has on a GPU (`on_gpu`) or on the host.
/// On GPUs it is the current device, or where that is the CPU the one of the rank's number; but the
/// host for all, with a warning, when a rank has no GPU. Collective when it is first asked for
/// GPUs.
Device rank_device(Communicator& comm, bool on_gpu);

/// DeviceError when the tensor's device is not there.
void check_usable(const Tensor& tensor);

}  // namespace cuop::dist
