#include "cuop/executor/tiled_call.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <utility>

#include "cuop/backend/execution.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/rank_team.h"
#include "cuop/dist/exec/calibration.h"
#include "cuop/dist/exec/call_frame.h"
#include "cuop/dist/exec/rank_machine.h"
#include "cuop/executor/call_plan.h"
#include "cuop/executor/known_plans.h"
#include "cuop/executor/process_boxes.h"
#include "cuop/executor/root_arrays.h"
#include "cuop/executor/tile_run.h"
#include "cuop/memory/current.h"
#include "cuop/memory/limited.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/pinned.h"
#include "cuop/ops/create/empty.h"

namespace cuop::executor {
namespace {

std::string full_text(const TileOperation& operation, const TiledOptions& options) {
  std::string text =
      cat(std::setprecision(17), operation.text, ", margin ", options.limits.safety_margin,
          ", tiles ", options.least_tiles, ", input on rank 0");
  if (options.limits.per_device) text += cat(", limit ", *options.limits.per_device);
  if (!options.done.empty()) text += cat(", done ", join(options.done));
  return text;
}

/// The inputs of rank 0 on its host.
std::vector<Tensor> given_inputs(const TileOperation& operation,
                                 const std::vector<Tensor>& inputs) {
  size_t count = inputs.size();
  while (count > 0 && !inputs[count - 1].is_defined()) --count;
  std::vector<Tensor> result;
  for (size_t i = 0; i < std::max<size_t>(count, 1); ++i) {
    if (i >= count || !inputs[i].is_defined()) {
      throw ExecutionError(
          cat(operation.text, ": ", operation.names.at(i), " was not given on rank 0"));
    }
    result.push_back(to_device(inputs[i], kCpu));
  }
  return result;
}

/// Settles how inputs travel to devices, of which the host packs what they unpack.
void settle_wire(Tiling& tiling, const TileMachine& machine) {
  dist::Machine host = dist::local_machine();
  host.link_bandwidth = machine.upload;
  tiling.wire = tiling.wire.over(host, tiling.computed, {tiling.input_bytes(), 1});
}

/// Plans with assumed figures; where the work will take long the ranks find out what they are.
TilePlan agreed_plan(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                     Tiling& tiling, Device device, const TiledOptions& options,
                     dist::HostPages pages) {
  TileMachine machine =
      options.machine ? *options.machine : tile_machine(*comm, device, options.limits, pages);
  settle_wire(tiling, machine);
  const TilePlan plan = plan_once(operation.text, tiling, machine, options.least_tiles);
  const bool is_known = options.machine || comm->figures(dist::figures_of(device)) != nullptr;
  // A limit is one on what measuring takes too.
  const bool has_room = machine.memory >= dist::calibration_bytes(device);
  if (is_known || !has_room || plan.seconds < dist::kWorthMeasuring) return plan;
  machine.device = dist::calibrate(comm, device, dist::figures_of(device), machine.device);
  return plan_once(operation.text, tiling, machine, options.least_tiles);
}

/// What the root's arrays are in, as far as they take time to copy: page-locked where all of them
/// are and every rank reads them there.
dist::HostPages agreed_pages(dist::Communicator& comm, const std::vector<Tensor>& arrays,
                             const Tensor& into, const Header& result, Device device) {
  constexpr int64_t kLeastBytes = 4 << 20;
  const bool is_read_here = comm.kind() == "thread" || comm.size() == 1;
  bool is_locked = is_read_here && !device.is_cpu();
  const auto look = [&](const Tensor& array) {
    if (!is_locked || array.nbytes() < kLeastBytes) return;
    is_locked = is_pinned(array, device);
  };
  if (comm.rank() == kRoot) {
    for (const Tensor& array : arrays) look(array);
    if (into.is_defined()) look(into);
    if (!into.is_defined() && bytes_of(result) >= kLeastBytes) is_locked = false;
  }
  const bool is_so = comm.size() == 1 ? is_locked : dist::agree_all(comm, is_locked);
  return is_so ? dist::HostPages::kLocked : dist::HostPages::kOrdinary;
}

/// The sums of the steps that each rank has made, added up on the root in rank order.
Tensor sum_over_ranks(dist::Communicator& comm, const Tiling& tiling, const TilePlan& plan,
                      const Tensor& mine) {
  std::vector<dist::Patch> sends, receives;
  std::vector<Tensor> sums(static_cast<size_t>(comm.size()));
  const bool is_root = comm.rank() == kRoot;
  if (mine.is_defined()) sums[static_cast<size_t>(comm.rank())] = mine;
  for (int r = 0; r < comm.size(); ++r) {
    if (r == kRoot || plan.range(tiling, r).length() == 0) continue;
    if (is_root) {
      sums[static_cast<size_t>(r)] = empty(mine.shape(), mine.dtype());
      receives.push_back({r, sums[static_cast<size_t>(r)]});
    }
    if (comm.rank() == r) sends.push_back({kRoot, mine});
  }
  comm.exchange(sends, receives);
  if (!is_root) return {};
  Tensor total = sums[0];
  for (int r = 1; r < comm.size(); ++r) {
    if (sums[static_cast<size_t>(r)].is_defined()) tiling.add(total, sums[static_cast<size_t>(r)]);
  }
  return tiling.finish ? tiling.finish(total) : total;
}

/// Appends boxes, apart from each other, that hold what of `box` is not in `other`.
void append_difference(std::vector<Box>& result, Box box, const Box& other) {
  if (!overlap(box, other)) {
    result.push_back(box);
    return;
  }
  for (int dim = 0; dim < box.ndim(); ++dim) {
    const Interval mine = box.interval(dim), common = intersect(box, other).interval(dim);
    for (const Interval side : {Interval{mine.low, common.low}, Interval{common.high, mine.high}}) {
      if (side.length() == 0) continue;
      result.push_back(box);
      result.back().set_interval(dim, side);
    }
    box.set_interval(dim, common);
  }
}

struct Call {
  dist::Communicator& comm;
  const Tiling& tiling;
  const TilePlan& plan;
  Device device;
  const TiledOptions& options;
  const std::shared_ptr<memory::LimitedResource> memory = memory::make_limited(device, plan.limit);
  TileRun run = {};

