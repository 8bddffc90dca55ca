// The binding functions, one a family, called by module.cpp in this order.
#pragma once

#include "define.h"

namespace cuop::python {

void bind_errors(Module& m);
void bind_types(Module& m);
void bind_linalg_types(Module& m);
void bind_tensor(Module& m);
void bind_dtype_rules(Module& m);
void bind_methods(Module& m);
void bind_create(Module& m);
void bind_view(Module& m);
void bind_files(Module& m);
void bind_device(Module& m);
void bind_stream(Module& m);
void bind_matmul(Module& m);
void bind_einsum(Module& m);
void bind_memory(Module& m);
void bind_blas(Module& m);
void bind_comm(Module& m);
void bind_conv(Module& m);
void bind_pool(Module& m);
void bind_fft(Module& m);
void bind_arrange(Module& m);
void bind_index(Module& m);
void bind_random(Module& m);
void bind_stencil(Module& m);
void bind_sort(Module& m);
void bind_sparse(Module& m);
void bind_reduce(Module& m);
void bind_partial(Module& m);
void bind_softmax(Module& m);
void bind_norm(Module& m);
void bind_operators(Module& m);
void bind_network_operators(Module& m);
void bind_jit(Module& m);
void bind_kernel_cache(Module& m);
void bind_tune(Module& m);
void bind_measure(Module& m);
void bind_elementwise(Module& m);
void bind_fusion(Module& m);

void bind_dist_plan(Module& m);
void bind_dist(Module& m);
void bind_dist_algo(Module& m);
void bind_dist_einsum(Module& m);
void bind_dist_arithmetic(Module& m);
void bind_dist_methods(Module& m);
void bind_dist_grid(Module& m);

void bind_executor(Module& m);

}  // namespace cuop::python
