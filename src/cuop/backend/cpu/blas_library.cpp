#include "cuop/backend/cpu/blas_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuop/backend/cpu/blas_room.h"
#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/fork_steps.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/core/variable_scope.h"

namespace cuop::backend::blas {

namespace {

constexpr const char* kAdvice =
    "install OpenBLAS (Debian and Ubuntu: libopenblas0-pthread) or set CUOP_BLAS_LIBRARY to a CBLAS"
    " library";

/// How libraries rename cblas_sgemm. A suffix with 64 stands for 64-bit integers; a library without
/// any decoration says in its configuration string which it has.
struct Decoration {
  const char* prefix;
  const char* suffix;
  int integer_bits;
};
constexpr Decoration kDecorations[] = {
    {"", "", 32}, {"scipy_", "64_", 64}, {"scipy_", "", 32}, {"", "64_", 64}, {"", "_64", 64}};

/// An OpenBLAS that this process has already loaded, such as the one inside NumPy's wheel.
std::vector<std::string> loaded_openblas() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* found) {
        const char* name = object->dlpi_name;
        if (name != nullptr && std::strstr(name, "openblas") != nullptr) {
          static_cast<std::vector<std::string>*>(found)->emplace_back(name);
        }
        return 0;
      },
      &paths);
  return paths;
}

std::vector<std::string> candidates() {
  const std::string& chosen = env().blas_library.value;
  if (!chosen.empty()) return {chosen};  // what was asked for or nothing
  std::vector<std::string> names = {"libopenblas.so.0"};
  for (std::string& path : loaded_openblas()) names.push_back(std::move(path));
  for (const char* name : {"libopenblas64.so.0", "libmkl_rt.so.2", "libcblas.so.3", "libblas.so.3"})
    names.emplace_back(name);
  return names;
}

struct Loader {
  const DynLib& lib;
  Decoration decoration;

  void* find(const std::string& name) const {
    return lib.find((decoration.prefix + name + decoration.suffix).c_str());
  }
  std::string text(const char* name) const {
    const auto function = reinterpret_cast<const char* (*)()>(find(name));
    return function != nullptr ? function() : "";
  }
};

std::string file_of(const DynLib& lib, const void* symbol) {
  Dl_info where{};
  return dladdr(symbol, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : lib.path();
}

/// Fills in the functions; false when the library has no C interface under any decoration.
bool bind(const DynLib& lib, Library& result) {
  for (const Decoration& decoration : kDecorations) {
    const Loader loader{lib, decoration};
    void* const probe = loader.find("cblas_sgemm");
    if (probe == nullptr) continue;
    for (int i = 0; i < 4; ++i) {
      const std::string stem = std::string("cblas_") + "sdcz"[i];
      result.functions[i] = {loader.find(stem + "gemm"), loader.find(stem + "gemv"),
                             loader.find(stem + "symm"), loader.find(stem + "trsm")};
    }
    result.info.path = file_of(lib, probe);
    result.info.version = loader.text("openblas_get_config");
    result.info.core = loader.text("openblas_get_corename");
    const bool says_64 = result.info.version.find("USE64BITINT") != std::string::npos;
    result.info.integer_bits = says_64 ? 64 : decoration.integer_bits;
    void* get = loader.find("openblas_get_num_threads");
    void* set = loader.find("openblas_set_num_threads");
    if (get == nullptr || set == nullptr) {
      get = lib.find("MKL_Get_Max_Threads");
      set = lib.find("MKL_Set_Num_Threads");
    }
    if (get != nullptr && set != nullptr) {
      result.get_threads = reinterpret_cast<int (*)()>(get);
      result.set_threads = reinterpret_cast<void (*)(int)>(set);
      result.info.is_thread_controlled = true;
    }
    result.stop_threads = reinterpret_cast<int (*)()>(lib.find("blas_thread_shutdown_"));
    result.info.is_available = true;
    return true;
  }
  return false;
}

/// Opens a library and fills in its functions; "" or why that failed. One that has taken the
/// processor for one of twenty years ago is loaded anew unless somebody asks for a core; the one in
/// use is never closed.
std::string try_open(const std::string& candidate, Library& result) {
  constexpr const char* kCoreType = "OPENBLAS_CORETYPE";
  DynLib lib("BLAS", {candidate});
  if (!lib.is_loaded()) return lib.reason();
  if (!bind(lib, result)) return candidate + " has no cblas_sgemm under any known name";
  const std::string core = better_core(result.info.core, isa::highest_supported());
  if (core.empty() || std::getenv(kCoreType) != nullptr) return "";
  lib.close();
  result = {};
  const VariableScope asked(kCoreType, core);
  return try_open(candidate, result);
}

/// OpenBLAS stops its threads before a fork, as its child has none of them. Where a fork begins
/// while the library is opened it does so before the fork comes to the gate, and who calls it
/// meanwhile starts them again. So each fork stops them once nobody is inside.
std::atomic<int (*)()> stop_threads_at_fork = nullptr;

void stop_at_fork() {
  static constexpr ForkSteps kSteps{[]() noexcept { stop_threads_at_fork.load()(); },
                                    []() noexcept {}, []() noexcept {}};
  set_fork_steps(ForkStage::kLibraries, kSteps);
}

/// The same; a fork waits for it, and what the library does before forks comes behind the gate.
std::string open_gated(const std::string& candidate, Library& result) {
  const GatedCall opening(GatedCall::Await::kAtForkAlone);
  const std::string why = try_open(candidate, result);
  if (!why.empty()) return why;
  close_gate_before_libraries();
  if (result.stop_threads != nullptr) {
    stop_threads_at_fork = result.stop_threads;
    stop_at_fork();
    // A fork that began before that may be stopping them now: nobody is to call them amid that.
    result.stop_threads();
  }
  return why;
}

Library find_library() {
  check_room_to_open();
  // Each thread would map a buffer, and those that cannot be started would be waited for.
  std::optional<VariableScope> alone;
  if (has_limited_addresses() || !can_start_threads(core_count() - 1)) {
    alone.emplace("OPENBLAS_NUM_THREADS", "1");
  }
  Library result;
  std::string reasons;
  for (const std::string& candidate : candidates()) {
    const std::string why = open_gated(candidate, result);
    if (why.empty()) {
      log(LogLevel::kInfo, "BLAS: using ", result.info.path, " ", result.info.version);
      return result;
    }
    reasons += (reasons.empty() ? "" : "; ") + why;
  }
  result.info.reason = cat(kAdvice, " (tried: ", reasons, ")");
  return result;
}

/// `holders` leaves and reaches 0 under the mutex only; above that it counts without it.
struct ThreadSetting {
  ForkMutex mutex;
  std::atomic<int> holders = 0;
  int saved = 1;
};
ThreadSetting& thread_setting() {
  static auto& setting = *new ThreadSetting;  // threads may compute while the process ends
  return setting;
}

}  // namespace

