#include "cuop/ops/trial.h"

#include <algorithm>

#include "cuop/core/text.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"
#include "cuop/tune/clock.h"

namespace cuop {

namespace {

constexpr int64_t kMostSets = 64;
constexpr int64_t kAlignment = 256;  ///< of the pool's memory

Tensor copy_of(const Trial::Operand& operand) {
  const Tensor& from = operand.original;
  const int64_t shift =
      operand.alignment >= kAlignment ? 0 : operand.alignment / itemsize(from.dtype());
  const Tensor memory = empty({shift + from.size()}, from.dtype(), from.device());
  Layout layout = contiguous_layout(from.shape());
  layout.offset = shift;
  const Tensor copy = memory.with_layout(layout);
  copy_into(copy, from);
  return copy;
}

}  // namespace

bool Trial::is_possible(const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (is_same_view(tensors[i], tensors[j])) continue;
      if (may_overlap(tensors[i], tensors[j])) return false;
    }
  }
  return true;
}

Trial::Trial(std::vector<Operand> operands, int64_t l2_bytes) : operands_(std::move(operands)) {
  const size_t count = operands_.size();
  std::vector<size_t> first(count);  // the first operand that is the same view
  int64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    first[i] = 0;
    while (!is_same_view(operands_[first[i]].original, operands_[i].original)) ++first[i];
    bytes += operands_[i].original.nbytes();
    if (operands_[i].is_written) written_.push_back(i);
  }
  const int64_t wanted = bytes > 0 ? 2 * l2_bytes / bytes + 1 : 1;
  for (int64_t n = std::clamp<int64_t>(wanted, 1, kMostSets); n > 0; --n) {
    auto& set = sets_.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      set.push_back(first[i] < i ? set[first[i]] : copy_of(operands_[i]));
    }
  }
}

void Trial::restore(int64_t first_turn, int turns) {
  for (int64_t turn = first_turn; turn < first_turn + turns; ++turn) {
    for (const size_t i : written_) copy_into(set(turn)[i], operands_[i].original);
  }
}

std::string Trial::difference(const std::vector<Tensor>& expected) const {
  for (size_t i = 0; i < written_.size(); ++i) {
    const std::string& name = operands_[written_[i]].name;
    const std::string found = disagreement(expected[i], set(0)[written_[i]]);
    if (!found.empty()) return name.empty() ? found : cat(name, ": ", found);
  }
  return "";
}

tune::SearchResult Trial::search(const std::vector<std::string>& names, Device device,
                                 const Run& run, const tune::SearchLimits& limits) {
  std::vector<Tensor> expected;
  std::vector<tune::Candidate> candidates;
  for (size_t i = 0; i < names.size(); ++i) {
    tune::Candidate candidate;
    candidate.name = names[i];
    candidate.run = [&, i](int64_t turn) {
      run(i, set(turn));
      if (turn != 0 || i != 0) return;
      for (const size_t place : written_) expected.push_back(clone(set(0)[place]));
    };
    candidate.disagreement = [&] { return difference(expected); };
    candidates.push_back(std::move(candidate));
  }
  tune::SearchOptions options{limits};
  options.most_repetitions = count();
  options.before_sample = [this](int64_t first, int turns) { restore(first, turns); };
  return tune::search(candidates, *tune::clock_for(device), options);
}

Tensor borrowed(const void* data, int64_t elements, DType dtype, Device device) {
  auto storage = std::make_shared<Storage>(const_cast<void*>(data), elements * itemsize(dtype),
                                           device, nullptr);
  return {std::move(storage), contiguous_layout(Shape({elements})), dtype};
}

}  // namespace cuop
