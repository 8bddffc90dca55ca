#include "cuop/jit/nvrtc.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/dynlib.h"
#include "cuop/core/error.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"
#include "cuop/jit/compilations.h"
#include "cuop/jit/kernel_text.h"

namespace cuop::jit {

namespace {

using Clock = std::chrono::steady_clock;
using Status = int;  // nvrtcResult; 0 is success
using Program = void*;

/// Changes when the same request should be compiled anew: other common options, another format.
constexpr const char* kSchema = "cuop-kernel-2";

// Results must not depend on where the compiler could fuse, as on the CPU; unannotated functions
// are device code, since the host compiles the same text; the seed makes the names of internal
// symbols, and with them the bytes, the same every time.
constexpr const char* kCommonOptions[] = {
    "--std=c++20", "--fmad=false", "--device-as-default-execution-space", "--frandom-seed=cuop",
    "--diag-suppress=20208,1097"};  // long double constants; attributes of other compilers

/// Leaves out the declarations of the CUDA runtime, which take a fifth of a small kernel's time to
/// read; compilers before this version do not know it.
constexpr const char* kMinimal = "--minimal";
constexpr int kMinimalSince = 12 * 100 + 4;
/// Where a driver is there this version keeps what it compiled, for all processes: what comes from
/// there has no log and counts as compiled. Our cache is the one that is checked.
constexpr const char* kNoCache = "--no-cache";
constexpr int kNoCacheSince = 13 * 100;

const DynLib& library() { return backend::cuda_library(backend::CudaLibrary::kNvrtc); }

/// The functions of nvrtc.h that are used, as its documentation declares them.
struct Functions {
  const DynLib& lib = library();
  Status (*version)(int*, int*) = lib.require("nvrtcVersion");
  Status (*arch_count)(int*) = lib.require("nvrtcGetNumSupportedArchs");
  Status (*archs)(int*) = lib.require("nvrtcGetSupportedArchs");
  const char* (*error_string)(Status) = lib.require("nvrtcGetErrorString");
  Status (*create)(Program*, const char* source, const char* name, int header_count,
                   const char* const* headers,
                   const char* const* header_names) = lib.require("nvrtcCreateProgram");
  Status (*destroy)(Program*) = lib.require("nvrtcDestroyProgram");
  Status (*compile)(Program, int option_count,
                    const char* const* options) = lib.require("nvrtcCompileProgram");
  Status (*log_size)(Program, size_t*) = lib.require("nvrtcGetProgramLogSize");
  Status (*log)(Program, char*) = lib.require("nvrtcGetProgramLog");
  Status (*image_size)(Program, size_t*) = lib.require("nvrtcGetCUBINSize");
  Status (*image)(Program, char*) = lib.require("nvrtcGetCUBIN");
  /// Absent before 12.8: there a compilation cannot be stopped.
  Status (*set_flow_callback)(Program, int (*)(void*, void*),
                              void*) = Symbol(lib.find("nvrtcSetFlowCallback"));
};

const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

struct Deadline {
  Clock::time_point at;
  bool has_passed = false;
};

/// NVRTC asks from time to time whether to go on; anything but 0 stops it.
int ask_deadline(void* deadline, void*) {
  auto* asked = static_cast<Deadline*>(deadline);
  asked->has_passed = asked->has_passed || Clock::now() >= asked->at;
  return Compilations::instance().should_stop() || asked->has_passed ? 1 : 0;
}

void check(Status status, const char* call, const std::string& kernel) {
  if (status == 0) return;
  throw CompilationError(
      cat("jit: ", kernel, ": ", call, " failed: ", functions().error_string(status)));
}

bool is_unrolled(const CompileRequest& request) {
  return std::ranges::find(request.options, kNotUnrolled) == request.options.end();
}

/// In place of what NVRTC calls signal() for. Its first compilation of a process takes SIGINT and
/// SIGTERM for itself while it reads the source, and would end the process when one comes; what is
/// ignored it leaves alone.
void (*keep_handler(int, void (*)(int)))(int) { return SIG_IGN; }

/// A program that is destroyed with its scope.
class ProgramHandle : NonCopyable {
 public:
  ProgramHandle(const CompileRequest& request, const std::vector<const KernelText*>& texts) {
    const auto told = [&](const char* text) {
      return is_unrolled(request) ? std::string(text) : without_unrolling(text);
    };
    std::vector<std::string> kept;
    std::vector<const char*> bodies, names;
    for (const KernelText* text : texts) kept.push_back(told(text->text));
    for (const std::string& body : kept) bodies.push_back(body.c_str());
    for (const KernelText* text : texts) names.push_back(text->name);
    const std::string source = told(request.source.c_str());
    check(functions().create(&program_, source.c_str(), (request.name + ".cu").c_str(),
                             static_cast<int>(texts.size()), bodies.data(), names.data()),
          "nvrtcCreateProgram", request.name);
  }
  ~ProgramHandle() { functions().destroy(&program_); }

