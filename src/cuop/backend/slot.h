// A slot holds an operator's kernel for each device. A front end calls the slot and never names a
// device; an empty place is a worded error, never a silent hop to another device. A family may add
// an alternative for the CPU: plain loops, or loops with a given tile, for callers that ask for
// them (backend/kernel.h).
#pragma once

#include <utility>

#include "cuop/backend/execution.h"
#include "cuop/core/device.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend {

template <class Function>
class Slot;

template <class Result, class... Arguments>
class Slot<Result(Arguments...)> {
 public:
  using Kernel = Result (*)(Arguments...);
  constexpr Slot(const char* op, Kernel cpu, Kernel cuda = nullptr, Kernel cpu_on_request = nullptr)
      : op_(op), kernels_{cpu, cuda}, cpu_on_request_(cpu_on_request) {}

  bool supports(Device device) const { return kernels_[static_cast<int>(device.type)] != nullptr; }

  template <class... Given>
  Result operator()(Device device, Given&&... arguments) const {
    const Kernel kernel = kernels_[static_cast<int>(device.type)];
    if (kernel == nullptr) {
      throw NotImplementedError(cat(op_, ": no kernel for ", device, "; there is one for cpu"));
    }
    const bool is_on_request =
        device.is_cpu() && cpu_on_request_ != nullptr && !execution_options().kernel.is_default();
    return (is_on_request ? cpu_on_request_ : kernel)(std::forward<Given>(arguments)...);
  }

 private:
  const char* op_;
  Kernel kernels_[kDeviceTypeCount];
  Kernel cpu_on_request_;
};

/// A slot's signature is that of its kernels.
template <class Result, class... Arguments, class... Others>
Slot(const char* op, Result (*cpu)(Arguments...), Others... others) -> Slot<Result(Arguments...)>;

}  // namespace cuop::backend
