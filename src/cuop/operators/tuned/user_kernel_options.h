// What a kernel of the user's own is compiled with and launched with.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "cuop/core/scalar.h"
#include "cuop/core/tensor.h"

namespace cuop {

/// Macros that the source is compiled with.
struct KernelConfig {
  std::map<std::string, std::string> macros;
  /// "BLOCK=128 UNROLL=4".
  std::string text() const;
};

struct KernelLaunch {
  std::array<int64_t, 3> grid{1, 1, 1};  ///< blocks; a launch without blocks does nothing
  std::array<int64_t, 3> block{256, 1, 1};
  int64_t shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// A pointer parameter takes a tensor, every other one a number.
using KernelArgument = std::variant<Tensor, Scalar>;

struct UserKernelOptions {
  std::vector<KernelConfig> configs = {};  ///< the default first; empty for one without macros
  /// Parameters on which the best configuration depends: the value of a number, the shape of a
  /// tensor. Each combination is measured once.
  std::vector<std::string> key = {};
  std::vector<std::string> compiler_options = {};  ///< of NVRTC; none that reads files
};

}  // namespace cuop
