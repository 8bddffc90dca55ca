#include "cuop/dist/plan/plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <set>
#include <sstream>

#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/json.h"
#include "cuop/core/text.h"
#include "cuop/dist/relay.h"

namespace cuop::dist {

const char* name(StepKind kind) {
  static constexpr const char* kNames[] = {"move", "compute", "combine"};
  return kNames[static_cast<size_t>(kind)];
}

namespace {

template <class T>
T total(const std::vector<PlanStep>& steps, T PlanStep::*part) {
  T sum = 0;
  for (const PlanStep& step : steps) sum += step.*part;
  return sum;
}

/// The setting that has a bit for each input that is passed on, and inputs that have one.
constexpr const char* kRelayed = "relayed";
constexpr size_t kMostRelayed = 62;

/// How many ranks need all of a tensor; 0 where a rank has all of it.
int count_made_whole(const std::vector<Box>& owners, const std::vector<Need>& needs) {
  const auto first =
      std::find_if(owners.begin(), owners.end(), [](const Box& box) { return !box.empty(); });
  if (first == owners.end()) return 0;
  Box whole = *first;
  for (const Box& box : owners) {
    if (box.empty()) continue;
    for (int dim = 0; dim < box.ndim(); ++dim) {
      whole.low[dim] = std::min(whole.low[dim], box.low[dim]);
      whole.high[dim] = std::max(whole.high[dim], box.high[dim]);
    }
  }
  if (std::find(owners.begin(), owners.end(), whole) != owners.end()) return 0;
  std::set<int> ranks;
  for (const Need& need : needs) {
    if (need.box.contains(whole)) ranks.insert(need.rank);
  }
  return static_cast<int>(ranks.size());
}

}  // namespace

int64_t Plan::bytes() const { return total(steps, &PlanStep::bytes); }
double Plan::flops() const { return total(steps, &PlanStep::flops); }
double Plan::seconds() const { return total(steps, &PlanStep::seconds); }

void PlanStep::repeat(int64_t times) {
  constexpr int64_t kMost = int64_t{1} << 61;  // sums of a few do not overflow
  for (int64_t* figure : {&bytes, &rank_bytes, &network_bytes, &messages}) {
    int64_t product = 0;
    const bool is_beyond = __builtin_mul_overflow(*figure, times, &product);
    *figure = is_beyond ? kMost : std::min(product, kMost);
  }
  flops *= static_cast<double>(times);
  seconds *= static_cast<double>(times);
}

double Plan::seconds(bool of_moves) const {
  double sum = 0;
  for (const PlanStep& step : steps) {
    if ((step.kind != StepKind::kCompute) == of_moves) sum += step.seconds;
  }
  return sum;
}

void add_move(Plan& plan, const Machine& machine, const std::string& text,
              const std::vector<Box>& owners, const std::vector<Need>& needs, DType dtype,
              Sources sources) {
  const Traffic traffic = plan_traffic(owners, needs, sources);
  PlanStep step;
  step.kind = sources == Sources::kAll ? StepKind::kCombine : StepKind::kMove;
  step.text = text;
  step.bytes = traffic.total() * itemsize(dtype);
  const Traffic::Busiest most = traffic.busiest_links(0);
  step.rank_bytes = most.elements * itemsize(dtype);
  step.messages = most.messages;
  const LinkLoad load = load_of(traffic, machine, dtype);
  step.network_bytes = load.network_bytes;
  step.seconds = transfer_seconds(machine, load);
  if (sources == Sources::kAll) {  // what arrives is folded: read once, added to what is there
    step.seconds += static_cast<double>(2 * step.rank_bytes) / machine.memory_bandwidth;
  }
  if (sources == Sources::kReplicas) step.whole_on = count_made_whole(owners, needs);
  plan.steps.push_back(std::move(step));
}

void add_fetch(Plan& plan, const Machine& machine, const std::string& text,
               const std::vector<Box>& owners, const std::vector<Box>& boxes, DType dtype,
               size_t input) {
  add_move(plan, machine, text, owners, needs_of(boxes), dtype);
  const std::optional<Relay> relay = relay_of(owners, boxes);
  if (!relay || input >= kMostRelayed) return;
  Plan relayed;
  add_move(relayed, machine, cat(text, ", a part to each that shares a box"), owners,
           needs_of(relay->first), dtype);
  add_move(relayed, machine, "those parts, passed on", relay->parts, needs_of(relay->shared),
           dtype);
  for (PlanStep& step : relayed.steps) step.whole_on = 0;  // its owner has had all of it
  if (relayed.seconds() >= plan.steps.back().seconds) return;
  plan.steps.pop_back();
  plan.steps.insert(plan.steps.end(), relayed.steps.begin(), relayed.steps.end());
  plan.settings[kRelayed] |= int64_t{1} << input;
}

bool is_relayed(const Plan& plan, size_t input) {
  const auto found = plan.settings.find(kRelayed);
  return found != plan.settings.end() && input < kMostRelayed && (found->second >> input & 1) != 0;
}

void add_redistribution(Plan& plan, const Machine& machine, const std::string& name,
                        const Shape& shape, DType dtype, const Sharding& from, const Sharding& to) {
  if (same_owners(from, to, shape)) return;
  add_move(plan, machine, cat(name, " ", shape, ": ", from, " -> ", to), from.owner_boxes(shape),
           needs_of(to.owner_boxes(shape)), dtype);
}

void add_input(Plan& plan, const Machine& machine, const Placement& input, const Sharding& to,
               bool may_relay) {
  plan.inputs.push_back({input.name, input.shape, input.dtype, to});
  if (may_relay && !same_owners(input.sharding, to, input.shape)) {
    const std::string text = cat(input.name, " ", input.shape, ": ", input.sharding, " -> ", to);
    return add_fetch(plan, machine, text, input.sharding.owner_boxes(input.shape),
                     to.owner_boxes(input.shape), input.dtype, plan.inputs.size() - 1);
  }
  add_redistribution(plan, machine, input.name, input.shape, input.dtype, input.sharding, to);
}

void add_output(Plan& plan, const Machine& machine, const Placement& made,
                const std::optional<Sharding>& wanted) {
  plan.outputs = {made, made};
  if (!wanted) return;
  plan.outputs[1].sharding = *wanted;
  const auto before = static_cast<std::ptrdiff_t>(plan.steps.size());
  add_redistribution(plan, machine, made.name, made.shape, made.dtype, made.sharding, *wanted);
  for (auto step = plan.steps.begin() + before; step != plan.steps.end(); ++step) {
    step->whole_on = 0;  // the caller asked for it
  }
}

void add_compute(Plan& plan, const Machine& machine, const std::string& text, double flops,
                 int64_t bytes, DType dtype, double efficiency) {
  PlanStep step;
  step.kind = StepKind::kCompute;
  step.text = text;
  step.flops = flops;
  step.seconds = compute_seconds(machine, flops / efficiency, bytes, dtype);
  plan.steps.push_back(std::move(step));
}

LinkLoad load_of(const Traffic& traffic, const Machine& machine, DType dtype) {
  const Traffic::Busiest most = traffic.busiest_links(machine.ranks_per_host);
  const int64_t item = itemsize(dtype);
  return {most.elements * item, most.messages, most.network_elements * item, most.network_messages};
}

int64_t largest_block(const Shape& shape, DType dtype, const Sharding& sharding) {
  int64_t most = 0;
  for (const Box& box : sharding.owner_boxes(shape)) most = std::max(most, box.size());
  return most * itemsize(dtype);
}

Plan choose(std::vector<Plan> plans, const Machine& machine, std::string_view strategy,
            const Floor& floor, const std::vector<size_t>& plain) {
  std::vector<Candidate> candidates;
  std::set<std::string> known;
  const auto may_be_taken = [&](const Plan& plan) {
    return (strategy.empty() || plan.strategy == strategy) &&
           plan.memory_per_rank <= machine.memory;
  };
  const Plan* best = nullptr;
  const Plan* smallest = nullptr;
  for (const Plan& plan : plans) {
    const bool is_feasible = plan.memory_per_rank <= machine.memory;
    candidates.push_back({plan.strategy, plan.detail, plan.bytes(), plan.memory_per_rank,
                          plan.seconds(), is_feasible});
    known.insert(plan.strategy);
    if (!strategy.empty() && plan.strategy != strategy) continue;
    if (smallest == nullptr || plan.memory_per_rank < smallest->memory_per_rank) smallest = &plan;
    if (is_feasible && (best == nullptr || plan.seconds() < best->seconds())) best = &plan;
  }
  if (best != nullptr) {
    double least = (1 + kPredictionNoise) * best->seconds();
    for (const size_t number : plain) {
      const Plan& plan = plans.at(number);
      if (!may_be_taken(plan) || plan.seconds() >= least) continue;
      best = &plan;
      least = plan.seconds();
    }
  }
  const std::string& op = plans.at(0).op;
  if (smallest == nullptr) {
    throw ExecutionError(
        cat(op, ": there is no strategy \"", strategy, "\"; possible here are ", join(known)));
  }
  if (best == nullptr) {
    throw MemoryError(cat(op, ": no plan fits the memory limit of ", format_bytes(machine.memory),
                          " a rank; the smallest (", smallest->strategy, ") needs ",
                          format_bytes(smallest->memory_per_rank), " (", smallest->memory_per_rank,
                          " bytes)"));
  }
  Plan chosen = *best;
  chosen.candidates = std::move(candidates);
  chosen.floor = floor;
  return chosen;
}

uint64_t Plan::hash() const { return hash_text(to_json()); }

namespace {

template <size_t N>
std::string scaled(double value, double base, const std::array<const char*, N>& units) {
  size_t unit = 0;
  while (unit + 1 < N && value >= base) {
    value /= base;
    ++unit;
  }
  std::ostringstream out;
  out << std::setprecision(value < 100 ? 3 : 4) << value << ' ' << units[unit];
  return out.str();
}

/// Predicted beside measured, a line each. What a GPU's host cannot know is "-".
std::string comparison(const Plan& plan) {
  const Measured& measured = *plan.measured;
  const auto host = [&](double seconds) {
    return measured.is_on_gpu ? std::string("-") : format_seconds(seconds);
  };
  int64_t busiest = 0;
  for (const PlanStep& step : plan.steps) busiest += step.rank_bytes;
  std::ostringstream out;
  const auto line = [&](const std::string& what, const std::string& predicted,
                        const std::string& found) {
    out << "  " << std::left << std::setw(12) << what << std::right << std::setw(12) << predicted
        << std::setw(14) << found << '\n';
  };
  line("", "predicted", "measured");
  line("moves", format_seconds(plan.seconds(true)), host(measured.move_seconds));
  line("arithmetic", format_seconds(plan.seconds(false)), host(measured.compute_seconds()));
  line("work", format_seconds(plan.seconds()), host(measured.work_seconds));
  if (measured.is_on_gpu) {
    line("on the GPU", format_seconds(plan.seconds()),
         measured.gpu_seconds > 0 ? format_seconds(measured.gpu_seconds) : "-");
  }
  line("whole call",
       plan.call_seconds > 0 ? format_seconds(plan.seconds() + plan.call_seconds) : "-",
       format_seconds(measured.seconds));
  line("sent", format_bytes(busiest), format_bytes(measured.bytes_sent));
  line("memory", format_bytes(plan.memory_per_rank), "-");
  if (plan.floor.seconds > 0) {
    std::ostringstream share;
    const bool is_known = !measured.is_on_gpu || measured.gpu_seconds > 0;
    const double best = measured.best_seconds();
    if (is_known && best > 0)
      share << std::setprecision(3) << 100.0 * plan.floor.seconds / best << " %";
    line("floor", format_seconds(plan.floor.seconds), is_known ? share.str() : "-");
  }
  out << "  (measured on rank " << measured.rank << "; sent: predicted of the busiest rank)\n";
  return out.str();
}

void write(JsonWriter& json, const char* key, const std::vector<Placement>& placements) {
  json.key(key).open('[');
  for (const Placement& placement : placements) {
    json.object("name", placement.name, "shape", placement.shape, "dtype", cat(placement.dtype),
                "sharding", cat(placement.sharding));
  }
  json.close();
}

}  // namespace

std::string format_seconds(double seconds) {
  if (seconds <= 0) return "0 s";
  return scaled(seconds * 1e9, 1000.0, std::array<const char*, 4>{"ns", "us", "ms", "s"});
}

std::string Plan::to_string() const {
  return cat(op, ": ", strategy, detail.empty() ? "" : " ", detail, " on ", ranks,
             ranks == 1 ? " rank, " : " ranks, ", format_bytes(bytes()), " moved, ",
             format_bytes(memory_per_rank), " a rank, ", format_seconds(seconds()), " predicted",
             floor.seconds > 0 ? cat(", floor ", format_seconds(floor.seconds)) : "",
             measured ? cat(", ", format_seconds(measured->seconds), " measured") : "");
}

std::string Plan::explain() const {
  std::ostringstream out;
  out << to_string() << '\n';
  for (const PlanStep& step : steps) {
    out << "  " << std::left << std::setw(8) << name(step.kind) << step.text;
    if (step.bytes > 0) {
      out << ": " << format_bytes(step.bytes) << " (busiest rank " << format_bytes(step.rank_bytes)
          << ", " << step.messages << " messages"
          << (step.network_bytes > 0 ? cat(", ", format_bytes(step.network_bytes), " between hosts")
                                     : "")
          << ')';
    }
    if (step.flops > 0) out << ": " << std::setprecision(3) << step.flops << " flop on a rank";
    out << ", " << format_seconds(step.seconds) << '\n';
  }
  if (floor.seconds > 0) {
    out << "  floor   at least " << std::setprecision(3) << floor.flops << " flop and "
        << format_bytes(floor.memory_bytes) << " of memory in all, "
        << format_bytes(floor.link_bytes)
        << " over the links of a rank: " << format_seconds(floor.seconds) << '\n';
  }
  if (measured) out << comparison(*this);
  if (candidates.size() > 1) out << "  considered\n";
  for (const Candidate& candidate : candidates) {
    if (candidates.size() < 2) break;
    const bool is_chosen = candidate.strategy == strategy && candidate.detail == detail;
    out << "  " << (is_chosen ? "* " : "  ") << candidate.strategy << ' ' << candidate.detail
        << ": " << format_bytes(candidate.bytes) << " moved, " << format_bytes(candidate.memory)
        << " a rank, " << format_seconds(candidate.seconds)
        << (candidate.is_feasible ? "" : ", does not fit the memory") << '\n';
  }
  return out.str();
}

std::string Plan::to_json() const {
  std::ostringstream out;
  out << std::setprecision(9);
  JsonWriter json(out);
  json.open('{').members("op", op, "strategy", strategy, "detail", detail, "ranks", ranks, "bytes",
                         bytes(), "memory_per_rank", memory_per_rank, "flops", flops(), "seconds",
                         seconds(), "call_seconds", call_seconds, "floor", floor.seconds,
                         "floor_flops", floor.flops, "floor_memory_bytes", floor.memory_bytes,
                         "floor_link_bytes", floor.link_bytes);
  write(json, "inputs", inputs);
  write(json, "outputs", outputs);
  json.key("settings").open('{');
  for (const auto& [key, value] : settings) json.members(key, value);
  json.close().key("steps").open('[');
  for (const PlanStep& step : steps) {
    json.object("kind", name(step.kind), "text", step.text, "bytes", step.bytes, "rank_bytes",
                step.rank_bytes, "network_bytes", step.network_bytes, "messages", step.messages,
                "flops", step.flops, "seconds", step.seconds, "made",
                step.made ? cat(step.made->shape, step.made->sharding) : "");
  }
  json.close().key("candidates").open('[');
  for (const Candidate& candidate : candidates) {
    json.object("strategy", candidate.strategy, "detail", candidate.detail, "bytes",
                candidate.bytes, "memory", candidate.memory, "seconds", candidate.seconds,
                "is_feasible", candidate.is_feasible);
  }
  json.close();
  if (measured) {
    json.key("measured")
        .object("rank", measured->rank, "is_on_gpu", measured->is_on_gpu, "seconds",
                measured->seconds, "work_seconds", measured->work_seconds, "move_seconds",
                measured->move_seconds, "gpu_seconds", measured->gpu_seconds, "bytes_sent",
                measured->bytes_sent);
  }
  json.close();
  return out.str();
}

}  // namespace cuop::dist
