#include "cuop/dist/rank_device.h"

#include <mutex>

#include "cuop/backend/current_device.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/log.h"

namespace cuop::dist {

Device rank_device(Communicator& comm, bool on_gpu) {
  if (!on_gpu) return kCpu;
  const int gpus = backend::device_count(DeviceType::kCuda);
  if (!comm.have_gpus()) {
    static std::once_flag is_said;
    std::call_once(is_said, [&] {
      log(LogLevel::kWarn, "rank ", comm.rank(), " of ", comm.size(), " has ", gpus,
          " GPUs and some rank has none: the ranks work in host memory");
    });
    return kCpu;
  }
  const Device current = backend::current_device();
  if (!current.is_cpu()) return current;
  return {DeviceType::kCuda, comm.in_world(comm.rank()) % gpus};
}

void check_usable(const Tensor& tensor) {
  if (tensor.is_defined()) backend::runtime(tensor.device());
}

}  // namespace cuop::dist
