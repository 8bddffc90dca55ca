#pragma once

#include "cuop/backend/cuda/awaited_devices.h"
#include "cuop/backend/cuda/driver_types.h"
#include "cuop/backend/event.h"
#include "cuop/core/noncopyable.h"

namespace cuop::backend::cuda {

class CudaEvent final : public Event, private NonCopyable {
 public:
  CudaEvent(Device device, bool is_timed);
  ~CudaEvent() override;

  Device device() const { return device_; }
  void record(Stream stream) override;
  void wait(Stream stream) const override;
  void synchronize() const override;
  bool is_done() const override;
  double elapsed_ms(const Event& since) const override;

 private:
  Device device_;
  bool is_timed_;
  bool is_recorded_ = false;
  AwaitedDevices::Set awaited_ = 0;  ///< by what it marks, its own device too
  EventHandle handle_ = nullptr;
};

}  // namespace cuop::backend::cuda
