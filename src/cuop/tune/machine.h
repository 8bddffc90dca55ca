// What a measurement holds for, beside the problem: part of every key of the database.
#pragma once

#include <string>

#include "cuop/core/device.h"

namespace cuop::tune {

/// Everything about the device that may change which kernel is fastest: on the CPU instruction set,
/// BLAS library and threads; on a GPU its name, multiprocessors, memory clock and driver.
std::string machine_text(Device device);

}  // namespace cuop::tune
