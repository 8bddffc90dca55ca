// Capture and replay of CUDA graphs.
#pragma once

#include <optional>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/device_runtime.h"
#include "cuop/backend/graph.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/current.h"

namespace cuop::backend::cuda {

class GraphMemory;

class CudaGraph final : public Graph, private NonCopyable {
 public:
  explicit CudaGraph(Runtime& runtime);
  ~CudaGraph() override;

  void begin() override;
  void end() override;
  void abandon() noexcept override;
  void replay(Stream stream) override;
  int64_t node_count() const override { return node_count_; }

 private:
  GraphHandle stop_recording();

  Runtime& runtime_;
  const Stream stream_;  ///< on which the work is recorded
  Stream last_;          ///< the last replay's, or stream_
  GraphMemory* memory_ = nullptr;
  std::optional<OwnCapture> capture_;
  std::optional<StreamScope> current_stream_;
  std::optional<memory::ResourceScope> current_memory_;
  GraphExecHandle exec_ = nullptr;
  int64_t node_count_ = 0;
};

}  // namespace cuop::backend::cuda
