#include "cuop/dist/algo/row_equation.h"

#include "cuop/dist/comm/blocks.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/ops/index/view.h"
#include "cuop/ops/reduce/reduce.h"

namespace cuop::dist {
namespace {

SweptBlock zero_rows(Communicator& comm, const FivePoint& op, const std::vector<Box>& blocks,
                     int64_t halo, DType dtype, Device device) {
  const Box& own = blocks[static_cast<size_t>(comm.rank())];
  const HaloGrid grid{blocks, {op.height, op.width}, halo, 0, op.is_periodic()};
  return SweptBlock(comm, broadcast_to(zeros({1, 1}, dtype, device), own.shape()), grid);
}

}  // namespace

RowEquation::RowEquation(Communicator& comm, const FivePoint& op, const std::vector<Box>& blocks,
                         int64_t passes, DType dtype, Device device)
    : op_(op),
      blocks_(blocks),
      first_(blocks[static_cast<size_t>(comm.rank())].low[0]),
      height_(blocks[static_cast<size_t>(comm.rank())].interval(0).length()),
      halo_(passes + 1),
      device_(device),
      none_(empty({0, op.width}, dtype, device)),
      u_(zero_rows(comm, op, blocks, passes + 1, dtype, device)),
      b_(zero_rows(comm, op, blocks, passes, dtype, device)) {}

void RowEquation::clear() {
  if (!is_empty()) fill(u_.rows(-halo_, height_ + halo_), 0.0);
}

void RowEquation::relax(const std::vector<int>& colours, double omega, int64_t more) {
  if (is_empty()) return;
  const int64_t around = static_cast<int64_t>(colours.size()) + more;
  relax_rows(op_, u_.rows(-around, height_ + around), b_.rows(1 - around, height_ + around - 1),
             first_ - around, colours, omega);
}

Tensor RowEquation::residual(const Tensor& out) const {
  if (is_empty()) return empty({0}, DType::kFloat64, device_);
  return residual_rows(op_, u_.padded(1), b_.block(), first_, out);
}

void RowEquation::apply(const Tensor& out) const {
  if (!is_empty()) residual_rows(op_, u_.padded(1), Tensor(), first_, out);
}

std::vector<int> passes_of(const FivePoint& op, int sweeps) {
  std::vector<int> passes;
  for (int i = 0; i < sweeps; ++i) {
    const std::vector<int> colours = colours_of(op);
    passes.insert(passes.end(), colours.begin(), colours.end());
  }
  return passes;
}

Tensor total_of_rows(Communicator& comm, const Tensor& sums, const std::vector<Box>& blocks) {
  Tensor all = sums;
  if (comm.size() > 1) {
    std::vector<int64_t> rows;
    for (const Box& block : blocks) rows.push_back(block.empty() ? 0 : block.interval(0).length());
    const std::vector<Block> parts = packed_blocks(rows, sizeof(double));
    all = empty({total_bytes(parts) / int64_t{sizeof(double)}}, DType::kFloat64, sums.device());
    comm.all_gather(sums.data(), parts, all.data(), current_stream(sums.device()));
  }
  return sum(all, {}, false, SumMode::kExact);
}

double sum_of_grid(Communicator& comm, const Tensor& x, const std::vector<Box>& blocks) {
  const Tensor sums = sum(cast(x, DType::kFloat64), Axes{1}, false, SumMode::kExact);
  return value_of(total_of_rows(comm, sums, blocks));
}

double value_of(const Tensor& number) { return to_device(number, kCpu).data<double>()[0]; }

}  // namespace cuop::dist
