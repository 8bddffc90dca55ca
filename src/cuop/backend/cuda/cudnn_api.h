// The part of cuDNN's graph interface (version 9) that cuOP uses, declared here so that no header
// of the library is needed to build. Numbers and signatures are those of its documentation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "cuop/backend/cuda/driver_types.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/dtype.h"

namespace cuop::backend::cuda::dnn {

using Handle = struct DnnHandleState*;

constexpr int kNotSupported = 3000;  ///< statuses from here to 3999: no engine for the case
constexpr int kNotCompiled = 4001;   ///< an engine's kernel, which is made when its plan is

enum class ElementType : int { kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealB16 = 9 };
enum class ConvMode : int { kCrossCorrelation = 1 };
enum class PointwiseMode : int { kAdd = 0, kReluForward = 100 };
enum class NanPropagation : int { kStays = 1 };
enum class HeuristicMode : int { kFallback = 2, kBest = 3 };
/// What an engine does to the numbers.
enum class Note : int {
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kReducedPrecisionReduction = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
};
constexpr int64_t kNoteCount = 10;
/// What an engine lets its caller set; the numbers are the library's.
enum class Knob : int {};
constexpr int64_t kMostKnobs = 64;  ///< more than there are

enum class DescriptorType : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristic = 4,
  kPlan = 5,
  kKnobChoice = 7,
  kConvolutionForward = 10,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

enum class Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseNanPropagation = 2,
  kPointwiseUpperBound = 4,
  kConvComputeType = 100,
  kConvMode = 101,
  kConvDilations = 102,
  kConvStrides = 103,
  kConvPostPaddings = 104,
  kConvPrePaddings = 105,
  kConvSpatialAxes = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kConfigKnobChoices = 302,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kKnobType = 600,
  kKnobValue = 601,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConv = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kPointwiseDescription = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorElementType = 901,
  kTensorShape = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineIndex = 1301,
  kEngineNotes = 1303,
};

struct Library {
  const DynLib& lib = cuda_library(CudaLibrary::kCudnn);
  int (*create)(Handle*) = lib.require("cudnnCreate");
  int (*destroy)(Handle) = lib.require("cudnnDestroy");
  int (*set_stream)(Handle, StreamHandle) = lib.require("cudnnSetStream");
  const char* (*status_text)(int) = lib.require("cudnnGetErrorString");
  void (*last_error)(char*, size_t) = lib.require("cudnnGetLastErrorString");
  int (*descriptor_create)(DescriptorType, void**) = lib.require("cudnnBackendCreateDescriptor");
  int (*descriptor_destroy)(void*) = lib.require("cudnnBackendDestroyDescriptor");
  int (*descriptor_finalize)(void*) = lib.require("cudnnBackendFinalize");
  int (*attribute_set)(void*, Attribute, int type, int64_t count,
                       const void* values) = lib.require("cudnnBackendSetAttribute");
  int (*attribute_get)(void*, Attribute, int type, int64_t capacity, int64_t* count,
                       void* values) = lib.require("cudnnBackendGetAttribute");
  int (*execute)(Handle, void* plan, void* variant_pack) = lib.require("cudnnBackendExecute");
};

/// Why there is no cuDNN and how to get it; "" when there is one.
std::string absence();
/// DeviceError with the absence.
const Library& library();

/// ExecutionError "who: cuDNN answered STATUS to STEP: its own last words" unless status is 0.
void check_status(int status, const char* who, const char* step);

/// The types of attributes' values in the order of the library's numbers; void: not used here.
using ValueTypes =
    TypeList<Handle, ElementType, bool, int64_t, float, double, const void*, ConvMode,
             HeuristicMode, Knob, NanPropagation, Note, void, void, PointwiseMode, void*>;

/// The number of a type, where void* is another descriptor; -1 for others.
template <class T, class... Types>
constexpr int type_code(TypeList<Types...>) {
  int found = -1, code = 0;
  ((found = std::is_same_v<T, Types> ? code : found, ++code), ...);
  return found;
}
template <class T>
inline constexpr int kTypeCode = type_code<T>(ValueTypes{});

/// One description of the library, destroyed with this object. `who` (a literal) names the operator
/// in errors.
class Descriptor {
 public:
  Descriptor(const char* who, DescriptorType type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept
      : who_(other.who_), raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  template <class T>
  void set(Attribute attribute, std::span<const T> values) {
    static_assert(kTypeCode<T> >= 0);
    put(attribute, kTypeCode<T>, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(Attribute attribute, const T& value) {
    set(attribute, std::span<const T>(&value, 1));
  }
  void set(Attribute attribute, const Descriptor& value) { set(attribute, value.raw_); }

  /// Writes at most `capacity` values and returns how many there are.
  template <class T>
  int64_t get(Attribute attribute, int64_t capacity, T* values) const {
    static_assert(kTypeCode<T> >= 0);
    return take(attribute, kTypeCode<T>, capacity, values);
  }

  void finalize();
  /// False when the library has nothing for what is described.
  bool try_finalize();
  void* raw() const { return raw_; }

 private:
  void put(Attribute attribute, int type, int64_t count, const void* values);
  int64_t take(Attribute attribute, int type, int64_t capacity, void* values) const;

  const char* who_;
  void* raw_ = nullptr;
};

}  // namespace cuop::backend::cuda::dnn
