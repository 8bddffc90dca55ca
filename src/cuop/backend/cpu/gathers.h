// Whether this processor's gathers and permutations are worth it, which no instruction set says.
// Inline, so that a benchmark without the library chooses as the library does.
#pragma once

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace cuop::isa {

/// Whether gathers take less time than loads of the elements one by one. On most processors they
/// take about twice as much; on Intel's from Sapphire Rapids on less. These are known by their
/// operations on 16-bit floats, and where a virtual machine hides those by their models.
inline bool has_quick_gathers() {
#ifdef __x86_64__
  if (__builtin_cpu_is("intel") == 0 || __builtin_cpu_supports("avx512f") == 0) return false;
  constexpr unsigned kSignature = 1, kFeatures = 7, kFloat16 = 1u << 23;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kFloat16) != 0) return true;
  if (__get_cpuid(kSignature, &a, &b, &c, &d) == 0) return false;
  const unsigned family = a >> 8 & 0xf, model = (a >> 4 & 0xf) | (a >> 12 & 0xf0);
  // Sapphire, Emerald and Granite Rapids, the last as a D too.
  return family == 6 && (model == 0x8f || model == 0xcf || model == 0xad || model == 0xae);
#else
  return false;
#endif
}

/// Whether permutations of eight floats across a vector take so long that a polynomial for all
/// arguments takes less time than those of intervals, and a shift less than the permutation of a
/// table: on AMD's processors before those with AVX-512.
inline bool has_slow_permutations() {
#ifdef __x86_64__
  return __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512f") == 0;
#else
  return false;
#endif
}

}  // namespace cuop::isa
