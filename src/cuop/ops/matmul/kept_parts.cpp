#include "cuop/ops/matmul/kept_parts.h"

namespace cuop {

namespace {
thread_local KeptParts* kept_by_thread = nullptr;
}

KeptParts::Scope::Scope(KeptParts& parts) : before_(kept_by_thread) { kept_by_thread = &parts; }
KeptParts::Scope::~Scope() { kept_by_thread = before_; }

KeptParts* KeptParts::current() { return kept_by_thread; }

bool KeptParts::Side::has(const Tensor& operand, const kernels::MatrixStack& lines) const {
  // Memory that was given back may be another tensor's now.
  const std::shared_ptr<Storage> alive = storage.lock();
  return alive != nullptr && alive == operand.storage() && split.stack == lines;
}

std::array<kernels::SplitStack, 2> KeptParts::of(const Tensor& a,
                                                 const kernels::MatrixStack& a_lines,
                                                 const Tensor& b,
                                                 const kernels::MatrixStack& b_lines) {
  const std::array operands{&a, &b};
  const std::array lines{&a_lines, &b_lines};
  std::array<bool, 2> is_new{};
  for (size_t i = 0; i < 2; ++i) {  // both before memory is taken for either
    is_new[i] = !sides_[i].has(*operands[i], *lines[i]);
    if (is_new[i]) sides_[i] = {};
    if (!is_new[i]) ++reused_;
  }
  try {
    for (size_t i = 0; i < 2; ++i) {
      if (is_new[i]) sides_[i] = {operands[i]->storage(), kernels::room_for_parts(*lines[i])};
    }
    if (is_new[0] && is_new[1]) {
      kernels::split_stacks(sides_[0].split, sides_[1].split);
    } else if (is_new[0] || is_new[1]) {
      kernels::split_stack(sides_[is_new[0] ? 0 : 1].split);
    }
  } catch (...) {
    forget();  // parts that were not filled in among them
    throw;
  }
  return {sides_[0].split, sides_[1].split};
}

}  // namespace cuop
