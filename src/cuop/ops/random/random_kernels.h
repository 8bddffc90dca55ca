// Whole blocks of random numbers, in counter order.
#pragma once

#include <cstdint>

#include "cuop/core/tensor.h"
#include "cuop/jit/cuda/kernel_fwd.h"
#include "cuop/ops/random/generator.h"

namespace cuop::kernels {

enum class Distribution : uint8_t { kNormal, kUniform, kInteger };

/// A draw: normal (mean, std), uniform [low, high) or integers low + [0, range).
struct Draw {
  Distribution distribution = Distribution::kNormal;
  double first = 0.0;   ///< mean or low
  double second = 1.0;  ///< std or high
  double last = 0.0;    ///< of uniform numbers: the dtype's largest below `second`
  int64_t low = 0;      ///< of integers
  uint64_t range = 0;   ///< of integers; 0 stands for 2^64
};

/// Words of the counters counter, counter+1, ... as numbers; 32-bit kinds give four a block, 64-bit
/// kinds two. `digits` are the binary digits of float uniforms: 24, 11 or 8.
struct RandomLoops {
  void (*normal_float)(Generator::Ticket, int64_t blocks, float mean, float std, float* out);
  void (*normal_double)(Generator::Ticket, int64_t blocks, double mean, double std, double* out);
  void (*uniform_float)(Generator::Ticket, int64_t blocks, int digits, float* out);
  void (*uniform_double)(Generator::Ticket, int64_t blocks, double* out);
  void (*integers)(Generator::Ticket, int64_t blocks, int64_t low, uint64_t range, int64_t* out);
};
template <class Level>
const RandomLoops& random_loops();

/// Fills a contiguous tensor.
void random_fill_cpu(const Tensor& out, const Draw& draw, Generator::Ticket ticket);
void random_fill_cuda(const Tensor& out, const Draw& draw, Generator::Ticket ticket);

jit::TextKernel random_fill_kernel(DType dtype, Distribution distribution);

}  // namespace cuop::kernels
