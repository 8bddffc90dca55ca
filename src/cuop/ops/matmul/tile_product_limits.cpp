// Which kernels of products there are on a GPU.
#include <algorithm>
#include <bit>

#include "cuop/core/text.h"
#include "cuop/ops/matmul/matmul_kernels.h"

namespace cuop::kernels {

namespace {

using backend::GpuLimits;
using backend::Kernel;
using backend::KernelType;

constexpr int64_t kMostThreads = 1024, kMostStages = 8;
constexpr int64_t kRegistersOfBlock = 65536, kMostRegisters = 255;
constexpr int kFirstWithCopies = 80, kFirstWithBulk = 90;
/// Registers of a thread beside its sums and operands.
constexpr int64_t kAddresses = 40;

bool is_power_of_two(int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<uint64_t>(value));
}

/// Tiles of a type, as text and as bounds; all are powers of two.
struct Tiles {
  int64_t least, most;
};
Tiles tiles_of(KernelType type) {
  switch (type) {
    case KernelType::kSimple:
      return {8, 32};
    case KernelType::kTensorCore:
      return {32, 128};
    default:
      return {16, 128};
  }
}

/// Registers of one sum: those of 16-bit floats are of 32 bits.
int64_t words_of_sum(DType dtype) { return std::max<int64_t>(1, itemsize(dtype) / 4); }

/// Threads, or warps on matrix units, along the rows of a tile, as the kernels divide it.
int64_t row_threads(int64_t threads) {
  int64_t side = 1;
  while (4 * side * side <= threads) side *= 2;
  return side;
}
int64_t row_warps(int64_t warps) { return warps < 4 ? 1 : warps < 16 ? 2 : 4; }

struct Registers {
  int64_t sums = 0, operands = 0;
  int64_t all() const { return sums + operands + kAddresses; }
};
Registers registers_of(const Kernel& kernel, DType dtype) {
  const int64_t tile = kernel.tile, words = words_of_sum(dtype);
  const int64_t sums = tile * tile / kernel.threads * words;
  switch (kernel.type) {
    case KernelType::kSimple:
      return {sums, 0};
    case KernelType::kTensorCore: {
      const int64_t rows = tile / row_warps(kernel.threads / 32);
      // Fragments of all rows and of 8 columns; those of float32 have two parts.
      return {sums, itemsize(dtype) >= 4 ? rows / 2 + 4 : rows / 4 + 2};
    }
    default: {
      const int64_t side = row_threads(kernel.threads);
      return {sums, 4 * (tile / side + tile * side / kernel.threads)};
    }
  }
}

/// "" when the tile can be shared by the threads.
std::string sharing_obstacle(const Kernel& kernel) {
  const int64_t tile = kernel.tile, threads = kernel.threads;
  const std::string what = cat("a ", tile, "-wide tile");
  if (kernel.type == KernelType::kTensorCore) {
    const int64_t rows = row_warps(threads / 32), columns = threads / 32 / rows;
    if (tile / rows >= 16 && tile / columns >= 8) return "";
    return cat(what, " on ", threads, " threads has parts of ", tile / rows, " x ", tile / columns,
               " for each warp; matrix units need 16 x 8 at least");
  }
  if (threads <= tile * tile) return "";
  return cat(what, " has ", tile * tile, " elements, fewer than the ", threads, " threads");
}

std::string number_obstacle(const Kernel& kernel) {
  const Tiles tiles = tiles_of(kernel.type);
  const std::string type = backend::name(kernel.type);
  if (!is_power_of_two(kernel.tile) || kernel.tile < tiles.least || kernel.tile > tiles.most) {
    return cat("tile_size is ", kernel.tile, ", allowed for a '", type,
               "' product on a GPU are powers of two from ", tiles.least, " to ", tiles.most);
  }
  if (!is_power_of_two(kernel.threads) || kernel.threads < 32 || kernel.threads > kMostThreads) {
    return cat("block_size is ", kernel.threads,
               ", allowed for a product on a GPU are powers of two from 32 to ", kMostThreads);
  }
  const int64_t most_stages = kernel.type == KernelType::kSimple ? 1 : kMostStages;
  if (kernel.stages < 1 || kernel.stages > most_stages) {
    return cat("num_stages is ", kernel.stages, ", allowed for a '", type, "' product are ",
               most_stages == 1 ? "1 (it copies nothing ahead)" : cat("1 to ", most_stages));
  }
  return "";
}

std::string capability_text(const GpuLimits& limits) {
  return cat(limits.capability / 10, ".", limits.capability % 10);
}

/// What only the plain kernel has, and what it has not.
std::string variant_obstacle(const Kernel& kernel, const GpuLimits& limits) {
  const std::string type = backend::name(kernel.type);
  if (kernel.type != KernelType::kSimple) {
    const auto only_simple = [&](const char* field) {
      return cat(field, " is False, but a '", type,
                 "' product is made of panels in shared memory that are read in order; kernel_type "
                 "'simple' has a variant without");
    };
    if (limits.capability < kFirstWithCopies) {
      return cat("a '", type, "' product copies ahead of its work, which needs a GPU of compute ",
                 "capability 8.0 or later; this one has ", capability_text(limits));
    }
    if (!kernel.in_shared) return only_simple("enable_shared_memory_opt");
    if (!kernel.is_coalesced) return only_simple("enable_memory_coalescing");
  }
  if (!kernel.is_bulk) return "";
  if (kernel.type == KernelType::kSimple) {
    return "enable_tma is True, but a 'simple' product copies element by element: use 'tiled' or "
           "'tensor_core'";
  }
  if (limits.capability >= kFirstWithBulk) return "";
  return cat("enable_tma needs a GPU with bulk copies (compute capability 9.0 or later); this one ",
             "has ", capability_text(limits));
}

}  // namespace

