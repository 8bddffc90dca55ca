// States of folds that have been written to memory: merged, and made values. A thread a state.
#pragma once

#include "cuop/ops/reduce/states_arguments.cuh"

namespace cuop::jit {

template <class State>
CUOP_FN void merge_states(const MergedStates& a) {
  State* const into = static_cast<State*>(a.into);
  const State* const from = static_cast<const State*>(a.from);
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count;
       i += int64_t(gridDim.x) * blockDim.x) {
    into[i].merge(from[i]);
  }
}

template <class State, class Value>
CUOP_FN void finish_states(const FinishedStates& a) {
  const State* const states = static_cast<const State*>(a.states);
  Value* const values = static_cast<Value*>(a.values);
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < a.count;
       i += int64_t(gridDim.x) * blockDim.x) {
    values[i] = static_cast<Value>(finished(states[i], a.finish));
  }
}

}  // namespace cuop::jit
