// What decides how much memory operators take on a device beside operands and result, as figures:
// planners are handed them and ask no device.
#pragma once

#include <cstdint>

#include "cuop/backend/execution.h"
#include "cuop/core/device.h"

namespace cuop {

struct WorkFigures {
  int multiprocessors = 0;  ///< of a GPU; 0: the host, whose libraries take nothing of tensors'
  bool splits_products = false;  ///< float32 goes by parts on matrix units where that is faster
  backend::SpareMemory spare{};  ///< what work is left

  bool is_gpu() const { return multiprocessors > 0; }
  bool operator==(const WorkFigures&) const = default;
};

/// Of a device, as this thread uses it.
WorkFigures work_figures(Device device);

}  // namespace cuop
