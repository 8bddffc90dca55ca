#include "cuop/jit/cuda/text_kernel.h"

#include <bit>

#include "cuop/core/text.h"
#include "cuop/jit/build_options.h"
#include "cuop/jit/cuda/expr_cuda.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "cuop/jit/cuda/kernel_fields.h"

namespace cuop::jit {

CompileRequest kernel_request(const TextKernel& kernel) {
  const std::string source = cat(
      "#include \"", kernel.path, "\"\nnamespace cuop::jit {\n", "extern \"C\" __global__ void ",
      launch_bounds(kernel.threads, kernel.resident), kEntry, "(const __grid_constant__ ",
      kernel.arguments, " a) {\n  ", kernel.call, "(a);\n}\n}  // namespace cuop::jit\n");
  return with_build_options({kernel.title, source, ""}, kernel.threads);
}

void launch_text(const TextKernel& kernel, Device device, int64_t blocks, const void* arguments,
                 int64_t pieces) {
  const LoadedKernel& loaded =
      loaded_kernel(device, kernel.call, [&] { return kernel_request(kernel); });
  launch(loaded,
         {.grid_x = grid_blocks(blocks),
          .grid_y = static_cast<unsigned>(pieces),
          .threads = static_cast<unsigned>(kernel.threads),
          .shared_bytes = static_cast<unsigned>(kernel.shared_bytes)},
         arguments, current_stream(device));
}

const char* text_type(DType dtype) { return detail::type_name(dtype); }

const char* word_type(int64_t bytes) {
  constexpr const char* kTypes[] = {"uint8_t", "uint16_t", "uint32_t", "uint64_t", "Word16"};
  return kTypes[std::countr_zero(static_cast<uint64_t>(bytes))];
}

}  // namespace cuop::jit
