// The machine for which tests of plans plan.
#pragma once

#include "cuop/dist/cost/machine.h"

namespace cuop::dist::rank_test {

/// A pretended GPU of a cluster: fast arithmetic, a decent wire.
inline Machine cluster() {
  Machine machine;
  machine.flops = 5e13;
  machine.memory_bandwidth = 3e12;
  machine.link_bandwidth = 2e11;
  machine.latency = 5e-6;
  return machine;
}

/// One of four H200s of a host, as measured (benchmarks/results/2026-11-26-plan-choices.md).
inline Machine h200() {
  Machine machine;
  machine.flops = 4.84e13;
  machine.memory_bandwidth = 4.07e12;
  machine.link_bandwidth = 3.67e11;
  machine.latency = 2.36e-5;
  machine.message_overhead = 1.54e-5;
  machine.call_overhead = 4.5e-5;
  machine.overlap = 1;
  return machine;
}

}  // namespace cuop::dist::rank_test
