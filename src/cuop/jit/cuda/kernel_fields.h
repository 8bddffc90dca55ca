// What the source of a kernel and the bytes of its arguments must agree on.
#pragma once

#include "cuop/jit/cuda/kernel_types.h"
#include "cuop/jit/cuda/loops.h"

namespace cuop::jit::detail {

/// Results that a thread has of each reduction at once.
inline int states_abreast(const Loops& loops) { return loops.is_column ? loops.width : 1; }

/// The fields of the struct of arguments, in their order. Source and bytes both come from here, so
/// that they cannot disagree; names are the source's affair, as arguments are packed at each
/// launch.
template <class Visitor>
void visit_fields(const Expr& expr, const Loops& loops, Visitor&& visit) {
  visit.count();
  if (loops.has_tail) visit.size();
  for (int i = 1; i < loops.axes; ++i) {
    if (i != loops.kept) visit.axis(i);
  }
  for (size_t k = 0; k < loops.walkers.size(); ++k) {
    const Walker& walker = loops.walkers[k];
    visit.pointer(k, walker);
    for (size_t i = 0; i < walker.pattern.size(); ++i) {
      if (walker.pattern[i] == 'x' || walker.pattern[i] == 's') visit.stride(k, walker, i);
    }
  }
  for (const Node& node : expr.nodes()) {
    if (node.kind == NodeKind::kParameter) visit.parameter(node);
  }
  if (loops.is_reduction) visit.share();
}

}  // namespace cuop::jit::detail