  Program get() const { return program_; }

  std::string log() const {
    size_t size = 0;
    if (functions().log_size(program_, &size) != 0 || size <= 1) return "";
    std::string text(size, '\0');
    if (functions().log(program_, text.data()) != 0) return "";
    text.resize(size - 1);  // the terminating zero
    return text;
  }

  std::string image(const std::string& kernel) const {
    size_t size = 0;
    check(functions().image_size(program_, &size), "nvrtcGetCUBINSize", kernel);
    std::string bytes(size, '\0');
    check(functions().image(program_, bytes.data()), "nvrtcGetCUBIN", kernel);
    return bytes;
  }

 private:
  Program program_ = nullptr;
};

int64_t file_size(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? static_cast<int64_t>(status.st_size) : 0;
}

}  // namespace

const Nvrtc& Nvrtc::instance() {
  static const auto* opened = new Nvrtc;  // threads may still compile while the process ends
  return *opened;
}

Nvrtc::Nvrtc() {
  try {
    const Functions& nvrtc = functions();
    int count = 0;
    if (nvrtc.version(&major_, &minor_) != 0 || nvrtc.arch_count(&count) != 0) {
      reason_ = cat("NVRTC: ", library().path(), " does not answer; ", library().advice());
      return;
    }
    architectures_.resize(static_cast<size_t>(count));
    nvrtc.archs(architectures_.data());
    std::sort(architectures_.begin(), architectures_.end());
  } catch (const Error& error) {
    reason_ = error.what();
    return;
  }
  Compilations::instance();
  library().redirect("signal", reinterpret_cast<void*>(&keep_handler));
  path_ = library().real_path("nvrtcVersion");
  // Releases of one version differ in their size; the version alone would call them equal.
  identity_ = cat("nvrtc ", major_, ".", minor_, " ", file_size(path_));
}

CompiledKernel Nvrtc::compile(const CompileRequest& request, double timeout) const {
  if (!is_available()) {
    throw DeviceError(cat("jit: ", request.name, " cannot be compiled: ", reason_));
  }
  const auto start = Clock::now();
  const std::string arch = "--gpu-architecture=" + request.arch;
  std::vector<const char*> options(std::begin(kCommonOptions), std::end(kCommonOptions));
  options.push_back(arch.c_str());
  const int version = major_ * 100 + minor_;
  if (!request.has_runtime_types && version >= kMinimalSince) options.push_back(kMinimal);
  if (version >= kNoCacheSince) options.push_back(kNoCache);
  for (const std::string& option : request.options) {
    if (option != kNotUnrolled) options.push_back(option.c_str());
  }

  const Compilations::Running running(request.name);
  const ProgramHandle program(request, included_texts(request.source));
  Deadline deadline{start + std::chrono::microseconds(static_cast<int64_t>(timeout * 1e6))};
  if (functions().set_flow_callback != nullptr) {
    check(functions().set_flow_callback(program.get(), ask_deadline, &deadline),
          "nvrtcSetFlowCallback", request.name);
  }
  const Status status =
      functions().compile(program.get(), static_cast<int>(options.size()), options.data());
  if (status != 0 && deadline.has_passed) {
    throw CompilationError(too_late(request, timeout));
  }
  if (status != 0 && Compilations::instance().are_ending()) throw_at_process_end(request.name);
  CompiledKernel compiled;
  compiled.log = program.log();
  if (status != 0) {
    throw CompilationError(cat("jit: ", request.name, " does not compile for ", request.arch, ": ",
                               functions().error_string(status), "\n", compiled.log));
  }
  compiled.image = program.image(request.name);
  if (compiled.image.empty()) {  // of a virtual architecture, say
    throw CompilationError(
        cat("jit: ", request.name, ": NVRTC makes no binary for ", request.arch));
  }
  compiled.made_in_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return compiled;
}

std::string too_late(const CompileRequest& request, double timeout) {
  return cat("jit: ", request.name, " was not compiled within ", timeout,
             " s (compilation_timeout)");
}

std::string compile_key(const CompileRequest& request, const std::string& compiler_identity) {
  Sha256 digest;
  const auto add = [&digest](std::string_view part) {
    digest.add(cat(part.size(), ":"));
    digest.add(part);
  };
  add(kSchema);
  add(compiler_identity);
  add(request.arch);
  for (const char* option : kCommonOptions) add(option);
  for (const std::string& option : request.options) add(option);
  if (request.has_runtime_types) add("runtime types");
  add("source");
  add(request.source);
  for (const KernelText* text : included_texts(request.source)) {
    add(text->name);
    add(text->sha256);
  }
  return digest.hex();
}

}  // namespace cuop::jit
