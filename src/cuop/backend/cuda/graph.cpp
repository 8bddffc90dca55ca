#include "cuop/backend/cuda/graph.h"

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/graph_memory.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/error.h"

namespace cuop::backend::cuda {

CudaGraph::CudaGraph(Runtime& runtime)
    : runtime_(runtime), stream_(runtime.create_stream()), last_(stream_) {}

CudaGraph::~CudaGraph() {
  abandon();
  if (exec_ != nullptr) driver().graph_exec_destroy(exec_);
  if (memory_ != nullptr) memory_->leave(last_);
  runtime_.destroy_stream(stream_);
}

void CudaGraph::begin() {
  if (current_stream_ || exec_ != nullptr) {
    throw ExecutionError(cat("graph: it ", exec_ != nullptr ? "was" : "is being",
                             " captured already; make another for other work"));
  }
  const Device device = runtime_.device();
  const ContextScope scope(device);
  const Stream before = current_stream(device);
  runtime_.order(stream_, before);
  if (memory_ == nullptr) {
    memory_ = new GraphMemory(memory::current_resource(device), runtime_);
  }
  // Relaxed: memory may be taken from the driver meanwhile, which is no part of the recording.
  check(driver().stream_begin_capture(handle_of(stream_), CaptureMode::kRelaxed),
        "graph: starting a capture on ", device);
  capture_.emplace(handle_of(stream_));
  current_stream_.emplace(stream_);
  current_memory_.emplace(*memory_);
}

GraphHandle CudaGraph::stop_recording() {
  current_memory_.reset();
  current_stream_.reset();
  capture_.reset();
  const ContextScope scope(runtime_.device());
  GraphHandle graph = nullptr;
  check(driver().stream_end_capture(handle_of(stream_), &graph), "graph: ending a capture on ",
        runtime_.device());
  return graph;
}

void CudaGraph::end() {
  if (!current_stream_) throw ExecutionError("graph: no capture has begun");
  const GraphHandle graph = stop_recording();
  const ContextScope scope(runtime_.device());
  const Driver& d = driver();
  size_t nodes = 0;
  Result result = d.graph_get_nodes(graph, nullptr, &nodes);
  if (result == Result::kSuccess) result = d.graph_instantiate(&exec_, graph, 0);
  d.graph_destroy(graph);
  check(result, "graph: making ", nodes, " nodes ready on ", runtime_.device());
  node_count_ = static_cast<int64_t>(nodes);
}

void CudaGraph::abandon() noexcept {
  if (!current_stream_) return;
  try {
    const GraphHandle graph = stop_recording();
    if (graph != nullptr) driver().graph_destroy(graph);
  } catch (const Error&) {
    // The recording failed, which is why it is abandoned; there is nothing to destroy.
  }
}

void CudaGraph::replay(Stream stream) {
  if (exec_ == nullptr) throw ExecutionError("graph: nothing was captured yet");
  const ContextScope scope(runtime_.device());
  runtime_.order(stream, last_);
  Operation operation("graph", stream);
  check(driver().graph_launch(exec_, handle_of(stream)), "graph: replaying ", node_count_,
        " nodes on ", runtime_.device());
  last_ = stream;
  operation.started();
}

}  // namespace cuop::backend::cuda
