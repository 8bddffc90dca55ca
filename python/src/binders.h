// The binding functions, one a family, called by module.cpp in this order.
#pragma once

#include "bindings.h"

namespace cuop::python {

void bind_errors(nb::module_& m);
void bind_types(nb::module_& m);
void bind_linalg_types(nb::module_& m);
void bind_tensor(nb::module_& m);
void bind_create(nb::module_& m);
void bind_view(nb::module_& m);
void bind_device(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_matmul(nb::module_& m);
void bind_memory(nb::module_& m);
void bind_blas(nb::module_& m);
void bind_comm(nb::module_& m);
void bind_conv(nb::module_& m);
void bind_pool(nb::module_& m);
void bind_fft(nb::module_& m);
void bind_arrange(nb::module_& m);
void bind_index(nb::module_& m);
void bind_random(nb::module_& m);
void bind_stencil(nb::module_& m);
void bind_sort(nb::module_& m);
void bind_reduce(nb::module_& m);
void bind_partial(nb::module_& m);
void bind_softmax(nb::module_& m);
void bind_norm(nb::module_& m);
void bind_operators(nb::module_& m);
void bind_network_operators(nb::module_& m);
void bind_jit(nb::module_& m);
void bind_kernel_cache(nb::module_& m);
void bind_tune(nb::module_& m);
void bind_measure(nb::module_& m);
void bind_elementwise(nb::module_& m);
void bind_fusion(nb::module_& m);

void bind_dist_plan(nb::module_& m);
void bind_dist(nb::module_& m);
void bind_dist_algo(nb::module_& m);
void bind_dist_grid(nb::module_& m);

}  // namespace cuop::python
