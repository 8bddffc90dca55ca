#include "cuop/backend/cpu/dnn.h"

#include <dlfcn.h>

#include <atomic>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::backend::dnn {

namespace {

constexpr const char* kModule = "libcuop_dnn.so";

/// Beside this library, so that the two always come from one build.
std::string module_path() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<const void*>(&module_path), &where) == 0) return kModule;
  const std::string self = where.dli_fname;
  const size_t slash = self.rfind('/');
  return slash == std::string::npos ? kModule : self.substr(0, slash + 1) + kModule;
}

struct Module {
  Module() : lib("oneDNN", {module_path()}) {
    if (!lib.is_loaded()) {
      info.reason = cat(
          "install oneDNN (Debian and Ubuntu: libdnnl-dev) and build cuOP where its headers are (",
          lib.reason(), ")");
      return;
    }
    info.is_available = true;
    info.path = lib.path();
    CuopDnnVersion* const version = lib.require("cuop_dnn_version");
    info.version = version();
    run_conv = lib.require("cuop_dnn_conv");
    new_weights = lib.require("cuop_dnn_new_weights");
    free_weights = lib.require("cuop_dnn_free_weights");
    release = lib.require("cuop_dnn_release");
  }

  DynLib lib;
  Info info;
  CuopDnnRunConv* run_conv = nullptr;
  CuopDnnNewWeights* new_weights = nullptr;
  CuopDnnFreeWeights* free_weights = nullptr;
  CuopDnnRelease* release = nullptr;
};

std::atomic<bool> was_used = false;

const Module& module() {
  // Never destroyed: threads may compute while the process ends.
  static const Module& found = *new Module;
  return found;
}

void require_module() {
  if (!module().info.is_available) {
    throw DeviceError(cat("oneDNN: not available: ", module().info.reason));
  }
}

}  // namespace

const Info& info() { return module().info; }

void conv(CuopDnnConv problem, const float* x, const float* w, const float* bias, float* y,
          void* kept) {
  require_module();
  was_used = true;
  problem.threads = thread_count();
  char error[512] = "";
  if (module().run_conv(&problem, x, w, bias, y, kept, error, sizeof(error)) != 0) {
    throw ExecutionError(cat("oneDNN refused a convolution (", error,
                             "); the variants gemm and direct do without it"));
  }
}

std::shared_ptr<void> new_weights() {
  require_module();
  return {module().new_weights(), module().free_weights};
}

int64_t release() { return was_used ? module().release() : 0; }

}  // namespace cuop::backend::dnn
