// The figures of a Machine by name: texts, notes between ranks, files and Python go through this
// one table.
#pragma once

#include <optional>
#include <string>

#include "cuop/dist/cost/machine.h"

namespace cuop::dist {

/// What a figure may be.
enum class FigureRange {
  kAboveZero,
  kSeconds,  ///< 0 or more
  kPart,     ///< from 0 to 1
};

struct MachineFigure {
  const char* name;
  double Machine::*member;
  FigureRange range;
  const char* what;
};

/// All but the two whole numbers, `ranks_per_host` and `memory`.
inline constexpr MachineFigure kMachineFigures[] = {
    {"flops", &Machine::flops, FigureRange::kAboveZero,
     "float32 multiply-adds x 2 a second of one rank."},
    {"half_speed", &Machine::half_speed, FigureRange::kAboveZero,
     "Flops of the 16-bit floats in parts of those of float32."},
    {"double_speed", &Machine::double_speed, FigureRange::kAboveZero,
     "Flops of float64 in the same parts."},
    {"fft_speed", &Machine::fft_speed, FigureRange::kAboveZero,
     "Flops of Fourier transforms of lines of up to 256 KiB, in the same parts."},
    {"long_fft_speed", &Machine::long_fft_speed, FigureRange::kAboveZero,
     "Of lines of 8 MiB and more."},
    {"conv_speed", &Machine::conv_speed, FigureRange::kAboveZero,
     "Flops of convolutions of images, likewise."},
    {"short_speed", &Machine::short_speed, FigureRange::kAboveZero,
     "Flops of many products of 1024 x 1024 at a time, likewise."},
    {"transposed_speed", &Machine::transposed_speed, FigureRange::kAboveZero,
     "Copies of rows to columns, in parts of the memory's bandwidth."},
    {"recurrence_speed", &Machine::recurrence_speed, FigureRange::kPart,
     "Recurrences along many lines at once, likewise; 0 where lines are transformed instead."},
    {"memory_bandwidth", &Machine::memory_bandwidth, FigureRange::kAboveZero,
     "Bytes a second that one rank reads or writes."},
    {"link_bandwidth", &Machine::link_bandwidth, FigureRange::kAboveZero,
     "Bytes a second that one rank sends or receives."},
    {"latency", &Machine::latency, FigureRange::kSeconds, "Seconds before a first byte arrives."},
    {"message_overhead", &Machine::message_overhead, FigureRange::kSeconds,
     "Seconds that each message costs its sender or receiver."},
    {"call_overhead", &Machine::call_overhead, FigureRange::kSeconds,
     "Seconds of a call beside its steps where one rank has the inputs: agreement, launches and "
     "the wait for its end."},
    {"sharded_call_overhead", &Machine::sharded_call_overhead, FigureRange::kSeconds,
     "The same of tensors in parts."},
    {"overlap", &Machine::overlap, FigureRange::kPart,
     "The part of a move that arithmetic hides: 1 of GPUs, which move beside it, 0 of hosts."},
    {"network_bandwidth", &Machine::network_bandwidth, FigureRange::kAboveZero,
     "Bytes a second that one rank sends to or receives from other hosts."},
    {"network_latency", &Machine::network_latency, FigureRange::kSeconds,
     "Seconds before a first byte arrives from another host."},
    {"network_overhead", &Machine::network_overhead, FigureRange::kSeconds,
     "Seconds of a message between hosts."}};

/// Of a range, as errors say it.
const char* name(FigureRange range);

/// "", or which figure no machine has: "overlap is 1.1; it must be a number from 0 to 1".
std::string wrong_figure(const Machine& machine);

/// All figures as text that reads back to the same bits.
std::string to_text(const Machine& machine);
/// Nothing unless it is the whole of such a text, with figures that a machine may have.
std::optional<Machine> machine_from(const std::string& text);

}  // namespace cuop::dist