  /// Collective.
  TileSite site(const RootArrays& arrays, const std::vector<Tile>& tiles) const {
    TileSite result{device, memory};
    if (plan.shared > 0) {
      for (size_t i = 0; i < tiling.inputs.size(); ++i) {
        result.readers.push_back(plan.reader(tiling, comm.rank(), i));
      }
      result.boxes = arrays.boxes();
      if (!result.boxes) result.boxes = boxes_of_processes(tiles, result.readers);
    }
    // The margin was for what others take meanwhile.
    result.available = [where = device] { return usable_now(where, {0.0, std::nullopt}, 1); };
    if (comm.rank() == kRoot) result.on_progress = options.on_progress;
    return result;
  }

  std::shared_ptr<SharedBoxes> boxes_of_processes(const std::vector<Tile>& tiles,
                                                  const std::vector<Reader>& readers) const {
    const memory::ResourceScope scope(*memory);
    return std::make_shared<ProcessBoxes>(comm, device, rooms_for(tiling, tiles, readers));
  }

  /// Whether boxes that are done, which may overlap, cover this one.
  bool is_done(const Box& box) const {
    std::vector<Box> left{box};
    for (const Box& done : options.done) {
      if (left.empty()) break;
      if (!overlap(done, box)) continue;
      std::vector<Box> rest;
      for (const Box& each : left) append_difference(rest, each, done);
      left = std::move(rest);
    }
    return left.empty();
  }

  void tell_of_others() const {
    for (int r = 0; r < plan.devices() && options.on_tile; ++r) {
      const Box share = plan.share(tiling, r);
      if (r != kRoot && !share.empty()) options.on_tile(share);
    }
  }

