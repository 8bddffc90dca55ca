#include "cuop/executor/passes.h"

#include <algorithm>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/packed.h"
#include "cuop/executor/root_arrays.h"

namespace cuop::executor {

using dist::Packer;
using dist::Unpacker;

namespace {

constexpr int64_t kMostCounts = 16;
constexpr int64_t kLongestText = 1 << 16;

std::string packed(const std::optional<PassState>& state) {
  Packer packer;
  packer.put(state ? 1 : 0);
  if (!state) return packer.take();
  packer.put(state->number);
  packer.put(std::string_view(state->way));
  packer.put(static_cast<int64_t>(state->counts.size()));
  for (const int64_t count : state->counts) packer.put(count);
  return packer.take();
}

std::optional<PassState> state_from(const char* who, const std::string& bytes) {
  Unpacker unpacker(who, bytes);
  if (unpacker.number_to(1) == 0) return std::nullopt;
  PassState state;
  state.number = unpacker.number();
  state.way = unpacker.text(kLongestText);
  for (int64_t left = unpacker.number_to(kMostCounts); left > 0; --left) {
    state.counts.push_back(unpacker.number());
  }
  return state;
}

/// The place of an array and the boxes in it that are done.
std::string packed(const std::string& place, const std::vector<DoneTile>& done) {
  Packer packer;
  packer.put(std::string_view(place));
  packer.put(static_cast<int64_t>(done.size()));
  for (const DoneTile& tile : done) {
    packer.put(tile.box.low);
    packer.put(tile.box.high);
  }
  return packer.take();
}

}  // namespace

PlanPass on_ranks(const dist::CommunicatorPtr& comm, const TiledOptions& options) {
  return [=](const TileOperation& operation, const std::vector<Header>& inputs) {
    return plan_tiled(comm, operation, inputs, options);
  };
}

Passes::Passes(const dist::CommunicatorPtr& comm, const std::string& call,
               const TiledOptions& options)
    : comm_(comm), call_(call), options_(options) {
  if (options_.report) *options_.report = {};
  if (!is_logged()) return;
  dist::run_together(
      *comm_, cat(call_, ", with a log"),
      [&] {
        if (comm_->rank() == kRoot) left_ = options_.log->left();
      },
      [&] {
        if (comm_->size() == 1) return;
        left_ = state_from(call_.c_str(), dist::broadcast_text(*comm_, packed(left_), kRoot));
      });
}

void Passes::open(std::vector<Header> arrays) {
  headers_ = std::move(arrays);
  arrays_.resize(headers_.size());
  if (!is_logged()) return;
  dist::prepare_together(*comm_, cat(call_, ", its arrays"), [&] {
    if (comm_->rank() == kRoot) options_.log->open(headers_);
  });
}

Tensor Passes::made(int64_t number) {
  if (comm_->rank() != kRoot) return {};
  return is_logged() ? options_.log->array(number) : arrays_[slot(number)];
}

Tensor Passes::begin(const PassState& state, const PassSettings& settings, std::vector<Box>& done) {
  const bool is_root = comm_->rank() == kRoot;
  Tensor& array = arrays_[slot(state.number)];
  if (!is_logged()) {
    if (is_root && !array.is_defined()) array = new_result(*comm_, headers_[slot(state.number)]);
    return array;
  }
  std::vector<DoneTile> tiles;
  std::string told;
  dist::run_together(
      *comm_, cat(call_, ", pass ", state.number),
      [&] {
        if (!is_root) return;
        tiles = options_.log->begin(state);
        for (const DoneTile& tile : tiles) {
          if (settings.restore) settings.restore(tile);
        }
        array = options_.log->array(state.number);
        told = packed(options_.log->place(), tiles);
      },
      [&] {
        if (comm_->size() > 1) told = dist::broadcast_text(*comm_, told, kRoot);
        Unpacker unpacker(call_.c_str(), told);
        const std::string place(unpacker.text(kLongestText));
        for (int64_t left = unpacker.number(); left > 0; --left) {
          const Dims low = unpacker.dims();
          done.push_back({low, unpacker.dims()});
        }
        if (!is_root) array = options_.log->join(place, headers_[slot(state.number)]);
      });
  return array;
}

Tensor Passes::run(const PassState& state, const TileOperation& operation,
                   const std::vector<Tensor>& inputs, const PassSettings& settings) {
  TiledOptions options = options_;
  options.log = nullptr;
  options.report = std::make_shared<TiledReport>();
  const Tensor array = begin(state, settings, options.done);
  if (is_kept()) {
    options.on_tile = [log = options_.log, figures = settings.figures](const Box& box) {
      std::optional<std::vector<double>> known = std::vector<double>();
      if (figures) known = figures(box);
      if (known) log->note({box, *known});
    };
  }
  const bool has_view = array.is_defined() && settings.view;
  run_tiled(comm_, operation, inputs, options, has_view ? settings.view(array) : array);
  add_to_report(*options.report);
  return comm_->rank() == kRoot ? array : Tensor();
}

void Passes::add_to_report(const TiledReport& pass) {
  if (!options_.report) return;
  TiledReport& all = *options_.report;
  if (all.passes == 0 || pass.plan.memory > all.plan.memory) all.plan = pass.plan;
  all.device = pass.device;
  all.seconds += pass.seconds;
  all.peak = std::max(all.peak, pass.peak);
  all.halvings += pass.halvings;
  all.passes += pass.passes;
  all.predicted += pass.predicted;
  all.shared += pass.shared;
}

std::string way_of(const Passes& passes, const CallPlan& plan, const std::vector<KnownWay>& known) {
  const auto& left = passes.left();
  if (!left) {
    check_feasible(plan);
    return plan.way;
  }
  for (const KnownWay& each : known) {
    const bool is_in = left->number >= 0 && left->number <= each.last;
    if (left->way == each.way && is_in) return left->way;
  }
  throw ExecutionError(cat(plan.op, ": a run was cut off in pass ", left->number, " of \"",
                           left->way, "\", with which this one cannot go on"));
}

Tensor run_logged(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                  const std::vector<Tensor>& inputs, const TiledOptions& options) {
  const std::vector<Header> headers = agree_headers(*comm, operation.text, inputs, options);
  check_feasible(plan_tiled(comm, operation, headers, options));  // before room is taken
  const Header stored = operation.describe(headers).stored();
  Passes passes(comm, operation.text, options);
  passes.open({stored});
  return passes.run({0, "tiles", {}}, operation, inputs);
}

}  // namespace cuop::executor
