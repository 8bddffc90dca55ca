// What the bindings of cuop.dist share: the optional arguments of every distributed call, and
// inputs that exist on one rank only.
#pragma once

#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>

#include "bindings.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/algo/reduce.h"
#include "cuop/dist/exec/operation.h"

namespace cuop::python {

/// strategy, output and memory_limit as Python gives them.
inline dist::CallOptions call_options(std::string strategy,
                                      std::optional<dist::Sharding> output = std::nullopt,
                                      std::optional<int64_t> memory_limit = std::nullopt) {
  dist::CallOptions options{std::move(strategy), std::move(output), std::nullopt};
  if (memory_limit) {
    options.machine = dist::Machine{};
    options.machine->memory = *memory_limit;
  }
  return options;
}

/// An array, or None on the ranks that do not hold it. Ranks exchange bytes of the host, so that it
/// is taken where it lies.
using MaybeTensor = std::optional<Arg<Unplaced>>;

/// The tensors (undefined for None), in the first step of the call: in it ranks hear of one whose
/// arguments could not be converted.
inline std::vector<Tensor> given(const dist::CommunicatorPtr& comm, const char* call,
                                 std::initializer_list<const MaybeTensor*> arguments) {
  return dist::make_together(*comm, call, [&] {
    std::vector<Tensor> tensors;
    for (const MaybeTensor* argument : arguments) {
      tensors.push_back(*argument ? (**argument)->tensor : Tensor());
    }
    return tensors;
  });
}

/// What is reduced over `dim`: None is all, and an empty tuple no axis, each element alone.
inline dist::ReduceOptions reduce_options(ReduceKind kind, const std::optional<Arg<Axes>>& dim,
                                          bool keepdim, std::string_view mode) {
  dist::ReduceOptions options{kind, {}, keepdim, parse_sum_mode(mode)};
  if (dim) options.axes = ReduceAxes::exactly((*dim)->values);
  return options;
}

/// An undefined tensor as None.
inline std::optional<Tensor> or_none(Tensor tensor) {
  return tensor.is_defined() ? std::optional(std::move(tensor)) : std::nullopt;
}
/// The same of a tensor with what is said of it.
template <class Info>
std::pair<std::optional<Tensor>, Info> or_none(std::pair<Tensor, Info> result) {
  return {or_none(std::move(result.first)), std::move(result.second)};
}

}  // namespace cuop::python