  Tensor execute(const std::vector<Tensor>& arrays, const Tensor& into) {
    std::vector<Header> headers = tiling.inputs;
    headers.push_back(tiling.stored());
    std::vector<std::vector<Box>> needs;
    for (size_t i = 0; i < headers.size(); ++i) {
      needs.emplace_back();
      for (int r = 0; r < plan.devices(); ++r) {
        const bool is_result = i == tiling.inputs.size();
        needs[i].push_back(is_result ? plan.share(tiling, r) : plan.read(tiling, r, i));
      }
    }
    const bool is_by_steps = plan.is_by_steps && comm.size() > 1;
    if (is_by_steps) {
      for (Box& box : needs.back()) box = empty_box(tiling.output.shape.ndim());
    }
    RootArrays shared(comm, kRoot, arrays, into, headers, needs,
                      tiling.place ? tiling.place->put : PutTile());
    std::vector<Tile> tiles = tiles_of(tiling, plan, comm.rank());
    if (!is_by_steps) {
      // Of ranks that do not reach the result all of their share goes there at the end.
      const bool is_placed = shared.way() != RootArrays::Way::kParts || comm.rank() == kRoot;
      if (is_placed) {
        std::erase_if(tiles, [&](const Tile& tile) { return is_done(tile.output); });
      }
      const TileSite here = site(shared, tiles);
      run = run_tiles(tiling, tiles, shared, here, [&](const Box& box, const Tensor& tile) {
        shared.write(box, tile);
        if (options.on_tile && is_placed) options.on_tile(box);
      });
      Tensor result = shared.finish();
      if (shared.way() == RootArrays::Way::kParts && comm.rank() == kRoot) tell_of_others();
      return result;
    }
    Tiling partial = tiling;
    partial.finish = nullptr;
    Tensor sums;
    const TileSite here = site(shared, tiles);
    run = run_tiles(partial, tiles, shared, here, [&](const Box& box, const Tensor& tile) {
      if (!sums.is_defined()) {
        Shape shape = tiling.output.shape;
        for (int dim = shape.ndim(); dim < tile.ndim(); ++dim) shape.push_back(tile.shape(dim));
        sums = empty(shape, tile.dtype());
      }
      copy_across(sums.with_layout(slice(sums.layout(), box)), tile);
    });
    const Tensor total = sum_over_ranks(comm, tiling, plan, sums);
    const Tensor result = shared.finish();
    if (comm.rank() == kRoot) copy_into(result, total);
    return result;
  }
};

void check_done(const Tiling& tiling, const std::vector<Box>& done) {
  const Box whole = whole_box(tiling.output.shape);
  for (const Box& box : done) {
    if (box.ndim() == whole.ndim() && whole.contains(box)) continue;
    throw ExecutionError(cat(tiling.op, ": ", box, " was said to be done, the result is ", whole));
  }
}

void check_into(const Tiling& tiling, const Tensor& into) {
  if (!into.is_defined()) return;
  const Header given{into.shape(), into.dtype()};
  if (given == tiling.stored() && into.device().is_cpu()) return;
  throw ShapeError(cat(tiling.op, ": the result is ", tiling.stored(), " on cpu, the array for it ",
                       given, " on ", into.device()));
}

/// The call on all GPUs of the process, whose ranks are threads; rank 0 is this thread's.
Tensor run_on_gpus(int gpus, const TileOperation& operation, const std::vector<Tensor>& inputs,
                   const TiledOptions& options, const Tensor& into) {
  const backend::ExecutionOptions& execution = backend::execution_options();
  // What is recorded runs on this thread, and what lies on a GPU is read in this thread's order.
  std::vector<Tensor> on_host;
  for (const Tensor& input : inputs) {
    if (input.is_defined()) input.data();
    on_host.push_back(input.is_defined() ? to_device(input, kCpu) : input);
  }
  Tensor result;
  dist::run_on_team(gpus, Device{DeviceType::kCuda, 0}, [&](const dist::CommunicatorPtr& comm) {
    const backend::ExecutionScope wanted(execution);
    if (comm->rank() == kRoot) {
      result = run_tiled(comm, operation, on_host, options, into);
    } else {
      TiledOptions alike = options;
      alike.on_progress = {};
      alike.report = {};
      alike.log = {};
      run_tiled(comm, operation, std::vector<Tensor>(inputs.size()), alike);
    }
  });
  return result;
}

}  // namespace

Tensor run_tiled(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                 const std::vector<Tensor>& inputs, const TiledOptions& options,
                 const Tensor& into) {
  const int gpus = own_gpus(*comm);
  if (gpus > 1) return run_on_gpus(gpus, operation, inputs, options, into);
  const bool is_root = comm->rank() == kRoot;
  const std::string text = full_text(operation, options);
  const auto start = std::chrono::steady_clock::now();
  dist::Headers headers;
  std::vector<Tensor> arrays;
  Tiling tiling;
  TilePlan plan;
  Device device;
  dist::run_together(
      *comm, text,
      [&] {
        check_limits(options.limits, operation.text.c_str());
        if (!is_root) return;
        arrays = given_inputs(operation, inputs);
        for (const Tensor& array : arrays) headers.tensors.push_back(dist::header_of(array));
        const Tiling described = operation.describe(headers.tensors);
        check_done(described, options.done);
      },
      [&] {
        if (comm->size() > 1) headers = dist::broadcast_headers(*comm, headers, kRoot);
        device = work_device(*comm);
        tiling = operation.describe(headers.tensors);
        plan = agreed_plan(comm, operation, tiling, device, options,
                           agreed_pages(*comm, arrays, into, tiling.stored(), device));
        tiling.figures = plan.figures;
      });
  Tensor result;
  dist::run_together(
      *comm, text,
      [&] {
        check_into(tiling, into);
        check_feasible(plan);
      },
      [&] {
        const trace::Span span("tiles", "executor");
        Call call{*comm, tiling, plan, device, options};
        result = call.execute(arrays, into);
        const int64_t peak = dist::agree_max(*comm, call.memory->peak());
        const int64_t halvings = dist::agree_max(*comm, call.run.halvings);
        const int64_t shared = dist::agree_max(*comm, call.run.shared);
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        if (options.report) {
          *options.report = {plan,     device, elapsed.count(), peak,
                             halvings, 1,      plan.seconds,    shared};
        }
      });
  return result;
}

std::vector<Header> agree_headers(dist::Communicator& comm, const std::string& call,
                                  const std::vector<Tensor>& inputs, const TiledOptions& options) {
  dist::Headers headers;
  const bool is_root = comm.rank() == kRoot;
  dist::run_together(
      comm, call,
      [&] {
        check_limits(options.limits, call.c_str());
        for (size_t i = 0; i < inputs.size() && is_root; ++i) {
          if (!inputs[i].is_defined()) {
            throw ExecutionError(cat(call, ": array ", i, " was not given on rank 0"));
          }
          headers.tensors.push_back(dist::header_of(inputs[i]));
        }
      },
      [&] {
        if (comm.size() > 1) headers = dist::broadcast_headers(comm, headers, kRoot);
      });
  return headers.tensors;
}

TilePlan plan_tiled(const dist::CommunicatorPtr& comm, const TileOperation& operation,
                    const std::vector<Header>& inputs, const TiledOptions& options) {
  const int gpus = own_gpus(*comm);
  TilePlan plan;
  if (gpus > 1) {
    dist::run_on_team(gpus, Device{DeviceType::kCuda, 0}, [&](const dist::CommunicatorPtr& team) {
      const TilePlan made = plan_tiled(team, operation, inputs, options);
      if (team->rank() == kRoot) plan = made;
    });
    return plan;
  }
  std::string text = full_text(operation, options);
  for (const Header& input : inputs) text += cat("; ", input);
  dist::run_together(
      *comm, text,
      [&] {
        check_limits(options.limits, operation.text.c_str());
        operation.describe(inputs);
      },
      [&] {
        Tiling tiling = operation.describe(inputs);
        plan = agreed_plan(comm, operation, tiling, work_device(*comm), options,
                           dist::HostPages::kOrdinary);
      });
  return plan;
}

}  // namespace cuop::executor
