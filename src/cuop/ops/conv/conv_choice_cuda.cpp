#include "cuop/ops/conv/conv_choice_cuda.h"

#include <optional>
#include <utility>

#include "cuop/backend/cuda/libraries.h"
#include "cuop/backend/execution.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/text.h"
#include "cuop/ops/trial.h"
#include "cuop/tune/database.h"
#include "cuop/tune/library_tuning.h"
#include "cuop/tune/machine.h"

namespace cuop::kernels {

namespace {

namespace cuda = backend::cuda;

constexpr size_t kMostEngines = 12;
/// In the place of an engine's name: not cuDNN, but our own kernels for matrix units.
constexpr const char* kByParts = "split";
enum Operand : size_t { kX, kW, kY, kBias };

std::string key_of(const cuda::ConvShape& shape, Device device) {
  // Never destroyed: threads may compute while the process ends.
  static const std::string& version =
      *new std::string(backend::cuda_library_version(backend::CudaLibrary::kCudnn));
  return cat(cuda::conv_text(shape), " on ", tune::machine_text(device), ", cuDNN ", version);
}

/// By problem and device: an engine, kByParts, or "" for nothing that is known to be faster.
struct PlaceHash {
  size_t operator()(const std::pair<cuda::ConvShape, int>& place) const {
    return cuda::ConvShapeHash()(place.first) * 31 + static_cast<size_t>(place.second);
  }
};
using Engines =
    SharedLruCache<std::pair<cuda::ConvShape, int>, std::optional<std::string>, PlaceHash>;
Engines& engines() {
  static auto* known = new Engines(4096);
  return *known;
}

/// What this process has found, or what is stored if it is still there.
std::string way_for(const char* who, const cuda::ConvShape& shape, Stream stream) {
  return *engines().get({shape, stream.device.index}, [&]() -> std::optional<std::string> {
    const auto choice = tune::stored_choice(key_of(shape, stream.device));
    if (!choice) return "";
    const backend::ExecutionScope usual(backend::with_spare({}));  // what holds for all calls
    const bool is_offered =
        choice->value == kByParts || cuda::has_conv(who, shape, choice->value, stream);
    tune::note_loaded(is_offered);
    return is_offered ? choice->value : "";
  });
}

/// The engine among these ways, "" for cuDNN's own choice.
std::string engine_for(const char* who, const cuda::ConvShape& shape, Stream stream) {
  const std::string way = way_for(who, shape, stream);
  return way == kByParts ? "" : way;
}

Trial trial_of(const cuda::ConvShape& s, const cuda::ConvData& data, Device device) {
  const auto operand = [&](const void* address, int64_t elements) {
    return Trial::Operand{borrowed(address, elements, s.dtype, device)};
  };
  std::vector<Trial::Operand> operands{
      operand(data.x, s.batch * s.in_channels * s.volume(s.in)),
      operand(data.w, s.out_channels * s.group_in() * s.volume(s.kernel)),
      operand(data.y, s.batch * s.out_channels * s.volume(s.out))};
  operands[kY].is_written = true;
  if (s.has_bias) operands.push_back(operand(data.bias, s.out_channels));
  return {std::move(operands), backend::runtime(device).l2_bytes()};
}

/// Lets this thread's scope search, where there is one, for what is used from now on: an engine or,
/// where it is given, `by_parts`.
void search(const char* who, const cuda::ConvShape& shape, const cuda::ConvData& data,
            Stream stream, const ConvByParts& by_parts) {
  tune::LibraryTuning* const tuning = tune::LibraryTuning::current();
  if (tuning == nullptr || !cuda::has_conv(who, shape, "", stream)) return;
  tune::Problem offered{.key = key_of(shape, stream.device), .device = stream.device};
  offered.search = [&](const tune::SearchLimits& limits) {
    offered.values = cuda::conv_engines(who, shape, stream, kMostEngines);
    std::vector<std::string> names;
    for (const std::string& engine : offered.values) {
      names.push_back(cat("cuDNN's engine ", engine));
    }
    if (by_parts) {
      offered.values.emplace_back(kByParts);
      names.emplace_back("parts on matrix units");
    }
    const auto run = [&](size_t i, const std::vector<Tensor>& set) {
      const cuda::ConvData copies{set[kX].data(), set[kW].data(),
                                  shape.has_bias ? set[kBias].data() : nullptr, set[kY].data()};
      if (offered.values[i] == kByParts) return by_parts(copies);
      if (cuda::conv(who, shape, offered.values[i], copies, stream)) return;
      throw ExecutionError(cat(who, ": cuDNN offers its engine ", offered.values[i], " no longer"));
    };
    Trial trial = trial_of(shape, data, stream.device);
    return tune::finding_of(trial.search(names, stream.device, run, limits));
  };
  if (const auto winner = tuning->search(offered)) {
    engines().put({shape, stream.device.index}, offered.values[*winner]);
  }
}

}  // namespace

bool tuned_conv(const char* who, const cuda::ConvShape& shape, const cuda::ConvData& data,
                Stream stream) {
  search(who, shape, data, stream, {});
  const std::string engine = engine_for(who, shape, stream);
  if (cuda::conv(who, shape, engine, data, stream)) return true;
  // It may need more workspace than this thread leaves it.
  return !engine.empty() && cuda::conv(who, shape, "", data, stream);
}

bool is_faster_by_parts(const char* who, const cuda::ConvShape& shape, const cuda::ConvData& data,
                        Stream stream, const ConvByParts& by_parts, bool otherwise) {
  search(who, shape, data, stream, by_parts);
  return is_known_faster_by_parts(who, shape, stream, otherwise);
}

bool is_known_faster_by_parts(const char* who, const cuda::ConvShape& shape, Stream stream,
                              bool otherwise) {
  const std::string way = way_for(who, shape, stream);
  return way.empty() ? otherwise : way == kByParts;
}

bool has_tuned_conv(const char* who, const cuda::ConvShape& shape, Stream stream) {
  const std::string engine = engine_for(who, shape, stream);
  return cuda::has_conv(who, shape, engine, stream) ||
         (!engine.empty() && cuda::has_conv(who, shape, "", stream));
}

}  // namespace cuop::kernels
