// A plan is data: what will be moved and computed, where, at which predicted cost, and what else
// was considered. Planners are pure functions that return plans; executors follow them. A plan
// prints itself, explains itself and has a hash by which ranks make sure that they follow the same
// one.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/byte_size.h"
#include "cuop/core/dtype.h"
#include "cuop/dist/cost/machine.h"
#include "cuop/dist/moves.h"
#include "cuop/dist/plan/floor.h"
#include "cuop/dist/plan/measured.h"
#include "cuop/dist/sharding.h"

namespace cuop::dist {

/// A tensor of a plan: where it must lie when the arithmetic reads or writes it.
struct Placement {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
  Sharding sharding;
};

enum class StepKind : uint8_t { kMove, kCompute, kCombine };
const char* name(StepKind kind);

struct PlanStep {
  StepKind kind = StepKind::kCompute;
  std::string text;
  int64_t bytes = 0;                   ///< over all links between ranks
  int64_t rank_bytes = 0;              ///< sent or received by the busiest rank
  int64_t network_bytes = 0;           ///< between hosts, by the rank that has most of that
  int64_t messages = 0;                ///< of the rank that has most
  double flops = 0;                    ///< of the busiest rank
  double seconds = 0;                  ///< predicted
  std::vector<int> axes = {};          ///< that arithmetic works along
  std::optional<Placement> made = {};  ///< what it makes, of transforms in passes
  int whole_on = 0;  ///< of a move: ranks that get all of a tensor which none had all of, unasked
  /// Makes it one that happens so often.
  void repeat(int64_t times);
};

/// A strategy that was weighed, chosen or not.
struct Candidate {
  std::string strategy;
  std::string detail;
  int64_t bytes = 0;
  int64_t memory = 0;
  double seconds = 0;
  bool is_feasible = true;
};

struct Plan {
  std::string op;
  std::string strategy;
  std::string detail;  ///< what distinguishes it within the strategy, for example the grid
  int ranks = 1;
  std::vector<Placement> inputs = {};
  std::vector<Placement> outputs = {};
  std::vector<PlanStep> steps = {};
  std::map<std::string, int64_t> settings = {};  ///< whole numbers that the executor follows
  int64_t memory_per_rank = 0;                   ///< bytes of the rank that needs most
  Floor floor = {};                              ///< below which nothing on these ranks can be
  double call_seconds = 0;                       ///< predicted, of the call beside its steps
  std::vector<Candidate> candidates = {};
  std::optional<Measured> measured = {};  ///< of a report: what following it has cost

  int64_t bytes() const;   ///< moved between ranks
  double flops() const;    ///< of the busiest rank
  double seconds() const;  ///< predicted, of the steps
  /// The same of moves and of sums over ranks, or of arithmetic.
  double seconds(bool of_moves) const;
  int64_t setting(const std::string& key) const { return settings.at(key); }

  /// One line.
  std::string to_string() const;
  /// Steps, bytes, memory, predicted time, and the candidates with theirs; beside the predicted
  /// figures those that were measured, where there are any.
  std::string explain() const;
  std::string to_json() const;
  /// Equal on ranks that planned the same; covers everything that `to_json` writes of a plan that
  /// has not been followed.
  uint64_t hash() const;
};

/// What the traffic of elements of the dtype is on the machine's links.
LinkLoad load_of(const Traffic& traffic, const Machine& machine, DType dtype);
/// Appends the step that brings `placement` from its owners to where it is needed.
void add_move(Plan& plan, const Machine& machine, const std::string& text,
              const std::vector<Box>& owners, const std::vector<Need>& needs, DType dtype,
              Sources sources = Sources::kReplicas);
/// The same of the boxes of input number `input` that the ranks need. Where one rank has it,
/// several need the same box and that is predicted to be faster, these pass it on to each other
/// (relay.h): the executor asks `is_relayed`.
void add_fetch(Plan& plan, const Machine& machine, const std::string& text,
               const std::vector<Box>& owners, const std::vector<Box>& boxes, DType dtype,
               size_t input);
bool is_relayed(const Plan& plan, size_t input);
/// The same between two shardings of one tensor; nothing is added when they hold the same boxes.
void add_redistribution(Plan& plan, const Machine& machine, const std::string& name,
                        const Shape& shape, DType dtype, const Sharding& from, const Sharding& to);
/// An input, brought from where it lies to where the arithmetic reads it; `may_relay`: by
/// add_fetch.
void add_input(Plan& plan, const Machine& machine, const Placement& input, const Sharding& to,
               bool may_relay = false);
/// The result, brought from where it is made (outputs[0]) to where it is wanted (outputs[1]); where
/// it is wanted nowhere it stays. The last step of a plan.
void add_output(Plan& plan, const Machine& machine, const Placement& made,
                const std::optional<Sharding>& wanted);
/// `flops` and `bytes` read and written, of the busiest rank; `efficiency` is the share of the
/// machine's flops (those of a matrix product) that the work reaches.
void add_compute(Plan& plan, const Machine& machine, const std::string& text, double flops,
                 int64_t bytes, DType dtype, double efficiency = 1.0);

/// Bytes of the largest block of a tensor under a sharding.
int64_t largest_block(const Shape& shape, DType dtype, const Sharding& sharding);

/// The feasible plan of least predicted time (the first of equals), listing all as candidates.
/// `strategy`, when not empty, restricts the choice. ExecutionError when there is no such strategy,
/// MemoryError when none fits `machine.memory`. `floor`: of all of them. `plain`: numbers of plans
/// that others have to beat by more than kPredictionNoise; else the fastest of these is taken.
Plan choose(std::vector<Plan> plans, const Machine& machine, std::string_view strategy = {},
            const Floor& floor = {}, const std::vector<size_t>& plain = {});
/// Parts of a predicted time that say nothing about which of two plans is faster.
inline constexpr double kPredictionNoise = 0.03;

/// 0.0015 -> "1.5 ms".
std::string format_seconds(double seconds);

}  // namespace cuop::dist
