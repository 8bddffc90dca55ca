#include "cuop/dist/algo/jacobi_sweeps.h"

#include <algorithm>
#include <limits>

#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/elementwise/elementwise.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

JacobiSweeps::JacobiSweeps(const DistTensor& grid, const DistTensor& rhs, int64_t depth,
                           bool is_overlapped, int64_t ahead, const JacobiOptions& options)
    : given_(grid),
      options_(options),
      norms_(rhs, options.dx, ends_of(options.boundary)),
      grid_(grid.comm(), grid.local(), with_halo(depth, depth), is_overlapped),
      // Of the same columns as the grid.
      rhs_(grid.comm(), rhs.local(), with_halo(depth - 1, depth)) {
  const Device device = rhs.local().device();
  for (int64_t i = 0; i <= ahead; ++i) {
    slots_.push_back({NormReduction(grid.comm(), grid.sharding().owner_boxes(grid.shape()), device),
                      empty({depth, rhs.local().shape(0)}, DType::kFloat64, device)});
  }
  rhs_.exchange_halo();
}

HaloGrid JacobiSweeps::with_halo(int64_t rows, int64_t columns) const {
  return {given_.sharding().owner_boxes(given_.shape()), given_.shape(), rows, columns,
          options_.boundary == Boundary::kPeriodic};
}

DistTensor JacobiSweeps::grid() const {
  return DistTensor(given_.comm_ptr(), given_.sharding(), given_.shape(), given_.dtype(),
                    grid_.is_empty() ? given_.local() : grid_.block(), given_.device());
}

double JacobiSweeps::norm_slack() const {
  if (grid_.has_whole_rows()) return 0.0;
  // Sums of numbers that are not negative, in two orders: no number takes part in more additions
  // than its row has columns and all ranks have rows, and some for partial sums. Each rounds by at
  // most half of epsilon, in either sum.
  constexpr double kPartialSums = 64;
  const double rows = static_cast<double>(given_.shape(0)) * given_.comm().size();
  const double additions = rows + static_cast<double>(given_.shape(1)) + kPartialSums;
  return 4.0 * std::numeric_limits<double>::epsilon() * additions;
}

void JacobiSweeps::begin(int64_t count, int64_t measured) {
  Batch batch{begun_, count};
  begun_ += count;
  if (measured == 0) return sweep(count, count, 0, nullptr, true);
  batch.slot = &slots_[turn_];
  turn_ = (turn_ + 1) % slots_.size();
  // A batch of one sweep has nothing to return to, unless another is begun before its end is known.
  const bool is_exact = grid_.has_whole_rows();
  if (count > 1 || slots_.size() > 1 || !is_exact) batch.before = grid_.keep();
  sweep(count, count, measured, batch.slot, true);
  batch.slot->reduction.start(slice(batch.slot->squares, 0, 0, measured));
  waiting_.push_back(batch);
}

void JacobiSweeps::end_at(int64_t wanted) {
  const Batch& batch = waiting_.front();
  if (wanted < batch.count) {
    grid_.restore(batch.before);
    sweep(wanted, batch.count, 0, nullptr, false);
  } else if (waiting_.size() > 1) {
    grid_.restore(waiting_[1].before);
  }
}

int64_t JacobiSweeps::rewind() {
  grid_.restore(waiting_.front().before);
  begun_ = first();
  for (drop(); !waiting_.empty(); drop()) norms();  // what is marked stays as it is until then
  return begun_;
}

double JacobiSweeps::exact_norm(int64_t wanted) {
  const Batch& batch = waiting_.front();
  const SweptBlock::State now = grid_.keep();
  grid_.restore(batch.before);
  sweep(wanted - 1, batch.count, 0, nullptr, false);
  const double norm = norms_.update(grid());
  grid_.restore(now);
  grid_.release(now);
  return norm;
}

void JacobiSweeps::drop() {
  const Batch& batch = waiting_.front();
  if (batch.before.is_defined()) grid_.release(batch.before);
  waiting_.pop_front();
}

void JacobiSweeps::sweep(int64_t wanted, int64_t count, int64_t measured, const Slot* slot,
                         bool is_new) {
  const Boundary sides = grid_.has_whole_rows() ? options_.boundary : Boundary::kZero;
  const int64_t most = jacobi_sweeps_at_once(given_.device());
  for (int64_t done = 0; done < wanted;) {
    const int64_t now = std::min(most, wanted - done);
    const int64_t of_these = std::clamp<int64_t>(done + now - (wanted - measured), 0, now);
    const SweptBlock::Sweep work = [&](const SweptPart& part) {
      const auto& [padded, out, first, left, columns, is_beside] = part;
      const int64_t more = now - 1, end = first + out.shape(0);
      const Interval in_grid = grid_.in_grid(), own = grid_.own_columns();
      const Tensor rhs = slice(rhs_.rows(first - more, end + more), 1, left, left + out.shape(1));
      const JacobiSweep made = cuop::jacobi2d_rows(
          padded, rhs, options_.dx, sides, &out,
          {now, in_grid.low - first, in_grid.high - first, std::max<int64_t>(0, own.low - left),
           own.high - left, of_these, columns.low, columns.high});
      if (of_these == 0) return;
      keep_norms(made.row_norms, part, done + now - of_these - (wanted - measured), slot->squares);
    };
    if (is_new && done == 0) {
      grid_.exchange_and_sweep(now, now, count - now, work);
    } else {
      grid_.sweep(now, count - done - now, work);
    }
    done += now;
  }
}

void JacobiSweeps::keep_norms(const Tensor& norms, const SweptPart& part, int64_t at,
                              const Tensor& squares) {
  const int64_t rows = squares.shape(1), first = part.first;
  const Tensor made = reshape(norms, {-1, norms.shape(norms.ndim() - 1)});
  const int64_t low = std::max<int64_t>(0, first), high = std::min(rows, first + made.shape(1));
  if (low >= high) return;
  const Tensor own = slice(made, 1, low - first, high - first);
  const Tensor to = slice(slice(squares, 0, at, at + made.shape(0)), 1, low, high);
  if (part.is_beside) {
    add(to, own, &to);
  } else {
    copy_into(to, own);
  }
}

}  // namespace cuop::dist
