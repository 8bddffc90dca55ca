// Whether this processor's permutations are worth it, which no instruction set says.
#pragma once

namespace cuop::isa {

/// Whether permutations of eight floats across a vector take so long that a polynomial for all
/// arguments takes less time than those of intervals: on AMD's processors before those with
/// AVX-512. Inline, so that a benchmark without the library chooses as the library does.
inline bool has_slow_permutations() {
#ifdef __x86_64__
  return __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512f") == 0;
#else
  return false;
#endif
}

}  // namespace cuop::isa
