// A graph of cuDNN with the engine that was chosen to compute it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/cudnn_api.h"

namespace cuop::backend::cuda::dnn {

/// What the tensors of a convolution's graph are; the numbers are their names in the graph.
/// kSum and kBiased live only inside the graph.
enum class Role : int64_t { kX = 0, kW = 1, kBias = 2, kSum = 3, kY = 4, kBiased = 5 };

/// A row-major tensor; `is_virtual` for one that lives only inside the graph.
struct TensorSpec {
  Role role = Role::kX;
  ElementType type = ElementType::kReal32;
  std::vector<int64_t> shape;
  bool is_virtual = false;
};
/// `alignment`: what the addresses of the tensor are multiples of, in bytes.
Descriptor describe(const char* who, const TensorSpec& spec, int64_t alignment);

/// The operations of a graph and all that they are made of. Descriptors may refer to each other.
struct Graph {
  std::vector<Descriptor> parts;
  std::vector<void*> operations;
  Descriptor& keep(Descriptor part) { return parts.emplace_back(std::move(part)); }
};

/// An engine with its settings. The numbers mean the same to the same version of the library.
struct EngineChoice {
  int64_t engine = -1;
  std::vector<std::pair<int64_t, int64_t>> knobs;  ///< which, and its value; ascending
  bool operator==(const EngineChoice&) const = default;
  /// "34 2=1 7=64".
  std::string text() const;
  static std::optional<EngineChoice> parse(const std::string& text);
};

class CudnnPlan {
 public:
  /// The first engine of cuDNN's ranking that computes the graph as tensors of that type need it
  /// (float32: each product and sum in float32) in so many bytes of workspace; none when there is
  /// no such engine. With `wanted`, that engine, when the ranking has it and it keeps to the same
  /// rules.
  static std::optional<CudnnPlan> choose(const char* who, Handle handle, Graph graph,
                                         ElementType type, int64_t most_workspace,
                                         const EngineChoice* wanted = nullptr);
  /// The engines that `choose` has, the best first and each once, `most` of them.
  static std::vector<EngineChoice> offered(const char* who, Handle handle, Graph graph,
                                           ElementType type, int64_t most_workspace, size_t most);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  /// By the engine's own notes.
  bool on_matrix_units() const { return on_matrix_units_; }
  /// Addresses by role; null for the roles that the graph does not have.
  using Addresses = std::array<const void*, 5>;
  void run(const char* who, Handle handle, const Addresses& data, void* workspace) const;

 private:
  CudnnPlan(Graph graph, Descriptor plan, int64_t bytes, bool on_matrix_units)
      : graph_(std::move(graph)),
        plan_(std::move(plan)),
        workspace_bytes_(bytes),
        on_matrix_units_(on_matrix_units) {}

  Graph graph_;
  Descriptor plan_;
  int64_t workspace_bytes_;
  bool on_matrix_units_;
};

}  // namespace cuop::backend::cuda::dnn
