#include "cuop/jit/build_options.h"

#include <algorithm>

#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

constexpr int kRegistersOfBlock = 65536;

const backend::BuildOptions& asked() { return backend::execution_options().build; }

}  // namespace

int block_threads(int usual) {
  const int wanted = backend::execution_options().kernel.shape.threads;
  return wanted == 0 ? usual : wanted;
}

int64_t access_bytes(int64_t usual) {
  const int wanted = backend::execution_options().kernel.shape.access_bytes;
  return wanted == 0 ? usual : wanted;
}

int access_width(int64_t itemsize, int64_t most_bytes, uintptr_t addresses, int64_t counts) {
  const uint64_t bits = static_cast<uint64_t>(most_bytes) | addresses |
                        static_cast<uint64_t>(counts) * static_cast<uint64_t>(itemsize);
  const auto bytes = static_cast<int64_t>(bits & (~bits + 1));  // the lowest bit
  return static_cast<int>(std::max<int64_t>(1, bytes / itemsize));
}

std::string build_key() {
  const int threads = block_threads(0);  // the rest of a shape is in the text of a kernel
  std::string key = threads == 0 ? "" : cat(" block ", threads);
  if (asked() == backend::BuildOptions{}) return key;
  return key += cat(" registers ", asked().max_registers, " level ", asked().assembler_level,
                    asked().is_unrolled ? "" : " not unrolled");
}

std::string launch_bounds(int threads, int resident) {
  if (asked().max_registers != 0) return "";
  return resident == 1 ? cat("__launch_bounds__(", threads, ") ")
                       : cat("__launch_bounds__(", threads, ", ", resident, ") ");
}

CompileRequest with_build_options(CompileRequest request, int threads) {
  if (asked().max_registers != 0) {
    // Without the qualifier nothing else keeps a block's registers within a multiprocessor's.
    const int most = std::min(asked().max_registers, kRegistersOfBlock / threads);
    request.options.push_back(cat("--maxrregcount=", most));
  }
  if (asked().assembler_level != backend::BuildOptions{}.assembler_level) {
    request.options.push_back(cat("--ptxas-options=-O", asked().assembler_level));
  }
  if (const int own = block_threads(0); own != 0) {
    request.options.push_back(cat("-DCUOP_BLOCK_THREADS=", own));
  }
  if (!asked().is_unrolled) request.options.emplace_back(kNotUnrolled);
  return request;
}

}  // namespace cuop::jit
