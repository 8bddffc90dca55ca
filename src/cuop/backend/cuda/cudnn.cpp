#include "cuop/backend/cuda/cudnn.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cudnn_plan.h"
#include "cuop/backend/cuda/idle_objects.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/library_use.h"
#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/noncopyable.h"
#include "cuop/memory/workspace.h"

namespace cuop::backend::cuda {

namespace {

using dnn::Attribute;
using dnn::CudnnPlan;
using dnn::Descriptor;
using dnn::DescriptorType;
using dnn::ElementType;
using dnn::Handle;
using dnn::Role;

constexpr size_t kMaxPlans = 256;

ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return ElementType::kReal64;
    case DType::kFloat16:
      return ElementType::kReal16;
    case DType::kBFloat16:
      return ElementType::kRealB16;
    default:
      return ElementType::kReal32;
  }
}

/// The graph of one convolution; a bias is added, and then the sum rectified, before the only
/// rounding to y's dtype.
class GraphOfConv {
 public:
  GraphOfConv(const char* who, const ConvShape& s)
      : who_(who),
        s_(s),
        type_(element_type(s.dtype)),
        compute_(type_ == ElementType::kReal64 ? type_ : ElementType::kReal32) {
    // Two spatial axes where they are enough: most engines are for them.
    const bool is_flat = s.in[0] == 1 && s.kernel[0] == 1 && s.out[0] == 1 && s.padding[0] == 0;
    first_ = is_flat ? 1 : 0;
  }

  dnn::Graph build() {
    void* const y = tensor(Role::kY, s_.batch, s_.out_channels, s_.out);
    const auto part = [&](Role role, bool is_last) {
      return is_last ? y : tensor(role, s_.batch, s_.out_channels, s_.out);
    };
    void* const sum = part(Role::kSum, !s_.has_bias && !s_.has_relu);
    forward(sum);
    void* const biased = s_.has_bias ? part(Role::kBiased, !s_.has_relu) : sum;
    if (s_.has_bias) add_bias(sum, biased);
    if (s_.has_relu) rectify(biased, y);
    return std::move(graph_);
  }

 private:
  std::vector<int64_t> spatial(const ConvShape::Axes& all) const {
    return {all.begin() + first_, all.end()};
  }

  void* tensor(Role role, int64_t first, int64_t second, const ConvShape::Axes& axes) {
    dnn::TensorSpec spec;
    spec.role = role;
    spec.is_virtual = role == Role::kSum || role == Role::kBiased;
    spec.type = spec.is_virtual ? compute_ : type_;
    spec.shape = {first, second};
    for (const int64_t size : spatial(axes)) spec.shape.push_back(size);
    return graph_.keep(dnn::describe(who_, spec, kConvAlignment)).raw();
  }

  Descriptor conv_description() const {
    Descriptor conv(who_, DescriptorType::kConvolution);
    const auto put = [&](Attribute attribute, const ConvShape::Axes& axes) {
      conv.set(attribute, std::span<const int64_t>(spatial(axes)));
    };
    conv.set(Attribute::kConvComputeType, compute_);
    conv.set(Attribute::kConvMode, dnn::ConvMode::kCrossCorrelation);
    conv.set(Attribute::kConvSpatialAxes, int64_t{3} - first_);
    put(Attribute::kConvPrePaddings, s_.padding);
    put(Attribute::kConvPostPaddings, s_.padding);
    put(Attribute::kConvStrides, s_.stride);
    put(Attribute::kConvDilations, s_.dilation);
    conv.finalize();
    return conv;
  }

  void forward(void* result) {
    Descriptor operation(who_, DescriptorType::kConvolutionForward);
    operation.set(Attribute::kForwardX, tensor(Role::kX, s_.batch, s_.in_channels, s_.in));
    operation.set(Attribute::kForwardW,
                  tensor(Role::kW, s_.out_channels, s_.group_in(), s_.kernel));
    operation.set(Attribute::kForwardY, result);
    operation.set(Attribute::kForwardConv, graph_.keep(conv_description()));
    const double beta = s_.adds_to_y ? 1.0 : 0.0;
    if (compute_ == ElementType::kReal64) {
      operation.set(Attribute::kForwardAlpha, 1.0);
      operation.set(Attribute::kForwardBeta, beta);
    } else {
      operation.set(Attribute::kForwardAlpha, 1.0F);
      operation.set(Attribute::kForwardBeta, static_cast<float>(beta));
    }
    finish(std::move(operation));
  }

