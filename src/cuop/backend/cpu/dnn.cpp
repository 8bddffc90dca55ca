#include "cuop/backend/cpu/dnn.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <optional>

#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/variable_scope.h"

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

/// Opens the library. OpenMP's threads look out for work and for each other's end awake, by default
/// for milliseconds: on a machine with fewer free cores than threads, each convolution would take
/// that. 20 microseconds cost nothing where the cores are free.
DynLib open_module() {
  std::optional<VariableScope> spins;
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  if (!is_set("GOMP_SPINCOUNT") && !is_set("OMP_WAIT_POLICY")) {
    spins.emplace("GOMP_SPINCOUNT", "1000");
  }
  return DynLib("oneDNN", {module_path()});
}

struct Module {
  Module() : lib(open_module()) {
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

/// How many threads the library may use here. OpenMP keeps some for each thread that calls it:
/// after a fork they are gone, and where the system has none left it ends the process.
int64_t usable_threads() {
  thread_local int64_t kept = 1;  // by OpenMP for this thread, which is one of them
  const int64_t threads = thread_count();
  if (threads == 1 || is_forked_thread()) return 1;
  if (threads > kept && !can_start_threads(threads - kept)) return 1;
  kept = threads;
  return threads;
}

}  // namespace

const Info& info() { return module().info; }

void conv(CuopDnnConv problem, const float* x, const float* w, const float* bias, float* y,
          void* kept) {
  // A child would find locks of the library held, and of this module's beginning.
  const GatedCall call(GatedCall::Await::kAtForkAlone);
  require_module();
  was_used = true;
  problem.threads = usable_threads();
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
