// What blas_info, dnn_info and their like tell of a library that is opened at run time.
#pragma once

#include "bindings.h"

namespace cuop::python {

using Info = nb::typed<nb::dict, nb::str, nb::any>;

/// Whether the library is there, its version and path, and the reason when it is not.
template <class LibraryInfo>
Info library_info(const LibraryInfo& info) {
  Info result;
  result["available"] = info.is_available;
  result["version"] = info.version;
  result["path"] = info.path;
  result["reason"] = info.reason;
  return result;
}

}  // namespace cuop::python
