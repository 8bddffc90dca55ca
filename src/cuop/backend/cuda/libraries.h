// The CUDA libraries of this machine, looked for at run time and never linked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/dynlib.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend {

enum class CudaLibrary {
  kDriver,
  kNvrtc,
  kCublas,
  kCublasLt,
  kCufft,
  kCusparse,
  kCudnn,
  kNccl,
  kNvml
};

/// The library, opened by the first call and kept; absent is a state of it (core/dynlib.h), whose
/// advice names the package that brings it and the ways to the CPU.
const DynLib& cuda_library(CudaLibrary which);

/// The version that the library tells, "" when it is absent or tells none. Opens it.
std::string cuda_library_version(CudaLibrary which);

struct LibraryStatus {
  std::string title;    ///< "CUDA driver", "cuFFT", ...
  std::string version;  ///< "13.0", "9.10.2"; "" when it is absent or does not tell
  std::string path;     ///< the soname or file that was opened; "" when absent
  std::string reason;   ///< why it is absent; "" when found
};

/// One row a library, in a fixed order. Opens each on the first call.
const std::vector<LibraryStatus>& cuda_libraries();

/// The number by which a library of NVIDIA's tells its version, in words: 13000 of the driver is
/// "13.0", 91002 of cuDNN "9.10.2".
std::string version_text(CudaLibrary which, int64_t number);

/// Why no GPU can be used by this process: what is missing (driver, device, CUOP_DEVICE) and how to
/// use the CPU instead; "" when one can.
std::string cuda_absence_reason();

}  // namespace cuop::backend

namespace cuop::backend::cuda {

/// ExecutionError "who: LIBRARY answered WORDS to STEP" unless the status is 0. `words_of` makes
/// the library's words of it: anything that core/text.h can write.
template <class WordsOf>
void check_library(int status, const char* library, const char* who, std::string_view step,
                   WordsOf&& words_of) {
  if (status == 0) [[likely]]
    return;
  throw ExecutionError(cat(who, ": ", library, " answered ", words_of(status), " to ", step));
}

}  // namespace cuop::backend::cuda
