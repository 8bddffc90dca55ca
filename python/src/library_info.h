// What blas_info, dnn_info and their like tell of a library that is opened at run time.
#pragma once

#include "bindings.h"

namespace cuop::python {

/// Whether the library is there, its version and path, and the reason when it is not.
template <class LibraryInfo>
Record library_info(const LibraryInfo& info) {
  return record_of("available", info.is_available, "version", info.version, "path", info.path,
                   "reason", info.reason);
}

}  // namespace cuop::python
