#include "cuop/ops/trial_buffers.h"

#include <algorithm>

#include "cuop/backend/runtime.h"
#include "cuop/ops/create/create.h"

namespace cuop {

namespace {
constexpr int64_t kMostSets = 64;
constexpr int64_t kAlignment = 256;  ///< of the pool's memory
}  // namespace

TrialBuffers::TrialBuffers(std::vector<Stretch> stretches, Device device, int64_t l2_bytes)
    : stretches_(std::move(stretches)), device_(device) {
  int64_t bytes = 1;
  for (const Stretch& stretch : stretches_) bytes += stretch.elements * itemsize(stretch.dtype);
  const int64_t count = std::clamp<int64_t>(2 * l2_bytes / bytes + 1, 1, kMostSets);
  for (int64_t i = 0; i < count; ++i) {
    auto& set = sets_.emplace_back();
    for (const Stretch& stretch : stretches_) {
      const int64_t shift =
          stretch.alignment >= kAlignment ? 0 : stretch.alignment / itemsize(stretch.dtype);
      const Tensor memory = empty({shift + stretch.elements}, stretch.dtype, device_);
      set.push_back(memory.with_layout({Shape({stretch.elements}), Strides({1}), shift}));
      fill(stretch, set.back());
    }
  }
}

void TrialBuffers::restore(size_t stretch, int64_t first_turn, int turns) {
  for (int64_t turn = first_turn; turn < first_turn + turns; ++turn) {
    fill(stretches_[stretch], copy(turn, stretch));
  }
}

void TrialBuffers::fill(const Stretch& stretch, const Tensor& copy) const {
  backend::runtime(device_).copy(copy.data(), stretch.data,
                                 stretch.elements * itemsize(stretch.dtype),
                                 current_stream(device_));
}

}  // namespace cuop
