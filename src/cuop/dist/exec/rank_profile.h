// What all ranks of a communicator have recorded, brought to one of them and put on its clock: the
// events of their traces, and what each operation cost over ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuop/core/trace.h"
#include "cuop/dist/dist_tensor.h"

namespace cuop::dist {

/// How a rank's clock is read on the root's: `offset_ns` is to be added to its times, which is
/// right to within `error_ns`. Both are 0 where ranks are threads of one process.
struct ClockOffset {
  int64_t offset_ns = 0;
  int64_t error_ns = 0;
};

/// One rank's part, with the root's times. The detail of a distributed call is a CallFigures.
struct RankProfile {
  int rank = 0;  ///< as traces number it
  ClockOffset clock = {};
  std::vector<trace::Event> events = {};
  int64_t left_out = 0;  ///< events of short work that were too many to send
};

/// What may travel of each rank: distributed calls and the longest of the other events.
struct ProfileLimits {
  int64_t events = 200'000;
  int64_t bytes = int64_t{64} << 20;
};

/// Collective, while a trace is recorded on all ranks (else ExecutionError): what they have
/// recorded so far, in rank order on `root`, nothing elsewhere. Clocks are compared by short
/// messages there and back, of which the quickest counts. Waits for GPUs.
std::vector<RankProfile> gather_profiles(const CommunicatorPtr& comm, int root = 0,
                                         const ProfileLimits& limits = {});

/// An operation over ranks, all calls together. Times are sums over calls, in seconds: of streams
/// for work on a GPU where they are known, else of the host.
struct OperationCost {
  std::string category;  ///< "dist" (distributed calls), "comm" (between ranks), "op" (on a rank)
  std::string name;      ///< "matmul [row]"
  int64_t calls = 0;     ///< of the rank that made most
  double seconds = 0;    ///< of the rank that needed most
  int slowest = 0;       ///< which one that is
  double least_seconds = 0;  ///< of the rank that needed least, among those that made such calls
  double move_seconds = 0;   ///< of the slowest rank, in calls to other ranks; of "dist" alone
  double predicted = 0;      ///< of its calls' plans; 0 where there are none
  double floor = 0;          ///< below which its calls cannot be; 0 where that of one is not known
  double flops = 0;          ///< of the rank that has most
  int64_t bytes = 0;         ///< sent by all ranks, or read and written by an "op"
  std::map<std::pair<int, int>, int64_t> links = {};  ///< of "dist": from, to, bytes

  /// Part of the time that could not be less, 0 to 1; 0 where that is not known.
  double share_of_floor() const { return seconds > 0 ? floor / seconds : 0; }
};

/// Those of each category by itself, the longest first. Only the outermost spans of a category
/// count; what happens within a distributed call counts in the other categories too.
std::vector<OperationCost> operation_costs(const std::vector<RankProfile>& profiles);

/// One trace of all ranks for chrome://tracing and Perfetto, a process a rank; a clock's error
/// stands beside the rank's name.
std::string to_chrome_json(const std::vector<RankProfile>& profiles);

}  // namespace cuop::dist
