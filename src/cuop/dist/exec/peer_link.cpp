#include "cuop/dist/exec/peer_link.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>

#include "cuop/backend/cuda/imported_range.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/cost/machine.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {
namespace {

/// Seconds of a copy, the shortest of some.
double seconds_of_copy(const Tensor& to, const Tensor& from) {
  constexpr int kCopies = 8;
  const Stream stream = current_stream(to.device());
  double best = 1e9;
  for (int i = 0; i < kCopies; ++i) {
    const auto start = std::chrono::steady_clock::now();
    backend::cuda::copy_imported(to.data(), from.data(), to.nbytes(), stream);
    backend::runtime(to.device()).synchronize(stream);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return std::max(best, 1e-9);
}

/// Of the next rank's memory that this rank maps; 0 where not all map all.
double measured_bandwidth(Communicator& comm, const Tensor& mine, const Tensor& here) {
  const auto theirs = comm.map_memory(std::span(&mine, 1));
  bool is_read = true;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const bool is_mapped = theirs[static_cast<size_t>(rank)][0].is_defined();
    is_read = is_read && (rank == comm.rank() || is_mapped);
  }
  if (!agree_all(comm, is_read)) return 0;
  const auto next = static_cast<size_t>((comm.rank() + 1) % comm.size());
  const double seconds = seconds_of_copy(here, theirs[next][0]);
  // Nobody lets go of what others copy.
  return agree_min(comm, static_cast<double>(here.nbytes()) / seconds);
}

}  // namespace

double peer_bandwidth(Communicator& comm, Device device) {
  auto& known = comm.figures(Communicator::Figures::kPeers);
  if (known) return known->link_bandwidth;
  Machine machine;
  machine.link_bandwidth = 0;
  comm.exchanges_tensors(current_stream(device));  // by which it is found out who reads whom
  if (comm.maps_gpu_memory()) {
    constexpr int64_t kBytes = int64_t{32} << 20;
    Tensor mine, here;
    bool has_room = true;
    try {
      mine = empty({kBytes}, DType::kUInt8, device);
      here = empty({kBytes}, DType::kUInt8, device);
    } catch (const MemoryError&) {
      has_room = false;
    }
    if (!agree_all(comm, has_room)) return 0;
    machine.link_bandwidth = measured_bandwidth(comm, mine, here);
  }
  known = std::make_shared<const Machine>(machine);
  return machine.link_bandwidth;
}

}  // namespace cuop::dist
