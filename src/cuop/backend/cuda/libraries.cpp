#include "cuop/backend/cuda/libraries.h"

#include <array>

#include "cuop/core/dynlib.h"
#include "cuop/core/text.h"

namespace cuop::backend {

namespace {

/// How a library tells its version; the signatures are those of the vendors' documentation.
enum class VersionCall {
  kPointer,   ///< int f(int* version)
  kValue,     ///< size_t f(void)
  kTwoParts,  ///< int f(int* major, int* minor)
  kNone,
};

struct LibraryRow {
  const char* title;
  std::array<const char*, 3> sonames;  ///< newest first
  VersionCall call;
  const char* symbol;
};

constexpr LibraryRow kLibraries[] = {
    {"CUDA driver", {"libcuda.so.1"}, VersionCall::kPointer, "cuDriverGetVersion"},
    {"NVRTC",
     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
     VersionCall::kTwoParts,
     "nvrtcVersion"},
    {"cuBLASLt",
     {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
     VersionCall::kValue,
     "cublasLtGetVersion"},
    {"cuFFT",
     {"libcufft.so.12", "libcufft.so.11", "libcufft.so"},
     VersionCall::kPointer,
     "cufftGetVersion"},
    {"cuSPARSE", {"libcusparse.so.12", "libcusparse.so"}, VersionCall::kNone, ""},
    {"cuDNN", {"libcudnn.so.9", "libcudnn.so"}, VersionCall::kValue, "cudnnGetVersion"},
    {"NCCL", {"libnccl.so.2", "libnccl.so"}, VersionCall::kPointer, "ncclGetVersion"},
    {"NVML", {"libnvidia-ml.so.1"}, VersionCall::kNone, ""},
};

std::string version_of(const DynLib& library, const LibraryRow& row) {
  void* symbol = row.call == VersionCall::kNone ? nullptr : library.find(row.symbol);
  if (symbol == nullptr) return "";
  if (row.call == VersionCall::kValue) return cat(reinterpret_cast<size_t (*)()>(symbol)());
  int first = 0, second = 0;
  if (row.call == VersionCall::kPointer) {
    return reinterpret_cast<int (*)(int*)>(symbol)(&first) == 0 ? cat(first) : "";
  }
  const int status = reinterpret_cast<int (*)(int*, int*)>(symbol)(&first, &second);
  return status == 0 ? cat(first, ".", second) : "";
}

LibraryStatus probe(const LibraryRow& row) {
  std::vector<std::string> candidates;
  for (const char* soname : row.sonames) {
    if (soname != nullptr) candidates.emplace_back(soname);
  }
  const DynLib library(row.title, candidates);
  return {row.title, version_of(library, row), library.path(), library.reason()};
}

}  // namespace

const std::vector<LibraryStatus>& cuda_libraries() {
  static const std::vector<LibraryStatus> rows = [] {
    std::vector<LibraryStatus> result;
    for (const LibraryRow& row : kLibraries) result.push_back(probe(row));
    return result;
  }();
  return rows;
}

std::string cuda_absence_reason() {
  static constexpr const char* kAdvice =
      "; use device 'cpu', or set CUOP_DEVICE=cpu to make it the default";
  const DynLib driver("CUDA driver", {"libcuda.so.1"});
  if (!driver.is_loaded())
    return cat("the NVIDIA driver was not found (", driver.reason(), ")", kAdvice);
  const auto init = reinterpret_cast<int (*)(unsigned)>(driver.find("cuInit"));
  const auto get_count = reinterpret_cast<int (*)(int*)>(driver.find("cuDeviceGetCount"));
  int count = 0;
  const int status = init != nullptr ? init(0) : -1;
  if (status != 0 || get_count == nullptr || get_count(&count) != 0) {
    return cat("the NVIDIA driver is there but did not start (cuInit answered ", status, ")",
               kAdvice);
  }
  if (count == 0) return cat("the NVIDIA driver sees no device", kAdvice);
  return cat("the driver sees ", count,
             " devices, but this version of cuOP computes on the CPU only", kAdvice);
}

}  // namespace cuop::backend
