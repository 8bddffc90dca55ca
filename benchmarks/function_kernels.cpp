// The loops of the functions of one real argument as one instruction set compiles them, and the
// time that a pass over an array takes. functions.py builds it from two versions of the sources.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "cuop/jit/cpu/block_loops.h"
#if defined(CUOP_HAS_GATHERED_ROWS) || defined(CUOP_HAS_UNPERMUTED_KERNELS)
#include "cuop/backend/cpu/gathers.h"
#endif

namespace cuop::jit {
namespace {

constexpr int64_t kBlock = 1024;  // what the interpreter gives a loop at once

/// The one that the library chooses on this processor; earlier versions have no choice.
template <class F, class T>
BlockKernel chosen_kernel() {
#ifdef CUOP_HAS_GATHERED_ROWS
  // Asked once, as the library does: a virtual machine takes longer to say it than a pass takes.
  static const bool has_quick_gathers = isa::has_quick_gathers();
  const BlockKernel gathering = gathering_kernel<F, T>();
  if (gathering != nullptr && has_quick_gathers) return gathering;
#endif
#ifdef CUOP_HAS_UNPERMUTED_KERNELS
  const BlockKernel unpermuted = unpermuted_kernel<F, T>();
  if (unpermuted != nullptr && isa::has_slow_permutations()) return unpermuted;
#endif
  return block_kernel<F, T>();
}

template <class T, class... F>
BlockKernel kernel_named(const char* name, FunctorList<F...>) {
  BlockKernel found = nullptr;
  const auto look_at = [&]<class G>(const G*) {
    if constexpr (G::arity == 1 && G::rule == Rule::kInexact && (G::kinds & kFloats) != 0) {
      if (std::strcmp(name, G::name) == 0) found = chosen_kernel<G, T>();
    }
  };
  (look_at(static_cast<const F*>(nullptr)), ...);
  return found;
}

BlockKernel kernel_named(const char* name, bool is_double) {
  return is_double ? kernel_named<double>(name, ElementwiseOps{})
                   : kernel_named<float>(name, ElementwiseOps{});
}

}  // namespace
}  // namespace cuop::jit

/// One pass over n elements, n a multiple of 1024; false where there is no such function.
extern "C" bool apply_function(const char* name, bool is_double, const void* in, void* out,
                               int64_t n) {
  using namespace cuop::jit;
  const BlockKernel kernel = kernel_named(name, is_double);
  if (kernel == nullptr) return false;
  const int64_t size = is_double ? 8 : 4;
  for (int64_t i = 0; i < n; i += kBlock) {
    kernel(static_cast<char*>(out) + i * size, static_cast<const char*>(in) + i * size, nullptr,
           nullptr, kBlock);
  }
  return true;
}

/// The shortest of `passes` passes, in seconds.
extern "C" double shortest_pass(const char* name, bool is_double, const void* in, void* out,
                                int64_t n, int passes) {
  using Clock = std::chrono::steady_clock;
  double shortest = 1e9;
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = Clock::now();
    if (!apply_function(name, is_double, in, out, n)) return -1;
    shortest = std::min(shortest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return shortest;
}
