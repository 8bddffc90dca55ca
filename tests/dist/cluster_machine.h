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

}  // namespace cuop::dist::rank_test
