#include "cuop/core/divide_up.h"
#include "cuop/jit/cuda/text_kernel.h"
#include "cuop/ops/random/random_arguments.cuh"
#include "cuop/ops/random/random_kernels.h"

namespace cuop::kernels {

namespace {
constexpr int kThreads = 256;
}  // namespace

jit::TextKernel random_fill_kernel(DType dtype, Distribution distribution) {
  static constexpr const char* kKinds[] = {"DrawKind::kNormal", "DrawKind::kUniform",
                                           "DrawKind::kInteger"};
  return {"random", "cuop/ops/random/random.cuh", "RandomFill",
          jit::instance("random_fill", dtype, kKinds[static_cast<size_t>(distribution)]), kThreads};
}

void random_fill_cuda(const Tensor& out, const Draw& draw, Generator::Ticket ticket) {
  const jit::RandomFill arguments{out.data(),  out.size(), ticket.seed, ticket.counter, draw.first,
                                  draw.second, draw.last,  draw.low,    draw.range};
  const bool is_wide = draw.distribution == Distribution::kInteger || itemsize(out.dtype()) == 8;
  const int64_t each = is_wide ? 2 : 4;
  const int64_t blocks = divide_up(out.size(), each * kThreads);
  jit::launch_text(random_fill_kernel(out.dtype(), draw.distribution), out.device(), blocks,
                   &arguments);
}

}  // namespace cuop::kernels
