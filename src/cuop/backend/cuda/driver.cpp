#include "cuop/backend/cuda/driver.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "cuop/backend/cpu/apart.h"
#include "cuop/backend/cpu/exit_gate.h"
#include "cuop/backend/cuda/recent_operations.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/device.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/home_process.h"
#include "cuop/memory/host_memory.h"

namespace cuop::backend::cuda {

namespace {

constexpr int kOldestVersion = 12000;
constexpr int64_t kFewestAddresses = int64_t{8} << 30;
constexpr const char* kAdvice = "; use device 'cpu', or set CUOP_DEVICE=cpu to make it the default";

/// Asks the driver for the form of an entry point that a CUDA version has given it.
class Loader {
 public:
  explicit Loader(const DynLib& library)
      : get_(reinterpret_cast<Get>(library.find("cuGetProcAddress_v2"))) {}
  bool is_usable() const { return get_ != nullptr; }
  const std::string& missing() const { return missing_; }

  void bind(EntryPoint& entry) {
    int status = 0;
    const Result result = get_(entry.name, &entry.address, entry.version, 0, &status);
    if (result == Result::kSuccess && entry.address != nullptr) return;
    missing_ += (missing_.empty() ? "" : ", ") + std::string(entry.name);
  }

 private:
  using Get = Result (*)(const char* symbol, void** entry, int version, uint64_t flags,
                         int* status);
  Get get_;
  std::string missing_;
};

/// Why the driver cannot be used: "" when it can.
struct Absence {
  std::string reason = {};
  bool is_broken = false;  ///< a driver is there, and something is wrong with it
};

struct Opened {
  Driver driver;
  Absence absence;
};

std::string version_text(int version) { return cat(version / 1000, '.', version % 1000 / 10); }

Absence broken(std::string reason) { return {std::move(reason), true}; }

Absence open(Driver& d) {
  const std::string& wanted = env().device.value;
  if (wanted != "auto" && parse_device(wanted).is_cpu()) {
    return {"CUOP_DEVICE=cpu keeps this process on the CPU; unset it to use a GPU"};
  }
  const DynLib library("CUDA driver", {"libcuda.so.1"});  // DynLib never closes what it opened
  if (!library.is_loaded()) {
    return {cat("the NVIDIA driver was not found (", library.reason(), ")", kAdvice)};
  }
  const auto get_version = reinterpret_cast<Result (*)(int*)>(library.find("cuDriverGetVersion"));
  if (get_version != nullptr) get_version(&d.version);
  Loader load(library);
  if (!load.is_usable() || d.version < kOldestVersion) {
    return broken(cat("the NVIDIA driver is too old: it serves CUDA ", version_text(d.version),
                      ", cuOP needs ", version_text(kOldestVersion), " or later", kAdvice));
  }
  for (EntryPoint* entry : d.entries) load.bind(*entry);
  if (!load.missing().empty()) {
    return broken(cat("the NVIDIA driver for CUDA ", version_text(d.version), " lacks ",
                      load.missing(), kAdvice));
  }
  // CUDA reserves addresses for all memory of the machine and its devices. Where it cannot, it
  // fails and keeps what it took, of which the process then has too few.
  if (const int64_t addresses = memory::address_space_limit(); addresses < kFewestAddresses) {
    return broken(cat("the NVIDIA driver does not start in ", format_bytes(addresses),
                      " of addresses (ulimit -v), it takes more than ",
                      format_bytes(kFewestAddresses), kAdvice));
  }
  // Among many processes that start at once the driver takes seconds, and hears no interrupt.
  const auto started = std::make_shared<Result>();
  Result (*const init)(unsigned) = library.require("cuInit");
  close_gate_before_libraries();
  run_apart([init, started] {
    const GatedCall call;
    *started = init(0);
    close_gate_before_libraries();
  });
  if (const Result result = *started; result != Result::kSuccess) {
    if (result == Result::kNoDevice) {
      const std::string& visible = env().cuda_visible_devices.value;
      return {cat("the NVIDIA driver sees no device; CUDA_VISIBLE_DEVICES",
                  visible.empty() ? "" : "=" + visible, " may hide them", kAdvice)};
    }
    const char* name = "an unknown error";
    d.get_error_name(result, &name);
    return broken(
        cat("the NVIDIA driver is there but did not start (cuInit answered ", name, ")", kAdvice));
  }
  return {};
}

const Opened& opened() {
  // Never destroyed: threads may compute while the process ends.
  static const Opened& result = *[] {
    auto* made = new Opened;
    made->absence = open(made->driver);
    return made;
  }();
  return result;
}

const HomeProcess& first_process() {
  static const HomeProcess process;
  return process;
}

std::string hint_about_failure() {
  const std::string recent = recently_started();
  return cat("; an earlier operation failed and this process cannot use the device any more",
             recent.empty() ? "" : cat(" (started last: ", recent, ")"),
             ": start it again, with CUOP_CUDA_BLOCKING=1 to learn which operation it was");
}

/// Whether work that was started earlier has failed, after which nothing runs any more.
bool is_failure(Result result) {
  constexpr Result kFailures[] = {
      Result::kEccUncorrectable,
      Result::kNvlinkUncorrectable,
      Result::kIllegalAddress,
      Result::kLaunchTimeout,
      Result::kAssert,
      Result::kHardwareStackError,
      Result{715},  // illegal instruction
      Result{716},  // misaligned address
      Result{717},  // invalid address space
      Result{718},  // invalid program counter
      Result::kLaunchFailed,
  };
  return std::ranges::find(kFailures, result) != std::end(kFailures);
}

/// What the reader of a message can do about it; "" when the name says it all.
std::string hint(Result result) {
  switch (result) {
    case Result::kNotInitialized:
      return !first_process().is_here()
                 ? "; CUDA cannot be used by a process that was forked after its first use: start "
                   "it with the method 'spawn'"
                 : "";
    case Result::kDeinitialized:
      return "; the process is ending";
    case Result::kSystemDriverMismatch:
    case Result::kRequiresNewerDriver:
    case Result::kCompatNotSupported:
    case Result::kUnsupportedPtxVersion:
      return "; a newer NVIDIA driver is needed";
    default:
      return is_failure(result) ? hint_about_failure() : "";
  }
}

}  // namespace

const Driver* find_driver() {
  const Opened& result = opened();
  first_process();
  return result.absence.reason.empty() ? &result.driver : nullptr;
}

const std::string& driver_absence() { return opened().absence.reason; }

bool is_driver_broken() { return opened().absence.is_broken; }

const Driver& driver() {
  const Driver* found = find_driver();
  if (found == nullptr) throw DeviceError(cat("cuda: ", driver_absence()));
  return *found;
}

std::string describe(Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (const Driver* found = find_driver()) {
    found->get_error_name(result, &name);
    found->get_error_string(result, &text);
  }
  const std::string number = cat("CUDA error ", static_cast<int>(result));
  return cat(name != nullptr ? name : number, text != nullptr ? ": " : "",
             text != nullptr ? text : "");
}

void raise(Result result, const std::string& what) {
  const std::string message = cat(what, ": ", describe(result), hint(result));
  switch (result) {
    case Result::kOutOfMemory:
      throw MemoryError(message);
    case Result::kNotInitialized:
    case Result::kDeinitialized:
    case Result::kStubLibrary:
    case Result::kRequiresNewerDriver:
    case Result::kDeviceUnavailable:
    case Result::kNoDevice:
    case Result::kInvalidDevice:
    case Result::kSystemNotReady:
    case Result::kSystemDriverMismatch:
    case Result::kCompatNotSupported:
      throw DeviceError(message);
    case Result::kInvalidImage:
    case Result::kNoBinaryForGpu:
    case Result::kInvalidPtx:
    case Result::kJitCompilerNotFound:
    case Result::kUnsupportedPtxVersion:
      throw CompilationError(message);
    default:
      throw ExecutionError(message);
  }
}

}  // namespace cuop::backend::cuda