std::string better_core(std::string_view core, isa::Level level) {
  constexpr std::string_view kOldest[] = {"Prescott", "Core2",   "Penryn", "Dunnington",
                                          "Nehalem",  "Generic", "Atom",   "Banias"};
  if (std::ranges::find(kOldest, core) == std::end(kOldest)) return "";
  return level == isa::Level::kV4 ? "SkylakeX" : level == isa::Level::kV3 ? "Haswell" : "";
}

const Library& library() {
  // Never destroyed: threads may compute while the process ends.
  static const Library& found = *new Library(find_library());
  return found;
}

const Library& require_library() {
  const Library& found = library();
  if (!found.info.is_available) {
    throw DeviceError(cat("BLAS: no library was found: ", found.info.reason));
  }
  return found;
}

const Info& info() {
  try {
    return library().info;
  } catch (const MemoryError& error) {  // it is not opened where it would have no room
    static const Info& none = *[&error] {
      auto* made = new Info;
      made->reason = error.what();
      return made;
    }();
    return none;
  }
}

bool has_own_threads(int64_t threads) {
  const Library& blas = library();
  return blas.get_threads != nullptr && thread_setting().holders == 0 &&
         blas.get_threads() == threads && !has_limited_addresses();
}

SerialScope::SerialScope() {
  const Library& blas = require_library();
  if (blas.set_threads == nullptr) return;
  ThreadSetting& setting = thread_setting();
  int holders = setting.holders;
  while (holders > 0) {
    if (setting.holders.compare_exchange_weak(holders, holders + 1)) return;
  }
  const GatedCall gate;
  const std::lock_guard lock(setting.mutex);
  if (setting.holders == 0) {
    setting.saved = blas.get_threads();
    if (setting.saved != 1) blas.set_threads(1);
  }
  ++setting.holders;
}

SerialScope::~SerialScope() {
  const Library& blas = library();
  if (blas.set_threads == nullptr) return;
  ThreadSetting& setting = thread_setting();
  int holders = setting.holders;
  while (holders > 1) {
    if (setting.holders.compare_exchange_weak(holders, holders - 1)) return;
  }
  const GatedCall gate;
  const std::lock_guard lock(setting.mutex);
  if (--setting.holders == 0 && setting.saved != 1) blas.set_threads(setting.saved);
}

}  // namespace cuop::backend::blas
