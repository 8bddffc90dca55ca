// A cuDNN for the simulated GPU: the part of its graph interface that convolutions use, computed by
// plain loops on the stream's thread. Of its engines the best in its ranking cannot be compiled,
// the second is slow, the third one that must never be taken, because its results differ from run
// to run, the fourth fast, and the last wrong. For float16 one stands before them that must not be
// taken either: it answers 0 for -infinity, as the library's of that number does. For kernels of
// kUnservedWidth it has no engine at all.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cuop/backend/cuda/cudnn_api.h"
#include "cuop/core/half.h"
#include "tests/simulator/elements.h"
#include "tests/simulator/library_work.h"

namespace {

using namespace cuop::backend::cuda;
using namespace cuop::backend::cuda::dnn;
using cuop::BFloat16;
using cuop::Half;

constexpr int kBadParameter = 2000;
constexpr int kInternalError = 4000;
constexpr int kExecutionFailed = 5000;
constexpr size_t kWorkspaceBytes = 256;
constexpr int64_t kUnservedWidth = 29;
enum EngineIndex : int64_t {
  kSlow = 10,
  kFast,
  kWrong,
  kUnsteady,
  kPlain,
  kUncompiled,
  kNotBelow = 47
};

struct Session {
  StreamHandle stream = nullptr;
};

/// A descriptor: the values of its attributes as they were set.
struct Node {
  DescriptorType type{};
  std::map<Attribute, std::vector<std::byte>> values;
  std::unique_ptr<const cuop::simulator::LibraryMemory> kernels{};  ///< of a plan

  template <class T>
  std::vector<T> get(Attribute attribute) const {
    const auto found = values.find(attribute);
    std::vector<T> result(found == values.end() ? 0 : found->second.size() / sizeof(T));
    if (!result.empty()) std::memcpy(result.data(), found->second.data(), found->second.size());
    return result;
  }
  template <class T>
  T one(Attribute attribute) const {
    const auto all = get<T>(attribute);
    return all.empty() ? T{} : all.front();
  }
  const Node& node(Attribute attribute) const { return *one<const Node*>(attribute); }
  template <class T>
  void put(Attribute attribute, const T& value) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    values[attribute] = std::vector<std::byte>(bytes, bytes + sizeof value);
  }
};

size_t size_of(int type) {
  switch (type) {
    case kTypeCode<bool>:
      return sizeof(bool);
    case kTypeCode<Handle>:
    case kTypeCode<int64_t>:
    case kTypeCode<double>:
    case kTypeCode<const void*>:
    case kTypeCode<void*>:
      return 8;
    default:
      return 4;
  }
}

struct Tensor {
  ElementType type{};
  std::array<int64_t, 5> shape{1, 1, 1, 1, 1};  ///< two axes and three spatial ones
  void* data = nullptr;
};

/// Everything that a convolution needs when its turn in the stream comes.
struct Convolution {
  Tensor x, w, y, bias;
  std::array<int64_t, 3> stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  double beta = 0.0;
  bool has_relu = false, keeps_nan = false;
  double upper_bound = std::numeric_limits<float>::max();  ///< the library's, where none is given
  int64_t engine = kPlain;
  void* workspace = nullptr;
};

template <class Function>
void visit(ElementType type, Function&& function) {
  switch (type) {
    case ElementType::kReal64:
      return function(double{});
    case ElementType::kReal16:
      return function(Half{});
    case ElementType::kRealB16:
      return function(BFloat16{});
    case ElementType::kReal32:
      return function(float{});
  }
}

template <class T>
double read(const Tensor& t, int64_t i) {
  return cuop::simulator::widened(static_cast<const T*>(t.data)[i]).real();
}

int64_t offset(const Tensor& t, const std::array<int64_t, 5>& index) {
  int64_t at = 0;
  for (size_t axis = 0; axis < 5; ++axis) at = at * t.shape[axis] + index[axis];
  return at;
}

