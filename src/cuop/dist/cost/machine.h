// What a planner knows about the machine: plain figures, measured or assumed, the same on every
// rank. Nothing here touches hardware.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "cuop/core/dtype.h"

namespace cuop::dist {

struct Machine {
  double flops = 4e10;             ///< float32 multiply-adds x 2 a second of one rank
  double half_speed = 1.0;         ///< flops of the 16-bit floats in parts of those of float32
  double double_speed = 0.5;       ///< and of float64
  double memory_bandwidth = 1e10;  ///< bytes a second that one rank reads or writes
  double link_bandwidth = 4e9;     ///< bytes a second that one rank sends or receives
  double latency = 4e-6;           ///< seconds before a first byte arrives
  double message_overhead = 5e-7;  ///< seconds that each message costs its sender or receiver
  int64_t memory = std::numeric_limits<int64_t>::max();  ///< bytes that one rank may use

  /// Ranks that divide one host's cores, of which each gets `cores_per_rank`.
  static Machine host(int cores_per_rank);
  /// Ranks with a GPU each, whose tensors travel through host memory; clocks in kHz.
  static Machine gpu(int multiprocessors, int clock, int memory_clock, int memory_bus_bits);
};

/// All figures as text that reads back to the same bits.
std::string to_text(const Machine& machine);
/// Nothing unless it is the whole of such a text, with figures above 0.
std::optional<Machine> machine_from(const std::string& text);

/// Seconds for a rank that sends or receives `bytes` in `messages` messages.
double transfer_seconds(const Machine& machine, int64_t bytes, int64_t messages);
/// Seconds for `flops` on operands that are `bytes` long: the slower of arithmetic and memory.
double compute_seconds(const Machine& machine, double flops, int64_t bytes, DType dtype);

}  // namespace cuop::dist
