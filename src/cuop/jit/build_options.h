// How the kernels that a thread asks for are compiled, where its caller wants it otherwise than
// usual: each way makes a binary of its own.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/backend/execution.h"
#include "cuop/jit/nvrtc.h"

namespace cuop::jit {

/// What the assembler gives a thread at least, whatever it is told.
inline constexpr int kFewestRegisters = 24;
inline constexpr int kMostRegisters = 255;

/// What kernels of our own take of the shape that this thread asks for (backend/execution.h), or
/// else the usual value. Where the text of a kernel names its threads, it has them from the macro
/// CUOP_BLOCK_THREADS.
int block_threads(int usual);
int64_t access_bytes(int64_t usual);

/// How many neighbouring elements make one access of up to `most_bytes`: the largest power of two,
/// of whose bytes all addresses are multiples, and of which all counts of elements (sizes, strides)
/// are. Both are or'ed together.
int access_width(int64_t itemsize, int64_t most_bytes, uintptr_t addresses, int64_t counts);

/// What tells apart the kernels of this thread's options and shape; "" for the usual ones.
std::string build_key();

/// The qualifier of a kernel for blocks of so many threads, with a space behind it, or "": the
/// compiler takes no limit of registers beside it. So many blocks can be resident on a
/// multiprocessor at once as far as registers go.
std::string launch_bounds(int threads, int resident = 1);
/// Adds this thread's options to the request of a kernel whose source has that qualifier.
CompileRequest with_build_options(CompileRequest request, int threads);

}  // namespace cuop::jit
