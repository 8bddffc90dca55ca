// States of folds that have been written to memory: merged, and made values. A thread a state, a
// warp a superaccumulator.
#pragma once

#include "cuop/ops/reduce/exact_words.cuh"
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

template <>
CUOP_FN void merge_states<ExactSum>(const MergedStates& a) {
  constexpr int kWarps = kStateThreads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t i = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; i < a.count;
       i += int64_t(gridDim.x) * kWarps) {
    ExactSum& into = static_cast<ExactSum*>(a.into)[i];
    const ExactSum& from = static_cast<const ExactSum*>(a.from)[i];
    for (int k = lane; k < ExactSum::kDigits; k += 32) into.digits[k] += from.digits[k];
    __syncwarp();
    if (lane == 0) into.note_merged(from);
  }
}

template <class Value>
CUOP_FN void finish_exact_states(const FinishedStates& a) {
  constexpr int kWarps = kStateThreads / 32;
  __shared__ int64_t words[kWarps][kExactWords];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int64_t i = int64_t(blockIdx.x) * kWarps + warp; i < a.count;
       i += int64_t(gridDim.x) * kWarps) {
    const ExactSum& from = static_cast<const ExactSum*>(a.states)[i];
    for (int k = lane; k < ExactSum::kDigits; k += 32) words[warp][k] = from.digits[k];
    if (lane == 0) words[warp][ExactSum::kDigits] = from.special;
    __syncwarp();
    const double sum =
        rounded_words(words[warp], a.finish.is_mean ? a.finish.count : 1, a.finish.format);
    if (lane == 0) static_cast<Value*>(a.values)[i] = static_cast<Value>(sum);
    __syncwarp();  // before the words are written again
  }
}

}  // namespace cuop::jit
