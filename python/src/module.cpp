#include <stdexcept>

#include "binders.h"
#include "cuop/core/error.h"

namespace {

void bind_everything(cuop::python::Module& m) {
  m.doc() = "The compiled engine of cuOP; use it through `import cuop`.";
  nanobind::set_leak_warnings(false);  // tensors may be held by other libraries at exit
  cuop::python::bind_errors(m);
  cuop::python::bind_types(m);
  cuop::python::bind_linalg_types(m);
  cuop::python::bind_tensor(m);
  cuop::python::bind_dtype_rules(m);
  cuop::python::bind_methods(m);
  cuop::python::bind_create(m);
  cuop::python::bind_files(m);
  cuop::python::bind_view(m);
  cuop::python::bind_device(m);
  cuop::python::bind_memory(m);
  cuop::python::bind_stream(m);
  cuop::python::bind_matmul(m);
  cuop::python::bind_einsum(m);
  cuop::python::bind_blas(m);
  cuop::python::bind_conv(m);
  cuop::python::bind_pool(m);
  cuop::python::bind_fft(m);
  cuop::python::bind_arrange(m);
  cuop::python::bind_index(m);
  cuop::python::bind_random(m);
  cuop::python::bind_stencil(m);
  cuop::python::bind_sort(m);
  cuop::python::bind_sparse(m);
  cuop::python::bind_reduce(m);
  cuop::python::bind_partial(m);
  cuop::python::bind_softmax(m);
  cuop::python::bind_norm(m);
  cuop::python::bind_operators(m);
  cuop::python::bind_network_operators(m);
  cuop::python::bind_jit(m);
  cuop::python::bind_measure(m);
  cuop::python::bind_kernel_cache(m);
  cuop::python::bind_tune(m);
  cuop::python::bind_elementwise(m);
  cuop::python::bind_fusion(m);
  cuop::python::Module dist(m.def_submodule("_dist", "The engine of cuop.dist."));
  cuop::python::bind_comm(dist);
  cuop::python::bind_dist_plan(dist);
  cuop::python::bind_dist(dist);
  cuop::python::bind_dist_algo(dist);
  cuop::python::bind_dist_einsum(dist);
  cuop::python::bind_dist_arithmetic(dist);
  cuop::python::bind_dist_methods(dist);
  cuop::python::bind_dist_grid(dist);
  cuop::python::Module executor(m.def_submodule("_executor", "The engine of cuop.executor."));
  cuop::python::bind_executor(executor);
}

}  // namespace

NB_MODULE(_core, m) {
  try {
    cuop::python::Module module(m);
    bind_everything(module);
  } catch (const cuop::Error& error) {
    // nanobind makes an ImportError of it, whose text must be UTF-8 whatever the environment holds.
    throw std::runtime_error(cuop::python::text_of(cuop::python::make_message(error.what())));
  }
}