/// The sum of the window that belongs to one element of y.
template <class T>
double window(const Convolution& c, const std::array<int64_t, 5>& at) {
  const int64_t channels = c.w.shape[1], per_group = c.w.shape[0] * channels / c.x.shape[1];
  const int64_t first = at[1] / per_group * channels;
  double sum = 0.0;
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t i = 0; i < c.w.shape[2]; ++i) {
      for (int64_t j = 0; j < c.w.shape[3]; ++j) {
        for (int64_t k = 0; k < c.w.shape[4]; ++k) {
          const std::array<int64_t, 3> tap{i, j, k};
          std::array<int64_t, 5> from{at[0], first + channel, 0, 0, 0};
          bool is_inside = true;
          for (size_t axis = 0; axis < 3; ++axis) {
            const int64_t place =
                at[axis + 2] * c.stride[axis] - c.padding[axis] + tap[axis] * c.dilation[axis];
            is_inside = is_inside && place >= 0 && place < c.x.shape[axis + 2];
            from[axis + 2] = place;
          }
          const double element = is_inside ? read<T>(c.x, offset(c.x, from)) : 0.0;
          sum += element * read<T>(c.w, offset(c.w, {at[1], channel, i, j, k}));
        }
      }
    }
  }
  return sum;
}

double rectified(double value, const Convolution& c) {
  if (std::isnan(value)) return c.keeps_nan ? value : 0.0;
  return std::clamp(value, 0.0, c.upper_bound);
}

template <class T>
void convolve(const Convolution& c) {
  const auto& s = c.y.shape;
  std::array<int64_t, 5> at{};
  for (at[0] = 0; at[0] < s[0]; ++at[0])
    for (at[1] = 0; at[1] < s[1]; ++at[1])
      for (at[2] = 0; at[2] < s[2]; ++at[2])
        for (at[3] = 0; at[3] < s[3]; ++at[3])
          for (at[4] = 0; at[4] < s[4]; ++at[4]) {
            const int64_t i = offset(c.y, at);
            double value = window<T>(c, at);
            if (c.beta != 0.0) value += c.beta * read<T>(c.y, i);
            if (c.bias.data != nullptr) value += read<T>(c.bias, at[1]);
            if (c.has_relu) value = rectified(value, c);
            if (c.engine == kWrong && i == 0) value += 100.0;
            if (c.engine == kNotBelow && value == -std::numeric_limits<double>::infinity())
              value = 0;
            static_cast<T*>(c.y.data)[i] = cuop::simulator::narrowed<T>(value);
          }
}

/// Runs on the stream's thread.
void run(const Convolution& c) {
  visit(c.y.type, [&](auto element) { convolve<decltype(element)>(c); });
  if (c.engine == kSlow || c.engine == kPlain)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::memset(c.workspace, 0xff, kWorkspaceBytes);
}

std::vector<cuop::simulator::Region> regions_of(const Convolution& c) {
  std::vector<cuop::simulator::Region> regions{{c.workspace, kWorkspaceBytes}};
  for (const Tensor* t : {&c.x, &c.w, &c.y, &c.bias}) {
    if (t->data == nullptr) continue;
    int64_t count = 1;
    for (const int64_t size : t->shape) count *= size;
    visit(t->type, [&]<class T>(T) { regions.push_back({t->data, size_t(count) * sizeof(T)}); });
  }
  return regions;
}

Tensor tensor_of(const Node& node, const std::map<int64_t, void*>& addresses) {
  Tensor tensor;
  tensor.type = node.one<ElementType>(Attribute::kTensorElementType);
  const auto shape = node.get<int64_t>(Attribute::kTensorShape);
  tensor.shape = {shape[0], shape[1], 1, 1, 1};
  std::copy(shape.begin() + 2, shape.end(), tensor.shape.end() - (std::ssize(shape) - 2));
  const auto address = addresses.find(node.one<int64_t>(Attribute::kTensorId));
  if (address != addresses.end()) tensor.data = address->second;
  return tensor;
}

void read_axes(const Node& conv, Attribute attribute, std::array<int64_t, 3>& axes) {
  const auto given = conv.get<int64_t>(attribute);
  std::copy(given.begin(), given.end(), axes.end() - std::ssize(given));
}

const Node& graph_of(const Node& plan) {
  return plan.node(Attribute::kPlanConfig).node(Attribute::kHeuristicGraph);
}

bool is_relu(const Node& operation) {
  const Node& description = operation.node(Attribute::kPointwiseDescription);
  return description.one<PointwiseMode>(Attribute::kPointwiseMode) == PointwiseMode::kReluForward;
}

