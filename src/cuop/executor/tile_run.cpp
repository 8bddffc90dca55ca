#include "cuop/executor/tile_run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/dist/exec/narrow.h"
#include "cuop/dist/exec/pipeline.h"
#include "cuop/dist/exec/sparse.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/matmul/kept_parts.h"

namespace cuop::executor {
namespace {

using Outside = TileProblem::Outside;

/// A step of a tile, in the order in which they are made.
struct Step {
  size_t tile = 0;
  Interval range;
  bool is_first = false;
  bool is_last = false;
};

std::vector<Step> steps_of(const std::vector<Tile>& tiles) {
  std::vector<Step> steps;
  for (size_t i = 0; i < tiles.size(); ++i) {
    for (size_t k = 0; k < tiles[i].steps.size(); ++k) {
      steps.push_back({i, tiles[i].steps[k], k == 0, k + 1 == tiles[i].steps.size()});
    }
  }
  return steps;
}

/// A tensor of the host on a GPU, which it reaches in another form.
Tensor upload(const Tensor& x, Device device, const dist::Wire& wire, int axis) {
  const Tensor out = empty(x.shape(), x.dtype(), device);
  if (wire.form == dist::Wire::Form::kNarrow) {
    if (itemsize(x.dtype()) <= itemsize(wire.dtype)) return to_device(x, device);
    const dist::Narrowed here = dist::narrowed(x, wire.dtype, axis);
    dist::widen_into(out, {to_device(here.values, device), to_device(here.exponents, device)});
  } else {
    const dist::Sparse here = dist::without_zeros(x, wire.threshold, wire.is_by_cost);
    const auto there = [&](const Tensor& each) {
      return each.is_defined() ? to_device(each, device) : each;
    };
    dist::with_zeros_into(out, {here.form, there(here.index), there(here.values)});
  }
  return out;
}

/// One attempt at a list of tiles; what it has taken away stays done when it fails.
class Attempt {
 public:
  Attempt(const Tiling& tiling, const std::vector<Tile>& tiles, const RootArrays& arrays,
          const TileSite& site, const TakeTile& take)
      : tiling_(tiling),
        tiles_(tiles),
        steps_(steps_of(tiles)),
        arrays_(arrays),
        site_(site),
        memory_(*site.memory),
        take_(take),
        slots_(kSlots),
        spare_(tiling.figures.spare),
        last_brought_(tiling.inputs.size()) {
    spare_.has_steps = false;  // which are in no plan
  }

  void run(const std::function<void(int64_t)>& on_step) {
    const dist::Stages stages{[&](int64_t i) { bring(i); }, [&](int64_t i) { work(i); },
                              [&](int64_t i) {
                                take(i);
                                on_step(i + 1);
                              }};
    // Neither bringing nor taking is a collective call.
    const dist::Overlap overlap{.is_two_way = true};
    dist::run_pipeline(site_.device, static_cast<int64_t>(steps_.size()), stages, overlap, {});
  }

  /// Tiles that are done.
  size_t taken() const { return taken_; }
  /// Bytes that came from other devices.
  int64_t shared() const { return shared_; }

 private:
  static constexpr size_t kSlots = 4;  // one is brought, one is worked on, one is taken away
  /// What lies on the device of an input, and the offer of it to other devices.
  struct Brought {
    Part part;
    std::shared_ptr<SharedBox> offer;
  };
  struct Slot {
    std::vector<Part> parts;
    std::vector<std::shared_ptr<SharedBox>> offers;
    Tensor result;
  };

  Slot& slot(int64_t i) { return slots_[static_cast<size_t>(i) % kSlots]; }
  const Step& step(int64_t i) const { return steps_[static_cast<size_t>(i)]; }
  const Box& box(int64_t i) const { return tiles_[step(i).tile].output; }

  void bring(int64_t i) {
    check_interrupt();
    const trace::Span span("tile inputs", "executor");
    const memory::ResourceScope scope(memory_);
    const backend::ExecutionScope spare(backend::with_spare(spare_));
    check_available(i);
    Slot& next = slot(i);
    for (size_t k = 0; k < tiling_.inputs.size(); ++k) {
      const Box needed = tiling_.needed(k, box(i), step(i).range);
      Brought& last = last_brought_[k];
      if (!last.part.local.is_defined() || last.part.box != needed) {
        last = {};  // before memory is taken for the next
        last = bring(k, needed);
      }
      next.parts.push_back(last.part);
      if (last.offer) next.offers.push_back(last.offer);
    }
  }

  Brought bring(size_t input, const Box& box) {
    const Header& array = tiling_.inputs[input];
    if (site_.boxes == nullptr || !is_shared(site_.readers[input].count, bytes_of(array, box))) {
      return {{read(input, box), box, site_.device}, {}};
    }
    const auto from_host = [&](const Box& piece, const Tensor& place) {
      check_interrupt();
      arrays_.input(input).read_into(piece, place);
    };
    const auto offer =
        site_.boxes->read(input, array.dtype, box, site_.device, site_.readers[input], from_host);
    shared_ += offer->taken_bytes();
    return {offer->part(), offer};
  }

  Tensor read(size_t input, const Box& box) const {
    const Outside outside = tiling_.outside_of(input);
    const RootArray& array = arrays_.input(input);
    const bool is_plain = tiling_.wire.form == dist::Wire::Form::kPlain || site_.device.is_cpu();
    if (!is_plain) {
      return upload(array.read(box, kCpu), site_.device, tiling_.wire, tiling_.line_axes[input]);
    }
    if (outside == Outside::kNothing) return array.read(box, site_.device);
    return array.read_beyond(box, site_.device, outside == Outside::kWrapped);
  }

