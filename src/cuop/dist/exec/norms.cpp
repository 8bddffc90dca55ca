#include "cuop/dist/exec/norms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

NormReduction::NormReduction(Communicator& comm, std::vector<Box> blocks, Device device)
    : comm_(comm), blocks_(std::move(blocks)), device_(device) {
  for (size_t rank = 0; rank < blocks_.size(); ++rank) {
    if (blocks_[rank].empty()) continue;
    order_.push_back(rank);
    sums_ += blocks_[rank].interval(0).length();
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [this](size_t a, size_t b) { return blocks_[a].low[0] < blocks_[b].low[0]; });
  if (device_.is_cpu()) return;
  constexpr int kBeforeOthers = -1;  // the host waits for it
  aside_ = std::make_unique<backend::OwnedStream>(device_, kBeforeOthers);
  is_written_ = backend::runtime(device_).create_event(false);
  is_there_ = backend::runtime(device_).create_event(false);
}

void NormReduction::prepare(const Tensor& squares) {
  squares_ = contiguous(squares);
  const int64_t count = squares_.shape(0) * sums_;
  if (comm_.size() == 1) {
    all_ = squares_;
  } else if (!all_.is_defined() || all_.size() < count) {
    all_ = empty({count}, DType::kFloat64, device_);
  }
  if (device_.is_cpu()) return;
  if (locked_bytes_ < all_.nbytes()) {
    locked_bytes_ = all_.nbytes();
    locked_ = std::make_unique<memory::Workspace>(locked_bytes_, aside_->get(),
                                                  backend::locked_memory(device_));
  }
  for (const Tensor& used : {squares_, all_}) {
    if (used.size() > 0) memory::record_stream(*used.storage(), aside_->get());
  }
  is_written_->record(current_stream(device_));
  is_written_->wait(aside_->get());
}

void NormReduction::start(const Tensor& squares) {
  prepare(squares);
  std::vector<Block> parts(blocks_.size());
  int64_t bytes = 0;
  for (const size_t rank : order_) {
    const int64_t rows = blocks_[rank].interval(0).length();
    parts[rank] = {bytes, rows * squares.shape(0) * static_cast<int64_t>(sizeof(double))};
    bytes += parts[rank].bytes;
  }
  const Stream stream = device_.is_cpu() ? Stream{} : aside_->get();
  if (comm_.size() > 1) comm_.all_gather(squares_.data(), parts, all_.data(), stream);
  if (device_.is_cpu()) return;
  if (bytes > 0) {
    backend::runtime(device_).copy_locked(locked_->data(), all_.data(), bytes, stream);
  }
  is_there_->record(stream);
}

std::vector<double> NormReduction::wait() {
  if (!device_.is_cpu()) is_there_->synchronize();
  const bool is_copied = locked_ != nullptr;  // not without cells either
  const auto* values =
      is_copied ? static_cast<const double*>(locked_->data()) : all_.data<double>();
  const int64_t count = squares_.shape(0);
  squares_ = {};
  // A few rows of each norm at a time: a chain of additions waits for each of them, and norms far
  // apart in memory share places in the caches.
  constexpr int64_t kTogether = 8;
  std::vector<double> norms(static_cast<size_t>(count), 0.0);
  for (const size_t rank : order_) {
    const int64_t rows = blocks_[rank].interval(0).length();
    for (int64_t first = 0; first < rows; first += kTogether) {
      const int64_t end = std::min(first + kTogether, rows);
      for (int64_t i = 0; i < count; ++i) {
        double norm = norms[static_cast<size_t>(i)];
        for (int64_t row = first; row < end; ++row) norm += values[i * rows + row];
        norms[static_cast<size_t>(i)] = norm;
      }
    }
    values += rows * count;
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

std::vector<double> norms_of_rows(Communicator& comm, const Tensor& squares,
                                  const std::vector<Box>& blocks) {
  NormReduction reduction(comm, blocks, squares.device());
  reduction.start(squares);
  return reduction.wait();
}

}  // namespace cuop::dist