Convolution convolution_of(const Node& plan, const Node& pack) {
  std::map<int64_t, void*> addresses;
  const auto ids = pack.get<int64_t>(Attribute::kPackIds);
  const auto pointers = pack.get<void*>(Attribute::kPackPointers);
  for (size_t i = 0; i < ids.size(); ++i) addresses[ids[i]] = pointers[i];
  const auto operations = graph_of(plan).get<const Node*>(Attribute::kGraphOperations);
  const Node& forward = *operations.at(0);
  const Node& conv = forward.node(Attribute::kForwardConv);
  Convolution c;
  c.engine = plan.node(Attribute::kPlanConfig).one<int64_t>(Attribute::kEngineIndex);
  c.x = tensor_of(forward.node(Attribute::kForwardX), addresses);
  c.w = tensor_of(forward.node(Attribute::kForwardW), addresses);
  c.y = tensor_of(forward.node(Attribute::kForwardY), addresses);
  for (size_t i = 1; i < operations.size(); ++i) {
    const Node& operation = *operations[i];
    const Node& description = operation.node(Attribute::kPointwiseDescription);
    c.y = tensor_of(operation.node(Attribute::kPointwiseY), addresses);
    if (is_relu(operation)) {
      c.has_relu = true;
      c.keeps_nan = description.one<NanPropagation>(Attribute::kPointwiseNanPropagation) ==
                    NanPropagation::kStays;
      const auto bound = description.get<double>(Attribute::kPointwiseUpperBound);
      if (!bound.empty()) c.upper_bound = bound.front();
    } else {
      c.bias = tensor_of(operation.node(Attribute::kPointwiseB), addresses);
    }
  }
  read_axes(conv, Attribute::kConvStrides, c.stride);
  read_axes(conv, Attribute::kConvPrePaddings, c.padding);
  read_axes(conv, Attribute::kConvDilations, c.dilation);
  const bool is_wide = conv.one<ElementType>(Attribute::kConvComputeType) == ElementType::kReal64;
  c.beta = is_wide ? forward.one<double>(Attribute::kForwardBeta)
                   : forward.one<float>(Attribute::kForwardBeta);
  return c;
}

std::vector<int64_t> engines_of(const Node& heuristic) {
  const Node& graph = heuristic.node(Attribute::kHeuristicGraph);
  const Node& forward = graph.node(Attribute::kGraphOperations);
  const Node& w = forward.node(Attribute::kForwardW);
  if (w.get<int64_t>(Attribute::kTensorShape).back() == kUnservedWidth) return {};
  const auto mode = heuristic.one<HeuristicMode>(Attribute::kHeuristicMode);
  if (mode == HeuristicMode::kFallback) return {kPlain};
  std::vector<int64_t> engines{kUncompiled, kSlow, kUnsteady, kFast, kWrong};
  const Node& x = forward.node(Attribute::kForwardX);
  if (x.one<ElementType>(Attribute::kTensorElementType) == ElementType::kReal16) {
    engines.insert(engines.begin(), kNotBelow);
  }
  return engines;
}

/// What is asked of a descriptor that others fill in; -1 when it is an attribute as it was set.
int64_t answer(const Node& node, Attribute attribute, int64_t capacity, void** given) {
  if (attribute == Attribute::kHeuristicResults) {
    const auto engines = engines_of(node);
    const auto count = std::min<int64_t>(capacity, std::ssize(engines));
    for (int64_t i = 0; i < count; ++i) {
      auto& config = *static_cast<Node*>(given[i]);
      config.put<int64_t>(Attribute::kEngineIndex, engines[static_cast<size_t>(i)]);
      config.values[Attribute::kHeuristicGraph] = node.values.at(Attribute::kHeuristicGraph);
    }
    return std::ssize(engines);
  }
  const auto engine = node.one<int64_t>(Attribute::kEngineIndex);
  if (attribute == Attribute::kConfigEngine) {
    auto& filled = *static_cast<Node*>(given[0]);
    filled.put<int64_t>(Attribute::kEngineIndex, engine);
    if (engine == kUnsteady) filled.put<Note>(Attribute::kEngineNotes, Note::kNondeterministic);
    return 1;
  }
  if (attribute == Attribute::kConfigKnobChoices) {
    for (int64_t i = 0; i < std::min<int64_t>(capacity, 2); ++i) {
      auto& knob = *static_cast<Node*>(given[i]);
      knob.put<Knob>(Attribute::kKnobType, static_cast<Knob>(7 - i));
      knob.put<int64_t>(Attribute::kKnobValue, engine * 2 + i);
    }
    return 2;
  }
  return -1;
}

}  // namespace

