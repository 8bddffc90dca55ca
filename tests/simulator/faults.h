// Faults on order: the n-th operation of a kind on a device fails with an answer of the driver, or
// ends or stops the process. CONTRIBUTING.md has the text of an order.
#pragma once

#include "cuop/backend/cuda/driver_types.h"
#include "tests/simulator/exported.h"
#include "tests/simulator/stream.h"

namespace cuop::simulator {

/// What calls ask of a device, as far as orders tell it apart.
enum class Asked : int { kLaunch, kCopy, kFill, kAllocate, kPin, kMap, kWait };

/// What happened to an operation that was just asked for.
struct Fault {
  Result result = Result::kSuccess;
  int signal = 0;  ///< to this process instead

  bool is_none() const { return result == Result::kSuccess && signal == 0; }
  /// Whether no later call for the device works: an error of running work, not of a call.
  bool ends_device() const;
};

/// Counts an operation; the fault that was ordered for it, if any.
Fault next_fault(Asked what, int device);

/// For a call that is answered at once. A fault that ends the device does so.
Result answer_of(Asked what, int device);

/// Submits work as capture.h does. A fault that ends the device does so when the work's turn has
/// come, as a kernel's would, and a signal comes then too; the call itself answers all others.
Result start(Asked what, Stream& stream, const void* kind, Work work);

}  // namespace cuop::simulator

/// Orders what `text` says, counted from now on; "" withdraws all orders. 0 when it was understood.
CUOP_SIMULATOR_ENTRY int simOrderFaults(const char* text);
