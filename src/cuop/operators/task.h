// One call of an operator after all checks: what it costs, which kernels can run it, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cuop/backend/kernel.h"
#include "cuop/core/tensor.h"
#include "cuop/core/trace.h"

namespace cuop {

/// The work of one call: arithmetic operations, and bytes that must be read and written at least.
struct Cost {
  double flops = 0.0;
  int64_t bytes = 0;
};

using backend::Kernel;
using backend::KernelType;

/// Whose kernels run an operator on a GPU.
enum class GpuKernels : uint8_t { kOwn, kCublasLt, kCudnn };

/// The kernels of operators without a tile size, the default first.
inline constexpr Kernel kTiledOrSimple[] = {{KernelType::kTiled}, {KernelType::kSimple}};

// Kernels of operators' own on a GPU, the default first: values that the templates of their text
// are compiled with. Those that come to the same launches for a task are taken for one.
inline constexpr Kernel kElementwiseOnGpu[] = {{},
                                               {.shape = {.threads = 128}},
                                               {.shape = {.threads = 512}},
                                               {.shape = {.access_bytes = 8}},
                                               {.shape = {.access_bytes = 4}}};
inline constexpr Kernel kRowsOnGpu[] = {{},
                                        {.shape = {.threads = 128}},
                                        {.shape = {.threads = 256}},
                                        {.shape = {.threads = 512}},
                                        {.shape = {.access_bytes = 8}},
                                        {.shape = {.team = 32}},
                                        {.shape = {.team = 128}},
                                        {.shape = {.team = 256}}};
inline constexpr Kernel kMatrixVectorOnGpu[] = {{},
                                                {.shape = {.access_bytes = 8}},
                                                {.shape = {.team = 8}},
                                                {.shape = {.team = 32}},
                                                {.shape = {.team = 128}},
                                                {.shape = {.team = 256}}};
/// The first is cuDNN's, or the next where there is none.
inline constexpr Kernel kConvolutionOnGpu[] = {{},
                                               {.shape = {.each = 8}},
                                               {.shape = {.each = 4}},
                                               {.shape = {.threads = 128, .each = 8}},
                                               {.shape = {.threads = 512, .each = 8}}};

struct Task {
  int64_t start_ns = trace::now_ns();  ///< made first thing, so that checks count as overhead
  std::vector<int64_t> sizes;          ///< the sizes and flags on which the best kernel depends
  Cost cost;
  std::span<const Kernel> kernels = std::span(kTiledOrSimple).first(1);
  std::span<const Kernel> gpu_kernels = std::span(kTiledOrSimple).first(1);
  bool reads_out = false;  ///< the values of `out` before the call are an input
  Tensor out;
  /// Fills its argument, by the kernel that this thread asks for (backend/kernel.h).
  std::function<void(const Tensor& out)> run;
  /// The same without any other effect, for trial runs; empty where `run` has none.
  std::function<void(const Tensor& out)> trial;
  /// Fills its argument, a tensor on the CPU, from copies of the inputs there, without any other
  /// effect: what a GPU's result is compared with. Empty where nothing can be compared.
  std::function<void(const Tensor& out)> on_cpu;
};

}  // namespace cuop