CUOP_SIMULATOR_ENTRY size_t cudnnGetVersion() { return 999; }
CUOP_SIMULATOR_ENTRY const char* cudnnGetErrorString(int status) {
  return status == kBadParameter      ? "CUDNN_STATUS_BAD_PARAM"
         : status == kExecutionFailed ? "CUDNN_STATUS_EXECUTION_FAILED"
                                      : "CUDNN_STATUS_NOT_SUPPORTED";
}
CUOP_SIMULATOR_ENTRY void cudnnGetLastErrorString(char* text, size_t size) {
  if (size > 0) text[0] = '\0';
}
CUOP_SIMULATOR_ENTRY int cudnnCreate(Session** handle) {
  *handle = new Session;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnDestroy(Session* handle) {
  delete handle;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnSetStream(Session* handle, StreamHandle stream) {
  handle->stream = stream;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnBackendCreateDescriptor(DescriptorType type, Node** made) {
  *made = new Node{type, {}};
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnBackendDestroyDescriptor(Node* node) {
  delete node;
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnBackendFinalize(Node* node) {
  if (node->type == DescriptorType::kPlan) {
    const Node& config = node->node(Attribute::kPlanConfig);
    if (config.one<int64_t>(Attribute::kEngineIndex) == kUncompiled) return kNotCompiled;
    node->kernels = std::make_unique<const cuop::simulator::LibraryMemory>();
    return node->kernels->region().data == nullptr ? kInternalError : 0;
  }
  if (node->type != DescriptorType::kOperationGraph) return 0;
  // As some versions of the library: no bias within the convolution in double precision, no
  // rectifier without a bias in single precision.
  const auto operations = node->get<const Node*>(Attribute::kGraphOperations);
  const Node& conv = operations.at(0)->node(Attribute::kForwardConv);
  const bool is_wide = conv.one<ElementType>(Attribute::kConvComputeType) == ElementType::kReal64;
  if (is_wide && operations.size() > 1) return kNotSupported;
  const Node& x = operations.at(0)->node(Attribute::kForwardX);
  const bool is_single = x.one<ElementType>(Attribute::kTensorElementType) == ElementType::kReal32;
  return is_single && operations.size() == 2 && is_relu(*operations[1]) ? kNotSupported : 0;
}
CUOP_SIMULATOR_ENTRY int cudnnBackendSetAttribute(Node* node, Attribute attribute, int type,
                                                  int64_t count, const void* values) {
  if (count < 0 || (count > 0 && values == nullptr)) return kBadParameter;
  const auto* bytes = static_cast<const std::byte*>(values);
  node->values[attribute].assign(bytes, bytes + static_cast<size_t>(count) * size_of(type));
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnBackendGetAttribute(const Node* node, Attribute attribute, int type,
                                                  int64_t capacity, int64_t* count, void* values) {
  *count = answer(*node, attribute, capacity, static_cast<void**>(values));
  if (*count >= 0) return 0;
  if (attribute == Attribute::kPlanWorkspace) {
    const auto bytes = int64_t{kWorkspaceBytes};
    std::memcpy(values, &bytes, sizeof bytes);
    *count = 1;
    return 0;
  }
  const auto found = node->values.find(attribute);
  const size_t bytes = found == node->values.end() ? 0 : found->second.size();
  *count = static_cast<int64_t>(bytes / size_of(type));
  const size_t room = static_cast<size_t>(capacity) * size_of(type);
  if (bytes > 0) std::memcpy(values, found->second.data(), std::min(bytes, room));
  return 0;
}
CUOP_SIMULATOR_ENTRY int cudnnBackendExecute(Session* handle, const Node* plan, const Node* pack) {
  Convolution c = convolution_of(*plan, *pack);
  c.workspace = pack->one<void*>(Attribute::kPackWorkspace);
  if (c.workspace == nullptr) return kBadParameter;
  auto regions = regions_of(c);
  regions.push_back(plan->kernels->region());
  const Result result =
      cuop::simulator::start_library_work(handle->stream, std::move(regions), [c] { run(c); });
  return result == Result::kSuccess ? 0 : kExecutionFailed;
}
