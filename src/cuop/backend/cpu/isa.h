// Code compiled once for each instruction set, and the choice among them at run time.
//
// CMake compiles every `*_isa.cpp` at x86-64 baseline, v3 (AVX2, FMA) and v4 (AVX-512), each time
// with CUOP_ISA set to the level's name. A family uses it so:
//
//   foo_kernels.h   template <class Level> const FooKernels& foo_kernels();  // a table of pointers
//   foo_isa.cpp     namespace { ...the loops, all with internal linkage... }
//                   template <> const FooKernels& foo_kernels<isa::CUOP_ISA>() { ... }
//   foo_cpu.cpp     const FooKernels& kernels = isa::choose(
//                       []<class Level>(Level) -> const FooKernels& { return foo_kernels<Level>();
//                       });
//
// Loops must have internal linkage (unnamed namespace): two levels' inline functions of one name
// would be merged by the linker. Where a header's inline function is used all the same, the
// baseline's copy is kept, because the levels are linked in ascending order.
#pragma once

#include <utility>

namespace cuop::isa {

struct baseline {};
struct v3 {};
struct v4 {};

enum class Level { kBaseline, kV3, kV4 };

const char* name(Level level);
/// True when the library contains code of this level and the machine can run it.
bool is_supported(Level level);
Level highest_supported();
/// The level in use: the highest that is supported, or what CUOP_CPU_ISA asks for. ExecutionError
/// when that is unknown or not supported here. kBaseline while the thread asks for simple kernels.
Level current();

/// Calls f with an object of the given level's type.
template <class Function>
decltype(auto) choose(Level level, Function&& f) {
#ifdef CUOP_HAS_ISA_v4
  if (level == Level::kV4) return std::forward<Function>(f)(v4{});
#endif
#ifdef CUOP_HAS_ISA_v3
  if (level == Level::kV3) return std::forward<Function>(f)(v3{});
#endif
  (void)level;
  return std::forward<Function>(f)(baseline{});
}

/// Calls f with an object of the type of the level in use.
template <class Function>
decltype(auto) choose(Function&& f) {
  return choose(current(), std::forward<Function>(f));
}

}  // namespace cuop::isa
