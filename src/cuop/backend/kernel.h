// Which of an operator's kernels runs. Most calls leave it to the operator; JIT wrappers, the tuner
// and tests ask for a certain one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cuop::backend {

enum class KernelType : uint8_t {
  kAuto,        ///< the fastest, measured or by rule
  kSimple,      ///< plain loops: the baseline instruction set, one thread
  kTiled,       ///< blocked, vectorised, several threads
  kTensorCore,  ///< a GPU's matrix units
};
const char* name(KernelType type);
/// Inverse of `name`: auto, simple, tiled, tensor_core; ExecutionError names them.
KernelType parse_kernel_type(std::string_view text);

/// One way to run an operator. The default is the operator's own best kernel.
struct Kernel {
  KernelType type = KernelType::kTiled;
  int64_t tile = 0;  ///< edge of the tile; 0: the kernel's own choice
  bool is_default() const { return *this == Kernel{}; }
  bool operator==(const Kernel&) const = default;
};
/// "simple", "tiled", "tiled/64".
std::string name(const Kernel& kernel);
/// Inverse of `name`; false when the text names no kernel.
bool parse_kernel(std::string_view text, Kernel& kernel);

/// What calls of this thread ask for.
const Kernel& asked_kernel();
/// Asks for a kernel for the time of its life.
class KernelScope {
 public:
  explicit KernelScope(const Kernel& kernel);
  ~KernelScope();
  KernelScope(const KernelScope&) = delete;
  KernelScope& operator=(const KernelScope&) = delete;

 private:
  Kernel before_;
};

}  // namespace cuop::backend
