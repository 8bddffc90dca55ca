// What every communicator must do, as named cases over one rank's communicator. A harness brings
// the ranks together and runs a case on each of them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cuop/dist/comm/communicator.h"

namespace cuop::dist::conformance {

using Rank = const std::shared_ptr<Communicator>&;

struct Case {
  std::string name;
  std::function<void(Rank)> body;
};

/// Moving bytes: point to point, collectives, split.
std::vector<Case> movement_cases();
/// Every dtype with every operation.
std::vector<Case> reduction_cases();
/// Deadlines, aborts, wrong arguments, recovery.
std::vector<Case> failure_cases();
/// Messages of another length than expected, and those that a failure leaves under way.
std::vector<Case> given_up_cases();
/// What ranks know of each other, and how those that are left go on.
std::vector<Case> health_cases();
/// Two threads at once, missing buffers, waits for ranks that meet without this one.
std::vector<Case> misuse_cases();
/// The protocols of agree.h.
std::vector<Case> agreement_cases();

/// Runs the case on all ranks and returns when they are done.
using Runner = std::function<void(int ranks, const std::function<void(Rank)>& body)>;

std::vector<Case> all_cases();

/// Registers the cases as GoogleTest tests "Communicator_<kind>.<case>_<ranks>".
void register_suite(const std::string& kind, std::span<const int> rank_counts, const Runner& runner,
                    std::span<const Case> cases);

/// Returns on rank 0 when all others have left whatever they did before; they do not wait. (One
/// rank leaves a barrier while others are still in it, so an abort after a barrier may strike them
/// there.)
void all_report_to_rank_0(Rank comm);
/// The same on `rank`.
void all_report_to(Rank comm, int rank);

/// One byte of the pattern that rank `rank` sends at position `i`.
inline char pattern(int rank, int64_t i) {
  return static_cast<char>((rank * 37 + i * 11 + (i >> 8)) & 0x7f);
}
std::vector<char> pattern_bytes(int rank, int64_t bytes);
/// Uneven blocks, some empty, with gaps between them.
std::vector<Block> uneven_blocks(int ranks, int64_t scale);
int64_t total_extent(std::span<const Block> blocks);

}  // namespace cuop::dist::conformance
