#include "cuop/dist/exec/sweep.h"

#include <algorithm>
#include <limits>

#include "cuop/core/divide_up.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {
namespace {

bool is_same(const Tensor& a, const Tensor& b) { return a.storage() == b.storage(); }

auto find(const std::vector<Tensor>& among, const Tensor& wanted) {
  return std::find_if(among.begin(), among.end(),
                      [&](const Tensor& each) { return is_same(each, wanted); });
}

/// Elements of 16 bytes, by which GPUs read and write where rows and columns begin at such.
int64_t pack_of(DType dtype) { return 16 / itemsize(dtype); }

}  // namespace

SweptBlock::SweptBlock(Communicator& comm, const Tensor& block, const HaloGrid& grid,
                       bool is_overlapped)
    : comm_(comm),
      box_(grid.blocks[static_cast<size_t>(comm.rank())]),
      window_(grid.window(comm.rank())),
      has_whole_rows_(grid.has_whole_rows()),
      is_periodic_(grid.is_periodic),
      width_(grid.shape[1]),
      halo_(grid.rows),
      dtype_(block.dtype()),
      device_(block.device()),
      halo_needs_(grid.needs()),
      moves_(plan_moves(comm.rank(), grid.blocks, halo_needs_.needs)) {
  constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 2;
  allowed_ = grid.is_periodic ? Interval{-kUnbounded, kUnbounded}
                              : Interval{-box_.low[0], grid.shape[0] - box_.low[0]};
  if (is_empty()) return;
  if (is_overlapped && !device_.is_cpu()) {
    aside_ = std::make_unique<backend::OwnedStream>(device_);
  }
  current_ = fresh();
  copy_into(this->block(), block);
}

/// Rows outside the grid are zero and never written.
Tensor SweptBlock::fresh() {
  if (!idle_.empty()) {
    const Tensor result = idle_.back();
    idle_.pop_back();
    return result;
  }
  const Tensor result = zeros(window_.shape(), dtype_, device_);
  if (aside_) memory::record_stream(*result.storage(), aside_->get());
  return result;
}

Tensor SweptBlock::rows_of(const Tensor& padded, int64_t low, int64_t high) const {
  return slice(padded, 0, low + halo_, high + halo_);
}

Tensor SweptBlock::padded(int64_t radius) const {
  return rows(-radius, box_.interval(0).length() + radius);
}

Interval SweptBlock::own_columns() const {
  return {box_.low[1] - window_.low[1], box_.high[1] - window_.low[1]};
}

Tensor SweptBlock::block() const {
  const Interval columns = own_columns();
  return slice(padded(0), 1, columns.low, columns.high);
}

SweptBlock::State SweptBlock::keep() {
  if (!is_empty()) kept_.push_back(current_);
  return current_;
}

void SweptBlock::release(const State& kept) {
  if (is_empty()) return;
  kept_.erase(find(kept_, kept));
  if (!is_same(kept, current_) && find(kept_, kept) == kept_.end()) idle_.push_back(kept);
}

void SweptBlock::restore(const State& kept) {
  if (!is_empty() && !is_same(kept, current_)) replace(kept);
}

void SweptBlock::replace(const Tensor& values) {
  if (find(kept_, current_) == kept_.end()) idle_.push_back(current_);
  current_ = values;
}

void SweptBlock::exchange_halo() {
  const Part source{is_empty() ? Tensor() : block(), box_, device_};
  exchange(comm_, moves_, source, [&](const Piece& piece) {
    const auto need = static_cast<size_t>(piece.need);
    Tensor place = current_;
    for (const int axis : {0, 1}) {
      const int64_t low = halo_needs_.place[need][axis] + piece.box.low[axis] -
                          halo_needs_.needs[need].box.low[axis];
      place = slice(place, axis, low, low + piece.box.interval(axis).length());
    }
    return place;
  });
}

Interval SweptBlock::swept_rows(int64_t margin) const {
  return {std::max(-margin, allowed_.low),
          std::min(box_.interval(0).length() + margin, allowed_.high)};
}

void SweptBlock::sweep(int64_t radius, int64_t margin, const Sweep& work) {
  if (is_empty()) return;
  const auto [low, high] = swept_rows(margin);
  const Tensor next = fresh();
  const Tensor out = rows_of(next, low, high);
  work({rows(low - radius, high + radius), out, low, 0, {0, out.shape(1)}});
  replace(next);
  limit_lead();
}

SweptBlock::Inner SweptBlock::inner_of(int64_t radius, int64_t column_radius) const {
  const int64_t height = box_.interval(0).length();
  // Where the grid ends nothing is missing.
  Inner inner{{allowed_.low == 0 ? 0 : radius, height - (allowed_.high == height ? 0 : radius)},
              own_columns(),
              own_columns()};
  if (has_whole_rows_) return inner;
  const int64_t pack = pack_of(dtype_);
  if (is_periodic_ || box_.low[1] > 0) {
    inner.read.low = round_up(inner.read.low, pack);
    inner.columns.low = inner.read.low + column_radius;
  }
  if (is_periodic_ || box_.high[1] < width_) {
    inner.read.high = inner.read.high / pack * pack;
    inner.columns.high = inner.read.high - column_radius;
  }
  return inner;
}

void SweptBlock::exchange_and_sweep(int64_t radius, int64_t column_radius, int64_t margin,
                                    const Sweep& work) {
  const Inner inner = inner_of(radius, column_radius);
  if (!aside_ || inner.rows.length() <= 0 || inner.columns.length() <= 0) {
    exchange_halo();
    return sweep(radius, margin, work);
  }
  backend::Runtime& gpu = backend::runtime(device_);
  const Stream stream = current_stream(device_);
  const Tensor next = fresh();
  const auto make = [&](Interval part, Interval columns, Interval read, bool is_beside) {
    if (part.length() <= 0 || columns.length() <= 0) return;
    work({slice(rows(part.low - radius, part.high + radius), 1, read.low, read.high),
          slice(rows_of(next, part.low, part.high), 1, read.low, read.high),
          part.low,
          read.low,
          {columns.low - read.low, columns.high - read.low},
          is_beside});
  };
  gpu.order(aside_->get(), stream);
  make(inner.rows, inner.columns, inner.read, false);  // first, as the host may have to wait next
  {
    const StreamScope scope(aside_->get());
    exchange_halo();
  }
  gpu.order(stream, aside_->get());
  const auto [low, high] = swept_rows(margin);
  const int64_t width = window_.interval(1).length(), pack = pack_of(dtype_);
  const Interval all{0, width};
  make({low, inner.rows.low}, all, all, false);
  make({inner.rows.high, high}, all, all, false);
  const auto [left, right] = inner.columns;
  make(inner.rows, {0, left}, {0, std::min(round_up(left + column_radius, pack), width)}, true);
  make(inner.rows, {right, width}, {(right - column_radius) / pack * pack, width}, true);
  replace(next);
  limit_lead();
}

void SweptBlock::limit_lead() {
  constexpr int kAhead = 64;  // so that an interrupt finds little work that was launched already
  if (device_.is_cpu() || ++ahead_ < kAhead) return;
  ahead_ = 0;
  backend::runtime(device_).synchronize(current_stream(device_));
}

}  // namespace cuop::dist
