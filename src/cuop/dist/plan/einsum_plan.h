// Planning products of many tensors over ranks: the order of pairs and how each is split over the
// ranks are chosen together, by the predicted time of all of it.
//
// Each pair is computed on blocks: of an index of the batch, of one operand alone (then the other
// one is needed whole along it), of an index that is summed (then partial sums are added up by the
// ranks that share a block of the result), of two of these on a grid of ranks, or on every rank, or
// on the root. Between pairs what was made is brought to where the next one needs it.
#pragma once

#include <string_view>

#include "cuop/dist/plan/einsum_layout.h"

namespace cuop::dist {

/// Strategies: "root" (all on the one rank that holds the operands, offered when there is one),
/// "split" (each pair over the ranks), "mixed" (some pairs on the root, where that is faster than
/// both). `setting("order")` is the order that is followed; its steps are the steps of the plan
/// that have `made`: where the result of the step lies at last, on the mesh of its work, of which
/// `axes` are the indices. outputs[0]: as made, outputs[1]: as wanted.
///
/// Where no split fits the memory, all steps are followed slice by slice (core/slicing.h), in
/// as few slices as fit: each fetches what it needs of the operands, and what it makes is added to
/// the result, or put into it, where that lies at last. Steps have the figures of all slices,
/// `made` the shape of the first. MemoryError, with the least limit that can be kept to, when no
/// slices fit either.
Plan plan_einsum(const EinsumTask& task, const Machine& machine, std::string_view strategy = {});

/// The plan that one writes by hand: one of these orders, each pair in blocks of the first index of
/// its result, for which both operands are brought (naive_layouts). plan_einsum weighs it for each
/// order, and takes something else only where that is predicted to be faster beyond the noise of
/// predictions. It need not fit the memory.
Plan plan_naively(const EinsumTask& task, size_t order, const Machine& machine);

/// Into which slices such a plan cuts the contraction; none where it is solved at once.
Slicing plan_slicing(const Plan& plan, const Contraction& contraction);

/// Where a step of such a plan works.
IndexLayout work_layout(const PlanStep& step);

}  // namespace cuop::dist