  /// Memory that somebody else has taken meanwhile is not waited for.
  void check_available(int64_t i) {
    using Clock = std::chrono::steady_clock;
    if (!site_.available || !step(i).is_first || Clock::now() < next_look_) return;
    next_look_ = Clock::now() + std::chrono::milliseconds(50);
    const int64_t needed = tile_bytes(tiling_, tiles_[step(i).tile]);
    const int64_t available = site_.available() + memory_.live();
    if (needed <= available) return;
    throw MemoryError(cat(tiling_.op, ": a tile needs ", format_bytes(needed), ", ",
                          format_bytes(std::max<int64_t>(0, available)), " are left"));
  }

  void work(int64_t i) {
    const trace::Span span("tile work", "executor");
    const memory::ResourceScope scope(memory_);
    Slot& mine = slot(i);
    const Stream stream = current_stream(site_.device);
    for (const Part& part : mine.parts) {
      if (part.local.is_defined() && !site_.device.is_cpu()) {
        memory::record_stream(*part.local.storage(), stream);
      }
    }
    const backend::ExecutionScope spare(backend::with_spare(spare_));
    std::optional<KeptParts::Scope> kept;
    if (tiling_.is_one_product) kept.emplace(parts_);
    const Tensor made = tiling_.make(mine.parts, box(i), step(i).range);
    mine.parts.clear();
    for (const auto& offer : mine.offers) offer->note_used();
    mine.offers.clear();
    if (step(i).is_first) {
      sum_ = made;
    } else {
      tiling_.add(sum_, made);
    }
    if (!step(i).is_last) return;
    mine.result = tiling_.finish ? tiling_.finish(sum_) : sum_;
    mine.result.data();  // what is recorded runs here
    sum_ = {};
  }

  void take(int64_t i) {
    if (!step(i).is_last) return;
    const trace::Span span("tile result", "executor");
    Slot& mine = slot(i);
    const Tensor result = std::exchange(mine.result, {});
    if (!site_.device.is_cpu()) {
      memory::record_stream(*result.storage(), current_stream(site_.device));
    }
    take_(box(i), result);
    ++taken_;
  }

  const Tiling& tiling_;
  const std::vector<Tile>& tiles_;
  std::vector<Step> steps_;
  const RootArrays& arrays_;
  const TileSite& site_;
  memory::LimitedResource& memory_;
  const TakeTile& take_;
  std::vector<Slot> slots_;
  backend::SpareMemory spare_;
  std::vector<Brought> last_brought_;
  KeptParts parts_;
  Tensor sum_;
  size_t taken_ = 0;
  int64_t shared_ = 0;
  std::chrono::steady_clock::time_point next_look_ = {};  ///< for the memory that is left
};

}  // namespace

std::vector<BoxRoom> rooms_for(const Tiling& tiling, const std::vector<Tile>& tiles,
                               const std::vector<Reader>& readers) {
  std::vector<BoxRoom> rooms(tiling.inputs.size());
  std::vector<std::optional<Box>> last(rooms.size());
  for (const Step& step : steps_of(tiles)) {
    for (size_t i = 0; i < rooms.size(); ++i) {
      const Box box = tiling.needed(i, tiles[step.tile].output, step.range);
      const int64_t bytes = bytes_of(tiling.inputs[i], box);
      if (last[i] == box || !is_shared(readers[i].count, bytes)) continue;
      rooms[i].bytes = std::max(rooms[i].bytes, bytes);
      rooms[i].is_changing = last[i].has_value();
      last[i] = box;
    }
  }
  return rooms;
}

TileRun run_tiles(const Tiling& tiling, std::vector<Tile> tiles, const RootArrays& arrays,
                  const TileSite& site, const TakeTile& take) {
  TileRun run;
  int64_t done = 0;
  const auto count = [](const std::vector<Tile>& all) {
    int64_t steps = 0;
    for (const Tile& tile : all) steps += static_cast<int64_t>(tile.steps.size());
    return steps;
  };
  while (!tiles.empty()) {
    const int64_t left = count(tiles);
    size_t taken = 0;
    std::optional<MemoryError> shortage;
    {
      Attempt attempt(tiling, tiles, arrays, site, take);
      try {
        attempt.run([&](int64_t steps) {
          if (site.on_progress) site.on_progress(done + steps, done + left);
        });
      } catch (const MemoryError& error) {
        shortage = error;
      }
      taken = attempt.taken();
      run.shared += attempt.shared();
    }
    if (!shortage) break;
    if (site.boxes) site.boxes->release_memory();
    // What was given back before work of a GPU had ended is free when it has.
    backend::runtime(site.device).synchronize();
    tiles.erase(tiles.begin(), tiles.begin() + static_cast<int64_t>(taken));
    done += left - count(tiles);
    std::vector<Tile> finer;
    for (const Tile& tile : tiles) {
      for (Tile& half : halved(tiling, tile).tiles) finer.push_back(std::move(half));
    }
    if (count(finer) == count(tiles)) {
      const std::string why = shortage->what(), who = cat(tiling.op, ": ");
      throw MemoryError(why.starts_with(who) ? why : who + why);
    }
    tiles = std::move(finer);
    ++run.halvings;
  }
  return run;
}

}  // namespace cuop::executor