  /// An operation on each element; `description` lacks only its end.
  Descriptor pointwise(Descriptor description, dnn::PointwiseMode mode, void* x, void* result) {
    description.set(Attribute::kPointwiseMode, mode);
    description.set(Attribute::kPointwisePrecision, compute_);
    description.finalize();
    Descriptor operation(who_, DescriptorType::kPointwiseOperation);
    operation.set(Attribute::kPointwiseDescription, graph_.keep(std::move(description)));
    operation.set(Attribute::kPointwiseX, x);
    operation.set(Attribute::kPointwiseY, result);
    return operation;
  }

  void add_bias(void* sum, void* result) {
    constexpr ConvShape::Axes kOnes{1, 1, 1};
    Descriptor operation = pointwise(Descriptor(who_, DescriptorType::kPointwise),
                                     dnn::PointwiseMode::kAdd, sum, result);
    operation.set(Attribute::kPointwiseB, tensor(Role::kBias, 1, s_.out_channels, kOnes));
    finish(std::move(operation));
  }

  /// Where nothing else is said, NaN need not stay, and the largest number is a bound from above.
  void rectify(void* sum, void* result) {
    Descriptor description(who_, DescriptorType::kPointwise);
    description.set(Attribute::kPointwiseNanPropagation, dnn::NanPropagation::kStays);
    description.set(Attribute::kPointwiseUpperBound, std::numeric_limits<double>::infinity());
    finish(pointwise(std::move(description), dnn::PointwiseMode::kReluForward, sum, result));
  }

  void finish(Descriptor operation) {
    operation.finalize();
    graph_.operations.push_back(operation.raw());
    graph_.keep(std::move(operation));
  }

  const char* who_;
  const ConvShape& s_;
  ElementType type_, compute_;
  std::ptrdiff_t first_ = 0;
  dnn::Graph graph_;
};

/// What this thread leaves to an engine.
int64_t most_workspace() {
  return std::min(kConvWorkspace, execution_options().spare.workspace.value_or(kConvWorkspace));
}

/// A problem, and the engine that is asked for ("" for cuDNN's own choice) with its workspace.
struct PlanKey {
  ConvShape shape;
  std::string engine;
  int64_t most_workspace = 0;
  bool operator==(const PlanKey&) const = default;
};
struct PlanKeyHash {
  size_t operator()(const PlanKey& key) const {
    return hash_numbers(ConvShapeHash()(key.shape), hash_text(key.engine), key.most_workspace);
  }
};

/// A handle of the library with the plans used last: both serve one thread at a time.
class Session : NonCopyable {
 public:
  explicit Session(const char* who) {
    const trace::Interruption interruption;
    const RelaxedCapture relaxed;
    dnn::check_status(dnn::library().create(&handle_), who, "its start");
  }
  ~Session() {
    plans_.clear();
    dnn::library().destroy(handle_);
  }

  Handle handle() const { return handle_; }

  /// Null when cuDNN has no engine for the shape, or not the one that is asked for.
  std::shared_ptr<const CudnnPlan> plan(const char* who, const ConvShape& shape,
                                        const std::string& engine) {
    const RelaxedCapture relaxed;  // plans may be made and ended below
    const PlanKey key{shape, engine, most_workspace()};
    if (const auto* known = plans_.find(key)) return *known;
    const trace::Interruption interruption;
    auto found = make(who, shape, engine);
    auto plan = found ? std::make_shared<const CudnnPlan>(*std::move(found)) : nullptr;
    plans_.put(key, plan);
    return plan;
  }

  std::vector<dnn::EngineChoice> offered(const char* who, const ConvShape& shape, size_t most) {
    return CudnnPlan::offered(who, handle_, GraphOfConv(who, shape).build(),
                              element_type(shape.dtype), most_workspace(), most);
  }

