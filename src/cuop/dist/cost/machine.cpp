#include "cuop/dist/cost/machine.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace cuop::dist {
namespace {

/// All but the memory limit.
template <class M, class Visit>
void visit_figures(M& machine, Visit&& visit) {
  visit(machine.flops);
  visit(machine.half_speed);
  visit(machine.double_speed);
  visit(machine.memory_bandwidth);
  visit(machine.link_bandwidth);
  visit(machine.latency);
  visit(machine.message_overhead);
}

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
  machine.half_speed = 8.0;  // matrix units
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
  const DType real = real_dtype(dtype);
  const double speed = itemsize(real) == 8 ? machine.double_speed
                       : is_half(real)     ? machine.half_speed
                                           : 1.0;
  return std::max(flops / (machine.flops * speed),
                  static_cast<double>(bytes) / machine.memory_bandwidth);
}

std::string to_text(const Machine& machine) {
  std::ostringstream out;
  out.precision(17);
  visit_figures(machine, [&](double figure) { out << figure << ' '; });
  out << machine.memory;
  return out.str();
}

std::optional<Machine> machine_from(const std::string& text) {
  std::istringstream in(text);
  Machine machine;
  bool is_sound = true;
  visit_figures(machine, [&](double& figure) {
    in >> figure;
    is_sound = is_sound && std::isfinite(figure) && figure > 0.0;
  });
  in >> machine.memory;
  is_sound = is_sound && !in.fail() && in.eof() && machine.memory > 0;
  return is_sound ? std::optional(machine) : std::nullopt;
}

}  // namespace cuop::dist
