// What a planner knows about the machine: plain figures, measured or assumed, the same on every
// rank. Nothing here touches hardware.
#pragma once

#include <cstdint>
#include <limits>

#include "cuop/core/dtype.h"

namespace cuop::dist {

/// A figure more belongs into the table of machine_figures.h too.
struct Machine {
  double flops = 4e10;        ///< float32 multiply-adds x 2 a second of one rank
  double half_speed = 1.0;    ///< flops of the 16-bit floats in parts of those of float32
  double double_speed = 0.5;  ///< and of float64
  /// Flops of Fourier transforms of short lines and of long ones, which no cache holds, in parts of
  /// those of products in their dtype; what lies between is in fft_efficiency.
  double fft_speed = 0.4;
  double long_fft_speed = 0.1;
  double conv_speed = 0.7;         ///< of convolutions of images, in the same parts
  double short_speed = 1.0;        ///< of many products of kShortProduct a side, likewise
  double transposed_speed = 0.4;   ///< of copies of rows to columns, in parts of memory_bandwidth
  double memory_bandwidth = 1e10;  ///< bytes a second that one rank reads or writes
  double link_bandwidth = 4e9;     ///< bytes a second that one rank sends or receives
  double latency = 4e-6;           ///< seconds before a first byte arrives
  double message_overhead = 5e-7;  ///< seconds that each message costs its sender or receiver
  /// The same between hosts, which count where there are several.
  double network_bandwidth = 1.25e9;
  double network_latency = 3e-5;
  double network_overhead = 1e-6;
  /// Seconds of a call beside its steps: to agree on it, to start work and to hear of its end. Of
  /// one whose inputs one rank has, and of one of tensors in parts.
  double call_overhead = 0;
  double sharded_call_overhead = 0;
  /// The part of a move that arithmetic on the ranks' devices hides: GPUs move beside it, a host's
  /// cores do one of both.
  double overlap = 0;
  /// What recurrences along many lines at once reach of memory_bandwidth; 0 where lines are
  /// transformed instead: on GPUs, which need more lines than there are.
  double recurrence_speed = 0.3;
  /// So many ranks in a row share a host. 0: all of them, or the links of all are those above.
  int64_t ranks_per_host = 0;
  int64_t memory = std::numeric_limits<int64_t>::max();  ///< bytes that one rank may use

  /// Whether so many ranks lie on several hosts.
  bool has_network(int64_t ranks) const { return ranks_per_host > 0 && ranks > ranks_per_host; }

  /// Ranks that divide one host's cores, of which each gets `cores_per_rank`.
  static Machine host(int cores_per_rank);
  /// Ranks with a GPU each, whose tensors travel through host memory; clocks in kHz.
  static Machine gpu(int multiprocessors, int clock, int memory_clock, int memory_bus_bits);
};

/// What the ranks that have most of it send or receive over the links within hosts and between
/// hosts.
struct LinkLoad {
  int64_t bytes = 0, messages = 0;                  ///< within their host
  int64_t network_bytes = 0, network_messages = 0;  ///< to or from other hosts
};

/// Seconds for a rank that sends or receives `bytes` in `messages` messages within its host.
double transfer_seconds(const Machine& machine, int64_t bytes, int64_t messages);
/// The links within hosts and between them work at the same time: the slower of both.
double transfer_seconds(const Machine& machine, const LinkLoad& load);
/// Of that the part that grows with the bytes, and the rest, of which `latencies` count.
double wire_seconds(const Machine& machine, const LinkLoad& load);
double start_seconds(const Machine& machine, const LinkLoad& load, int64_t latencies);
/// The load of ranks that send or receive `bytes` in `messages`, to and from all of `ranks` alike.
LinkLoad spread_evenly(const Machine& machine, int64_t bytes, int64_t messages, int64_t ranks);
/// What transforms of lines of so many bytes reach: short are those of 256 KiB, long those of 8
/// MiB.
double fft_efficiency(const Machine& machine, int64_t line_bytes);
inline constexpr int64_t kShortLine = 256 << 10, kLongLine = 8 << 20;
/// Seconds for `flops` on operands that are `bytes` long: the slower of arithmetic and memory.
double compute_seconds(const Machine& machine, double flops, int64_t bytes, DType dtype);

/// Of a product [m, k] @ [k, n].
struct ProductSides {
  double m = 1, n = 1, k = 1;
};
/// Sides of square products that run at short_speed, and of those at the full rate.
inline constexpr double kShortProduct = 1024, kLongProduct = 8192;
/// The rate of a product in parts of that of large ones. What an element of an operand takes before
/// it is multiplied counts for the n or the m results that it serves, and the beginning and the end
/// of a tile for its k.
double product_efficiency(const Machine& machine, const ProductSides& sides);

}  // namespace cuop::dist