 private:
  std::optional<CudnnPlan> make(const char* who, const ConvShape& shape,
                                const std::string& engine) {
    const auto wanted = dnn::EngineChoice::parse(engine);
    if (!wanted && !engine.empty()) return std::nullopt;
    return CudnnPlan::choose(who, handle_, GraphOfConv(who, shape).build(),
                             element_type(shape.dtype), most_workspace(),
                             wanted ? &*wanted : nullptr);
  }

  Handle handle_ = nullptr;
  LruCache<PlanKey, std::shared_ptr<const CudnnPlan>, PlanKeyHash> plans_{kMaxPlans};
};

/// A session for the current scope, its handle on the stream.
class Lease {
 public:
  Lease(const char* who, Stream stream)
      : context_(stream.device),
        session_(stream.device, [&] { return std::make_unique<Session>(who); }) {
    dnn::check_status(
        dnn::library().set_stream((*this)->handle(), static_cast<StreamHandle>(stream.handle)), who,
        "a stream");
  }
  Session* operator->() const { return session_.get().get(); }

 private:
  ContextScope context_;
  IdleObjects<std::unique_ptr<Session>>::Lease session_;
};

}  // namespace

std::string cudnn_absence() { return dnn::absence(); }

std::string conv_obstacle(const ConvShape& s) {
  if (!is_floating(s.dtype)) {
    return cat("cuDNN convolves float16, bfloat16, float32 and float64, the tensors are ", s.dtype);
  }
  int64_t largest = std::max(s.batch * s.in_channels * s.volume(s.in),
                             s.batch * s.out_channels * s.volume(s.out));
  for (size_t i = 0; i < 3; ++i) {
    largest = std::max({largest, s.in[i] + 2 * s.padding[i], s.stride[i], s.dilation[i]});
  }
  const bool fits = largest <= std::numeric_limits<int32_t>::max();
  return fits ? "" : cat("cuDNN counts in 32 bits, a tensor or a padded axis has ", largest);
}

bool has_conv(const char* who, const ConvShape& shape, const std::string& engine, Stream stream) {
  return Lease(who, stream)->plan(who, shape, engine) != nullptr;
}

std::string conv_text(const ConvShape& s) {
  const auto axes = [](const ConvShape::Axes& sizes) { return join(sizes, "x"); };
  return cat("conv ", s.dtype, " batch ", s.batch, " channels ", s.in_channels, " to ",
             s.out_channels, " in ", s.groups, " groups, ", axes(s.in), " by ", axes(s.kernel),
             " to ", axes(s.out), " stride ", axes(s.stride), " padding ", axes(s.padding),
             " dilation ", axes(s.dilation), s.has_bias ? " with bias" : "",
             s.has_relu ? " with relu" : "", s.adds_to_y ? " added" : "");
}

std::vector<std::string> conv_engines(const char* who, const ConvShape& shape, Stream stream,
                                      size_t most) {
  std::vector<std::string> texts;
  for (const auto& engine : Lease(who, stream)->offered(who, shape, most)) {
    texts.push_back(engine.text());
  }
  return texts;
}

bool conv(const char* who, const ConvShape& shape, const std::string& engine, const ConvData& data,
          Stream stream) {
  Lease session(who, stream);
  const auto plan = session->plan(who, shape, engine);
  if (plan == nullptr) return false;
  keep_if_recorded(stream, plan);
  const memory::Workspace workspace(plan->workspace_bytes(), stream);
  CudnnPlan::Addresses addresses{};
  addresses[static_cast<size_t>(Role::kX)] = data.x;
  addresses[static_cast<size_t>(Role::kW)] = data.w;
  addresses[static_cast<size_t>(Role::kBias)] = shape.has_bias ? data.bias : nullptr;
  addresses[static_cast<size_t>(Role::kY)] = data.y;
  Operation operation(who, stream);
  plan->run(who, session->handle(), addresses, workspace.data());
  operation.started();
  note_library_use(plan->on_matrix_units());
  return true;
}

}  // namespace cuop::backend::cuda
