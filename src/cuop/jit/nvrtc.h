// NVRTC, the compiler of CUDA source at run time: text in, a binary for one exact GPU out. The
// library is opened on first use; that no GPU is there does not matter to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuop::jit {

/// An option of ours: the compiler sees the text of the kernel as without_unrolling leaves it.
inline constexpr const char* kNotUnrolled = "--not-unrolled";

/// One source to be compiled. Everything in it changes the binary or what is said about it.
struct CompileRequest {
  std::string name;    ///< of the kernel, for messages
  std::string source;  ///< may include kernel text (jit/kernel_text.h) and nothing else
  std::string arch;    ///< "sm_80", "sm_90a": exactly what the binary is for
  std::vector<std::string> options = {};  ///< beyond those that all kernels are compiled with
  std::string entry = {};                 ///< the function to launch; "" for the usual name
  /// Whether it may name types of the CUDA runtime (textures, cudaError_t), as a user's own source.
  bool has_runtime_types = false;
};

struct CompiledKernel {
  std::string image;  ///< CUBIN
  std::string log;    ///< warnings, and what was asked for with --ptxas-options=-v
  double made_in_ms = 0.0;
};

class Nvrtc {
 public:
  /// The one of this process; opens the library on the first call.
  static const Nvrtc& instance();

  bool is_available() const { return reason_.empty(); }
  /// Why it cannot be used and what to do about it, or "".
  const std::string& reason() const { return reason_; }
  /// The file that was opened.
  const std::string& path() const { return path_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  /// Compute capabilities that it compiles for, as 80 or 90, in ascending order.
  const std::vector<int>& architectures() const { return architectures_; }
  /// Text that differs between compilers that may make different binaries.
  const std::string& identity() const { return identity_; }

  /// The same request gives the same bytes. DeviceError when there is no NVRTC; CompilationError
  /// with the compiler's log when the source is refused or `timeout` (seconds) has passed.
  CompiledKernel compile(const CompileRequest& request, double timeout) const;

 private:
  Nvrtc();

  std::string reason_, path_, identity_;
  int major_ = 0, minor_ = 0;
  std::vector<int> architectures_;
};

/// What is said of a request whose time, in seconds, was not enough.
std::string too_late(const CompileRequest& request, double timeout);

/// The digest of everything that changes the binary: source, included text, options, architecture,
/// compiler.
std::string compile_key(const CompileRequest& request, const std::string& compiler_identity);

}  // namespace cuop::jit
