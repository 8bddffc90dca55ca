// The CUDA libraries of this machine, looked for at run time and never linked.
#pragma once

#include <string>
#include <vector>

namespace cuop::backend {

struct LibraryStatus {
  std::string title;    ///< "CUDA driver", "cuFFT", ...
  std::string version;  ///< as the library reports it; "" when it is absent or does not tell
  std::string path;     ///< the soname or file that was opened; "" when absent
  std::string reason;   ///< why it is absent; "" when found
};

/// One row a library, in a fixed order. Opens each on the first call.
const std::vector<LibraryStatus>& cuda_libraries();

/// Why no CUDA device can be used by this process: what is missing (driver, device, support in this
/// build) and how to use the CPU instead.
std::string cuda_absence_reason();

}  // namespace cuop::backend
