// The arguments of a generated kernel as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuop/jit/cuda/loops.h"

namespace cuop::jit {

/// The arguments as the kernel's one parameter, a struct, lays them out.
struct LaunchArguments {
  std::vector<std::byte> bytes;
  int64_t alignment = 8;
};
/// How a reduction's rows are shared among blocks; not used otherwise.
struct RowPieces {
  int64_t piece = 0;
  void* partials = nullptr;
  void* arrivals = nullptr;
};
LaunchArguments pack_arguments(const Expr& expr, const Bindings& bindings, const Loops& loops,
                               const RowPieces& pieces);

}  // namespace cuop::jit
