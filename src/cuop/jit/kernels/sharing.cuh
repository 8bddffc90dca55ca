// What blocks that share work tell each other through memory.
#pragma once

#include "cuop/jit/kernels/prelude.h"

namespace cuop::jit {

/// What another block wrote, past this multiprocessor's first-level cache, in accesses of a Word.
template <class Word = unsigned, class State>
CUOP_FN State load_fresh(const State* from) {
  constexpr int kWords = static_cast<int>(sizeof(State) / sizeof(Word));
  static_assert(sizeof(State) % sizeof(Word) == 0 && alignof(State) >= alignof(Word));
  struct Words {
    Word words[kWords];
  } raw;
#pragma unroll
  for (int i = 0; i < kWords; ++i) raw.words[i] = __ldcg(reinterpret_cast<const Word*>(from) + i);
  return __builtin_bit_cast(State, raw);
}

/// Whether this block is the last of `parts` to come here with what it has written to memory; the
/// others' writes can then be read with load_fresh. All threads of the block must come.
CUOP_FN bool is_last_of(int64_t parts, unsigned* arrivals) {
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(arrivals, 1u) == static_cast<unsigned>(parts) - 1;
    if (is_last) *arrivals = 0;
  }
  __syncthreads();
  __threadfence();
  return is_last;
}

}  // namespace cuop::jit
