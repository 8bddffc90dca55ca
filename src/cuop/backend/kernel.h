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

/// How a kernel of the operator's own shares its work among a GPU's threads; 0: as the kernel
/// chooses. A kernel takes of it what it has: all of these are values that its text is compiled
/// with.
struct KernelShape {
  int threads = 0;       ///< of a block: 128, 256, 512 or 1024
  int access_bytes = 0;  ///< of one access to memory at most: 4, 8 or 16
  int team = 0;          ///< threads that share a row
  int each = 0;          ///< results of a thread
  bool operator==(const KernelShape&) const = default;
};
/// "/block=128/access=8/team=32/each=4", without what is 0.
std::string text_of(const KernelShape& shape);

/// One way to run an operator. The default is the operator's own best kernel; on a GPU a product
/// with a tile is a kernel of our own, else the library's.
struct Kernel {
  KernelType type = KernelType::kTiled;
  int64_t tile = 0;  ///< edge of the tile; 0: the kernel's own choice

  // Of a GPU's products with a tile; 0: the kernel's own choice.
  int64_t threads = 0;       ///< of a block
  int64_t stages = 0;        ///< steps of the depth that have room in shared memory
  bool is_bulk = false;      ///< the copy engine brings rows, instead of threads their elements
  bool in_shared = true;     ///< false: operands are read from memory each time
  bool is_coalesced = true;  ///< false: neighbouring threads read far apart

  KernelShape shape{};  ///< of a GPU's kernels that are no products

  bool is_default() const { return *this == Kernel{}; }
  bool operator==(const Kernel&) const = default;
};
/// What bounds the kernels of a GPU: by default those of compute capability 9.0.
struct GpuLimits {
  int capability = 90;                        ///< 80 for 8.0
  int64_t shared_bytes = int64_t{227} << 10;  ///< of a block
};

/// "simple", "tiled", "tiled/64", "tiled/64/256/3": tile, threads and stages; "tiled/block=128";
/// with
/// "+bulk", "-shared" and "-coalesced" behind them.
std::string name(const Kernel& kernel);
/// Inverse of `name`; false when the text names no kernel.
bool parse_kernel(std::string_view text, Kernel& kernel);

}  // namespace cuop::backend
