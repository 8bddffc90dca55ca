#include "cuop/executor/line_fft.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cuop/executor/chirp_line.h"
#include "cuop/executor/line_steps.h"
#include "cuop/executor/passes.h"

namespace cuop::executor {
namespace {

constexpr const char* kFourSteps = "four steps";
constexpr const char* kChirp = "chirp";

CallPlan planned(const char* way, const std::vector<LineStep>& steps, const PlanPass& plan,
                 const CallPlan& whole) {
  std::vector<TilePass> passes;
  for (const LineStep& step : steps) {
    passes.push_back({step.text, 1, plan(step.operation, step.inputs)});
  }
  return in_passes(way, std::move(passes), whole);
}

/// Of those that fit that which takes least; else that which needs least.
bool is_better(const CallPlan& a, const CallPlan& b) {
  if (a.is_feasible() != b.is_feasible()) return a.is_feasible();
  return a.is_feasible() ? a.seconds() < b.seconds() : a.smallest < b.smallest;
}

Tensor in_four_steps(Passes& passes, const LineSteps& steps, const Tensor& x, bool is_root) {
  const LineStep first = steps.first();
  std::vector<Tensor> inputs(first.inputs.size());
  Tensor middle;
  if (passes.left() && passes.left()->number == 1) {
    middle = passes.made(0);
  } else {
    if (is_root) inputs = steps.first_inputs(x);
    middle = passes.run({0, kFourSteps, {}}, first.operation, inputs);
  }
  return passes.run({1, kFourSteps, {}}, steps.second().operation, {middle}, steps.into_line());
}

Tensor by_chirp(Passes& passes, const ChirpLine& line, const Header& result, const Tensor& x,
                bool is_root) {
  const Header matrix = line.matrix();
  std::vector<Header> arrays{matrix, matrix, result};
  // Products take the place of the columns, of which tiles share no row, unless a later run needs
  // those: pass n writes into array n, in turns.
  const bool is_kept = passes.is_kept();
  if (is_kept) arrays.insert(arrays.begin() + 2, matrix);
  const int64_t products = is_kept ? 2 : 4;
  passes.open(arrays);
  const int64_t done = passes.left() ? passes.left()->number : 0;
  const auto run = [&](int64_t number, const LineStep& step, std::vector<Tensor> inputs) {
    inputs.resize(step.inputs.size());
    return passes.run({number, kChirp, {}}, step.operation, inputs);
  };
  const auto given = [&](const auto& inputs) { return is_root ? inputs() : std::vector<Tensor>(); };
  if (done == 0) {
    run(0, line.filter(), given([&] { return ChirpLine::filter_inputs(matrix.dtype); }));
  }
  if (done <= 1) run(1, line.columns(), given([&] { return line.column_inputs(x); }));
  if (done <= products) run(products, line.products(), {passes.made(1), passes.made(0)});
  return run(products + 1, line.result(), {passes.made(products)});
}

}  // namespace

CallPlan fft_line_plan(const dist::FftBatch& batch, const Header& x, const PlanPass& plan) {
  const TileOperation lines = fft_tiles(batch);
  CallPlan whole = at_once(plan(lines, {x}));
  if (whole.is_feasible()) return whole;
  const Header line = lines.describe({x}).output;
  CallPlan best = whole;
  int64_t smallest = whole.smallest;
  const auto consider = [&](CallPlan made, int64_t scratch, int64_t kept) {
    made.scratch = scratch;
    made.kept_scratch = kept;
    smallest = std::min(smallest, made.smallest);
    if (is_better(made, best)) best = std::move(made);
  };
  if (const auto steps = LineSteps::of(batch, x, line)) {
    const int64_t bytes = bytes_of(steps->middle());
    consider(planned(kFourSteps, {steps->first(), steps->second()}, plan, whole), bytes, bytes);
  }
  if (const auto chirp = ChirpLine::of(batch, x, line)) {
    const int64_t bytes = bytes_of(chirp->matrix());
    consider(
        planned(kChirp, {chirp->filter(), chirp->columns(), chirp->products(), chirp->result()},
                plan, whole),
        2 * bytes, 3 * bytes);
  }
  best.smallest = smallest;
  return best;
}

Tensor fft_line(const dist::CommunicatorPtr& comm, const Tensor& x, const dist::FftBatch& batch,
                const TiledOptions& options) {
  const TileOperation whole = fft_tiles(batch);
  const Header given = agree_headers(*comm, whole.text, {x}, options)[0];
  const CallPlan plan = fft_line_plan(batch, given, on_ranks(comm, options));
  Passes passes(comm, whole.text, options);
  const Header line = whole.describe({given}).output;
  const auto steps = LineSteps::of(batch, given, line);
  const auto chirp = ChirpLine::of(batch, given, line);
  std::vector<KnownWay> ways{{kAtOnce, 0}};
  if (steps) ways.push_back({kFourSteps, 1});
  if (chirp) ways.push_back({kChirp, 3});
  const std::string way = way_of(passes, plan, ways);
  const bool is_root = comm->rank() == 0;
  if (way == kChirp) return by_chirp(passes, *chirp, line, x, is_root);
  if (way == kFourSteps) {
    passes.open({steps->middle(), line});
    return in_four_steps(passes, *steps, x, is_root);
  }
  passes.open({line});
  return passes.run({0, way, {}}, whole, {x});
}

}  // namespace cuop::executor
