#include <algorithm>

#include "cuop/operators/jit/kernel_trial_internal.h"
#include "cuop/ops/copy/copy.h"

namespace cuop {

namespace {

constexpr int64_t kMostSets = 64;

const Tensor* tensor_of(const KernelArgument& argument) { return std::get_if<Tensor>(&argument); }

/// Copies that share memory as the originals do.
std::vector<KernelArgument> copies_of(const std::vector<KernelArgument>& originals) {
  std::vector<KernelArgument> copies = originals;
  for (size_t i = 0; i < originals.size(); ++i) {
    const Tensor* original = tensor_of(originals[i]);
    if (original == nullptr) continue;
    copies[i] = clone(*original);
    for (size_t j = 0; j < i; ++j) {
      const Tensor* other = tensor_of(originals[j]);
      if (other != nullptr && is_same_view(*original, *other)) copies[i] = copies[j];
    }
  }
  return copies;
}

}  // namespace

KernelTrial::KernelTrial(const std::vector<jit::KernelParameter>& parameters,
                         std::span<const KernelArgument> arguments, int64_t l2_bytes)
    : originals_(arguments.begin(), arguments.end()) {
  int64_t bytes = 0;
  for (size_t i = 0; i < originals_.size(); ++i) {
    if (const Tensor* tensor = tensor_of(originals_[i])) bytes += tensor->nbytes();
    if (parameters[i].is_written) written_.push_back(i);
  }
  const int64_t wanted = bytes > 0 ? 2 * l2_bytes / bytes + 1 : 1;
  const int64_t sets = std::clamp<int64_t>(wanted, 1, kMostSets);
  for (int64_t i = 0; i < sets; ++i) sets_.push_back(copies_of(originals_));
}

bool KernelTrial::is_possible(std::span<const KernelArgument> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Tensor *a = tensor_of(arguments[i]), *b = tensor_of(arguments[j]);
      if (a == nullptr || b == nullptr || is_same_view(*a, *b)) continue;
      if (may_overlap(*a, *b)) return false;
    }
  }
  return true;
}

void KernelTrial::restore(int64_t first_turn, int count) {
  for (int64_t turn = first_turn; turn < first_turn + count; ++turn) {
    for (const size_t i : written_) {
      copy_into(std::get<Tensor>(sets_[place(turn)][i]), std::get<Tensor>(originals_[i]));
    }
  }
}

std::vector<Tensor> KernelTrial::results() const {
  std::vector<Tensor> results;
  for (const size_t i : written_) results.push_back(std::get<Tensor>(sets_[0][i]));
  return results;
}

}  // namespace cuop
