// Objects of libraries that recorded work refers to, such as plans with tables on the device.
#pragma once

#include <memory>

#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// Keeps the object for the rest of the process when work of it on the stream is being recorded. A
/// recording may be of another library and be replayed for as long as that likes.
void keep_if_recorded(Stream stream, std::shared_ptr<const void> object);

}  // namespace cuop::backend::cuda
