#include "cuop/backend/cuda/libraries.h"

#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>

#include "cuop/backend/cuda/driver.h"
#include "cuop/backend/cuda/library_search.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/text.h"

namespace cuop::backend {

namespace {

/// How a library tells its version; the signatures are those of the vendors' documentation.
enum class VersionCall {
  kPointer,   ///< int f(int* version)
  kValue,     ///< size_t f(void)
  kTwoParts,  ///< int f(int* major, int* minor)
  kProperty,  ///< int f(int part, int* value), part 0 being major, 1 minor, 2 the patch level
  kNone,
};

/// Who brings a library: NVIDIA's Python packages for CUDA 13 and 12, and what else does.
struct Source {
  const char* package = nullptr;
  const char* package_for_12 = nullptr;
  const char* other = "the CUDA toolkit";
};

struct LibraryRow {
  const char* title;
  std::array<const char*, 3> sonames;  ///< newest first
  VersionCall call;
  const char* symbol;
  Source source = {};
};

/// In the order of CudaLibrary.
constexpr LibraryRow kLibraries[] = {
    {"CUDA driver", {"libcuda.so.1"}, VersionCall::kPointer, "cuDriverGetVersion"},
    {"NVRTC",
     {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
     VersionCall::kTwoParts,
     "nvrtcVersion",
     {"nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"}},
    {"cuBLAS",
     {"libcublas.so.13", "libcublas.so.12", "libcublas.so"},
     VersionCall::kProperty,
     "cublasGetProperty",
     {"nvidia-cublas", "nvidia-cublas-cu12"}},
    {"cuBLASLt",
     {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"},
     VersionCall::kValue,
     "cublasLtGetVersion",
     {"nvidia-cublas", "nvidia-cublas-cu12"}},
    {"cuFFT",
     {"libcufft.so.12", "libcufft.so.11", "libcufft.so"},
     VersionCall::kPointer,
     "cufftGetVersion",
     {"nvidia-cufft", "nvidia-cufft-cu12"}},
    {"cuSPARSE",
     {"libcusparse.so.12", "libcusparse.so"},
     VersionCall::kProperty,
     "cusparseGetProperty",
     {"nvidia-cusparse", "nvidia-cusparse-cu12"}},
    {"cuDNN",
     {"libcudnn.so.9", "libcudnn.so"},
     VersionCall::kValue,
     "cudnnGetVersion",
     {"nvidia-cudnn-cu13", "nvidia-cudnn-cu12", "NVIDIA's cuDNN"}},
    {"NCCL",
     {"libnccl.so.2", "libnccl.so"},
     VersionCall::kPointer,
     "ncclGetVersion",
     {"nvidia-nccl-cu13", "nvidia-nccl-cu12", "NVIDIA's NCCL"}},
    {"NVML", {"libnvidia-ml.so.1"}, VersionCall::kNone, ""},
};

/// What to do where the library is absent; "" for those that come with the driver.
std::string advice_about(const LibraryRow& row) {
  const Source& source = row.source;
  if (source.package == nullptr) return "";
  return cat("install the Python package ", source.package,
             " (for CUDA 12: ", source.package_for_12, ") or ", source.other,
             ", or set CUOP_LIBRARY_PATH to the folder of ", row.sonames[0],
             "; to('cpu') moves a tensor to the CPU, CUOP_DEVICE=cpu keeps the process there");
}

/// "13.1.0" of a library that tells its version part by part; "" when it tells none.
std::string version_by_parts(int (*property)(int, int*)) {
  std::array<int, 3> parts{};
  for (int i = 0; i < 3; ++i) {
    if (property(i, &parts[static_cast<size_t>(i)]) != 0) return "";
  }
  return cat(parts[0], '.', parts[1], '.', parts[2]);
}

std::string version_of(const DynLib& library, CudaLibrary which) {
  const LibraryRow& row = kLibraries[static_cast<size_t>(which)];
  void* symbol = row.call == VersionCall::kNone ? nullptr : library.find(row.symbol);
  if (symbol == nullptr) return "";
  if (row.call == VersionCall::kValue) {
    return version_text(which, static_cast<int64_t>(reinterpret_cast<size_t (*)()>(symbol)()));
  }
  if (row.call == VersionCall::kProperty) {
    return version_by_parts(reinterpret_cast<int (*)(int, int*)>(symbol));
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
  struct Opened {
    ForkMutex mutex;
    std::atomic<const DynLib*> library = nullptr;
  };
  static auto& all = *new std::array<Opened, std::size(kLibraries)>;  // until the process is gone
  const auto row = static_cast<size_t>(which);
  Opened& opened = all[row];
  if (const DynLib* library = opened.library) return *library;
  const std::lock_guard lock(opened.mutex);
  if (const DynLib* library = opened.library) return *library;
  // Which it is built on and finds by name alone.
  if (which == CudaLibrary::kCublas) cuda_library(CudaLibrary::kCublasLt);
  std::vector<std::string> sonames;
  for (const char* soname : kLibraries[row].sonames) {
    if (soname != nullptr) sonames.emplace_back(soname);
  }
  auto library = std::make_unique<DynLib>(kLibraries[row].title, cuda_library_candidates(sonames),
                                          advice_about(kLibraries[row]));
  if (which == CudaLibrary::kNvrtc && library->is_loaded()) open_builtins(*library);
  opened.library = library.release();
  return *opened.library;
}

const std::vector<LibraryStatus>& cuda_libraries() {
  // Never destroyed: threads may compute while the process ends.
  static const std::vector<LibraryStatus>& rows = *[] {
    auto* result = new std::vector<LibraryStatus>;
    for (size_t row = 0; row < std::size(kLibraries); ++row) result->push_back(probe(row));
    return result;
  }();
  return rows;
}

std::string cuda_absence_reason() { return cuda::driver_absence(); }

}  // namespace cuop::backend
