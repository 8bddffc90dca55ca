// What a plan that was followed has cost, beside what it was predicted to cost.
#pragma once

#include <cstdint>

namespace cuop::dist {

/// On one rank. Times are the host's, seconds.
struct Measured {
  int rank = 0;             ///< that measured
  bool is_on_gpu = false;   ///< the host starts the work and goes on before it is done
  double seconds = 0;       ///< of the whole call: agreement, planning and work
  double work_seconds = 0;  ///< of following the plan
  double move_seconds = 0;  ///< of these in calls to other ranks, waits for them included
  double gpu_seconds = 0;   ///< what streams needed for the call; 0 unless a trace was recorded
  int64_t bytes_sent = 0;   ///< by this rank, of the work alone

  /// What work left between moves: arithmetic, and copies on this rank. With moves that overlap
  /// with arithmetic what was not hidden by them.
  double compute_seconds() const { return work_seconds - move_seconds; }
  /// Of the call, as well as it is known: on a GPU that of its streams.
  double best_seconds() const { return is_on_gpu && gpu_seconds > 0 ? gpu_seconds : seconds; }
};

}  // namespace cuop::dist
