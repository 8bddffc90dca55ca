// Recordings that are not cuOP's own.
#pragma once

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "tests/gpu/gpu_test.h"

namespace cuop {

/// A graph as another library records and starts it, of what is done on one of its streams.
class ForeignGraph {
 public:
  template <class Work>
  ForeignGraph(Stream stream, Work&& work) {
    const backend::cuda::ContextScope scope(kGpu);
    const StreamScope current(stream);
    const backend::cuda::StreamHandle queue = backend::cuda::handle_of(stream);
    backend::cuda::check(driver_.stream_begin_capture(queue, backend::cuda::CaptureMode::kGlobal),
                         "begin");
    work();
    backend::cuda::GraphHandle graph = nullptr;
    backend::cuda::check(driver_.stream_end_capture(queue, &graph), "end");
    backend::cuda::check(driver_.graph_instantiate(&exec_, graph, 0), "instantiate");
    driver_.graph_destroy(graph);
  }
  ~ForeignGraph() { driver_.graph_exec_destroy(exec_); }
  ForeignGraph(const ForeignGraph&) = delete;
  ForeignGraph& operator=(const ForeignGraph&) = delete;

  void launch(Stream stream) {
    const backend::cuda::ContextScope scope(kGpu);
    backend::cuda::check(driver_.graph_launch(exec_, backend::cuda::handle_of(stream)), "launch");
  }

 private:
  const backend::cuda::Driver& driver_ = backend::cuda::driver();
  backend::cuda::GraphExecHandle exec_ = nullptr;
};

}  // namespace cuop
