#include "cuop/dist/cost/machine.h"

#include <algorithm>
#include <cmath>

namespace cuop::dist {
namespace {

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace

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
  machine.half_speed = 8.0;                          // matrix units
  machine.fft_speed = machine.long_fft_speed = 0.1;  // memory bounds both
  machine.transposed_speed = 0.8;
  machine.recurrence_speed = 0;
  machine.link_bandwidth = 1e10;
  // What the host needs to launch a copy and to make streams wait for each other.
  machine.latency = 2e-5;
  machine.message_overhead = 5e-6;
  machine.overlap = 1;
  return machine;
}

double transfer_seconds(const Machine& machine, int64_t bytes, int64_t messages) {
  if (messages == 0) return 0.0;
  return machine.latency + static_cast<double>(messages) * machine.message_overhead +
         static_cast<double>(bytes) / machine.link_bandwidth;
}

double transfer_seconds(const Machine& machine, const LinkLoad& load) {
  const double within = transfer_seconds(machine, load.bytes, load.messages);
  if (load.network_messages == 0) return within;
  return std::max(within,
                  machine.network_latency +
                      static_cast<double>(load.network_messages) * machine.network_overhead +
                      static_cast<double>(load.network_bytes) / machine.network_bandwidth);
}

double wire_seconds(const Machine& machine, const LinkLoad& load) {
  return std::max(static_cast<double>(load.bytes) / machine.link_bandwidth,
                  static_cast<double>(load.network_bytes) / machine.network_bandwidth);
}

double start_seconds(const Machine& machine, const LinkLoad& load, int64_t latencies) {
  const auto level = [latencies](double latency, int64_t messages, double overhead) {
    return messages == 0 ? 0.0
                         : static_cast<double>(latencies) * latency +
                               static_cast<double>(messages) * overhead;
  };
  return std::max(level(machine.latency, load.messages, machine.message_overhead),
                  level(machine.network_latency, load.network_messages, machine.network_overhead));
}

LinkLoad spread_evenly(const Machine& machine, int64_t bytes, int64_t messages, int64_t ranks) {
  if (!machine.has_network(ranks)) return {bytes, messages};
  const double share = static_cast<double>(ranks - machine.ranks_per_host) /
                       static_cast<double>(ranks - 1);  // of the other ranks those on other hosts
  const auto out = [share](int64_t count) {
    return static_cast<int64_t>(std::ceil(share * static_cast<double>(count)));
  };
  return {bytes - out(bytes), messages - out(messages), out(bytes), out(messages)};
}

double fft_efficiency(const Machine& machine, int64_t line_bytes) {
  const auto bytes = static_cast<double>(std::clamp(line_bytes, kShortLine, kLongLine));
  const double part = std::log2(bytes / kShortLine) / std::log2(double{kLongLine} / kShortLine);
  return machine.fft_speed * std::pow(machine.long_fft_speed / machine.fft_speed, part);
}

double product_efficiency(const Machine& machine, const ProductSides& sides) {
  constexpr double kOfTiles = 0.5;  // of GPUs; fitted to products of 200 shapes on an H200
  constexpr double kLeast = 0.3;    // of other kernels, which serve the thinnest shapes
  const auto share = [](const ProductSides& of) {  // of empty ones as of one element
    return 1 / std::max(of.m, 1.0) + 1 / std::max(of.n, 1.0) + kOfTiles / std::max(of.k, 1.0);
  };
  const double of_short = share({kShortProduct, kShortProduct, kShortProduct});
  const double of_long = share({kLongProduct, kLongProduct, kLongProduct});
  const double speed = std::clamp(machine.short_speed, kLeast, 1.0);
  // (1 + cost of_long) / (1 + cost of_short) is short_speed.
  const double cost = (1 - speed) / (speed * of_short - of_long);
  return std::clamp((1 + cost * of_long) / (1 + cost * share(sides)), kLeast, 1.0);
}

double compute_seconds(const Machine& machine, double flops, int64_t bytes, DType dtype) {
  const DType real = real_dtype(dtype);
  const double speed = itemsize(real) == 8 ? machine.double_speed
                       : is_half(real)     ? machine.half_speed
                                           : 1.0;
  return std::max(flops / (machine.flops * speed),
                  static_cast<double>(bytes) / machine.memory_bandwidth);
}

}  // namespace cuop::dist
