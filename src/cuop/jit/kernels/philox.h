// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC'11): a 128-bit counter and a 64-bit key give four 32-bit words.
// Kernel text: the host and NVRTC compile it alike. Functions are static so that each instruction
// set keeps its own copy.
#pragma once

namespace cuop::jit {

using Word = unsigned int;
using WideWord = unsigned long long;

struct Words {
  Word a, b, c, d;
};

template <int Rounds>
static inline Words philox_rounds(Words counter, Word key_low, Word key_high) {
  if constexpr (Rounds == 0) {
    return counter;
  } else {
    const WideWord product_a = static_cast<WideWord>(0xD2511F53u) * counter.a;
    const WideWord product_c = static_cast<WideWord>(0xCD9E8D57u) * counter.c;
    const Words next{
        static_cast<Word>(product_c >> 32) ^ counter.b ^ key_low, static_cast<Word>(product_c),
        static_cast<Word>(product_a >> 32) ^ counter.d ^ key_high, static_cast<Word>(product_a)};
    // The key walks by the golden ratio and by sqrt(3) - 1, as 32-bit fractions.
    return philox_rounds<Rounds - 1>(next, key_low + 0x9E3779B9u, key_high + 0xBB67AE85u);
  }
}

/// The block of a counter's low 64 bits (the high ones are 0) under a 64-bit seed.
static inline Words philox(WideWord counter, WideWord seed) {
  const Words start{static_cast<Word>(counter), static_cast<Word>(counter >> 32), 0u, 0u};
  return philox_rounds<10>(start, static_cast<Word>(seed), static_cast<Word>(seed >> 32));
}

}  // namespace cuop::jit
