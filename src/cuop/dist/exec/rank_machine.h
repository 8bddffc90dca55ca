// Figures of this rank for planning.
#pragma once

#include <cstdint>

#include "cuop/core/device.h"
#include "cuop/dist/cost/machine.h"

namespace cuop::dist {

class Communicator;

/// Of the cores that this process or thread computes on.
Machine local_machine();
/// Of a rank that computes on `device`: of a GPU the peaks that the driver's figures imply, and
/// where tensors go from GPU to GPU (`is_linked`) the link to the next one, over which one copy is
/// timed when it is first asked for.
Machine rank_machine(Device device, bool is_linked);

/// Bytes a second that one copy between two devices (or within one) goes, the host among them:
/// timed when it is first asked for.
double link_bandwidth(Device from, Device to);

/// The way between memory of the host and a device, in bytes a second: timed with large copies when
/// it is first asked for.
struct HostLink {
  double upload = 1e10;
  double download = 1e10;
  /// Where copies go both ways at a time, the part of the shorter one that the longer one hides.
  double duplex = 0;
  /// Seconds that each stretch of memory takes beside its bytes, of rows that lie apart: assumed.
  double stretch = 0;
};
/// What the host's memory is: as any program gets it, or page-locked, so that a GPU copies from it
/// and to it without the host's threads.
enum class HostPages : uint8_t { kOrdinary, kLocked };

HostLink host_link(Device device, HostPages pages = HostPages::kOrdinary);
/// The stretch of such links, which takes no measuring.
double stretch_seconds(Device device, HostPages pages = HostPages::kOrdinary);
/// The same of this rank while all ranks copy, each from and to its own device: they share the
/// host's memory and its cores. Collective, also where it has been measured.
HostLink host_link(Communicator& comm, Device device, HostPages pages);

}  // namespace cuop::dist