backend::Kernel completed_product(backend::Kernel kernel) {
  const bool is_simple = kernel.type == KernelType::kSimple;
  if (kernel.tile == 0) kernel.tile = is_simple ? 16 : 64;
  if (kernel.threads == 0) {
    switch (kernel.type) {
      case KernelType::kSimple:
        kernel.threads = std::min<int64_t>(256, kernel.tile * kernel.tile);
        break;
      case KernelType::kTensorCore:
        kernel.threads = kernel.tile > 64 ? 256 : 128;
        break;
      default:
        kernel.threads = kernel.tile > 32 ? 256 : 64;
    }
  }
  if (kernel.stages == 0) kernel.stages = is_simple ? 1 : 3;
  return kernel;
}

std::string product_obstacle(const Kernel& kernel, DType dtype, const GpuLimits& limits,
                             int64_t max_registers) {
  if (kernel.type == KernelType::kTensorCore && is_complex(dtype)) {
    return cat("kernel_type is 'tensor_core', but matrix units multiply real numbers, not ", dtype);
  }
  // Each takes for granted what the one before has looked at: numbers that can be divided.
  std::string obstacle = number_obstacle(kernel);
  if (obstacle.empty()) obstacle = variant_obstacle(kernel, limits);
  if (obstacle.empty()) obstacle = sharing_obstacle(kernel);
  if (!obstacle.empty()) return obstacle;
  const Registers needed = registers_of(kernel, dtype);
  int64_t most = std::min(kMostRegisters, kRegistersOfBlock / kernel.threads);
  if (max_registers != 0) most = std::min(most, max_registers);
  if (needed.all() > most) {
    return cat("a ", kernel.tile, "-wide '", name(kernel.type), "' tile of ", dtype, " on ",
               kernel.threads, " threads needs about ", needed.all(), " registers a thread (",
               needed.sums, " for sums, ", needed.operands, " for operands, ", kAddresses,
               " for addresses); ",
               most == max_registers ? "max_registers is " : "a block of that size has ", most);
  }
  if (kernel.type == KernelType::kSimple) return "";
  const auto item = static_cast<int>(itemsize(dtype)), tile = static_cast<int>(kernel.tile);
  const int64_t panel =
      std::max(jit::panel_bytes(item, tile, true), jit::panel_bytes(item, tile, false));
  const int64_t bytes = 2 * panel * kernel.stages;
  if (bytes <= limits.shared_bytes) return "";
  return cat(kernel.stages, " stages of ", kernel.tile, "-wide panels of ", dtype, " need up to ",
             bytes, " bytes of shared memory; a block has ", limits.shared_bytes);
}

}  // namespace cuop::kernels
