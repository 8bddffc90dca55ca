#include "cuop/backend/cuda/libraries.h"

#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>

#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/library_search.h"
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

/// In the order of CudaLibrary.
constexpr LibraryRow kLibraries[] = {
    {"CUDA driver", {"libcuda.so.1"}, VersionCall::kPointer, "cuDriverGetVersion"},
    {"NVRTC",
     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
     VersionCall::kTwoParts,
     "nvrtcVersion"},
    {"cuBLAS", {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, VersionCall::kNone, ""},
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

std::string version_of(const DynLib& library, CudaLibrary which) {
  const LibraryRow& row = kLibraries[static_cast<size_t>(which)];
  void* symbol = row.call == VersionCall::kNone ? nullptr : library.find(row.symbol);
  if (symbol == nullptr) return "";
  if (row.call == VersionCall::kValue) {
    return version_text(which, static_cast<int64_t>(reinterpret_cast<size_t (*)()>(symbol)()));
  }
  int first = 0, second = 0;
  if (row.call == VersionCall::kPointer) {
    const bool is_told = reinterpret_cast<int (*)(int*)>(symbol)(&first) == 0;
    return is_told ? version_text(which, first) : "";
  }
  const int status = reinterpret_cast<int (*)(int*, int*)>(symbol)(&first, &second);
  return status == 0 ? cat(first, ".", second) : "";
}

LibraryStatus probe(size_t row) {
  const auto which = static_cast<CudaLibrary>(row);
  const DynLib& library = cuda_library(which);
  return {kLibraries[row].title, version_of(library, which), library.path(), library.reason()};
}

/// NVRTC opens its built-in functions by name, which finds them where the system's loader looks and
/// nowhere else. A library of that name which is in the process already is found too: this one,
/// that lies beside NVRTC.
void open_builtins(const DynLib& nvrtc) {
  const std::string name = cat("libnvrtc-builtins.so.", version_of(nvrtc, CudaLibrary::kNvrtc));
  const auto path = std::filesystem::path(nvrtc.real_path("nvrtcVersion")).parent_path() / name;
  DynLib("NVRTC's built-in functions", {path.string()});
}

}  // namespace

std::string cuda_library_version(CudaLibrary which) {
  return version_of(cuda_library(which), which);
}

std::string version_text(CudaLibrary which, int64_t number) {
  if (which == CudaLibrary::kDriver) return cat(number / 1000, '.', number % 1000 / 10);
  // Two digits each for minor and patch; cuFFT and the older libraries have one for each.
  const bool is_short = which == CudaLibrary::kCufft || number < 10000;
  const int64_t major = is_short ? 1000 : 10000, minor = 100;
  return cat(number / major, '.', number % major / minor, '.', number % minor);
}

const DynLib& cuda_library(CudaLibrary which) {
  static std::array<std::unique_ptr<const DynLib>, std::size(kLibraries)> opened;
  static std::array<std::once_flag, std::size(kLibraries)> once;
  const auto row = static_cast<size_t>(which);
  std::call_once(once[row], [&] {
    std::vector<std::string> sonames;
    for (const char* soname : kLibraries[row].sonames) {
      if (soname != nullptr) sonames.emplace_back(soname);
    }
    opened[row] =
        std::make_unique<const DynLib>(kLibraries[row].title, cuda_library_candidates(sonames));
    if (which == CudaLibrary::kNvrtc && opened[row]->is_loaded()) open_builtins(*opened[row]);
  });
  return *opened[row];
}

const std::vector<LibraryStatus>& cuda_libraries() {
  static const std::vector<LibraryStatus> rows = [] {
    std::vector<LibraryStatus> result;
    for (size_t row = 0; row < std::size(kLibraries); ++row) result.push_back(probe(row));
    return result;
  }();
  return rows;
}

std::string cuda_absence_reason() { return cuda::driver_absence(); }

}  // namespace cuop::backend
