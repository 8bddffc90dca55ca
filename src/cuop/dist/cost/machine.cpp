#include "cuop/dist/cost/machine.h"

#include <algorithm>

namespace cuop::dist {

Machine Machine::host(int cores_per_rank) {
  Machine machine;
  // A core's share: 512-bit FMA units at a sustained 3 GHz reach about this on float32 products.
  machine.flops = 6e10 * std::max(1, cores_per_rank);
  return machine;
}

Machine Machine::gpu(int multiprocessors, int clock, int memory_clock, int memory_bus_bits) {
  Machine machine;
  // 128 multiply-adds a clock on each multiprocessor; memory moves twice a clock. Products and
  // copies reach some nine tenths of both.
  machine.flops = 0.9 * 2.0 * 128.0 * multiprocessors * clock * 1e3;
  machine.memory_bandwidth = 0.9 * 2.0 * memory_clock * 1e3 * memory_bus_bits / 8.0;
  machine.link_bandwidth = 1e10;
  // What the host needs to launch a copy and to make streams wait for each other.
  machine.latency = 2e-5;
  machine.message_overhead = 5e-6;
  return machine;
}

double transfer_seconds(const Machine& machine, int64_t bytes, int64_t messages) {
  if (messages == 0) return 0.0;
  return machine.latency + static_cast<double>(messages) * machine.message_overhead +
         static_cast<double>(bytes) / machine.link_bandwidth;
}

double compute_seconds(const Machine& machine, double flops, int64_t bytes, DType dtype) {
  // SIMD registers hold half as many numbers of twice the size.
  const double width = static_cast<double>(itemsize(real_dtype(compute_dtype(dtype)))) / 4.0;
  return std::max(flops * std::max(width, 1.0) / machine.flops,
                  static_cast<double>(bytes) / machine.memory_bandwidth);
}

}  // namespace cuop::dist
