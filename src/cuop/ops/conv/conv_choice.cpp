#include <mutex>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/cudnn_engines.h"
#include "cuop/backend/cuda/libraries.h"
#include "cuop/core/text.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/conv/conv_choice_internal.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/trial_buffers.h"
#include "cuop/tune/database.h"
#include "cuop/tune/library_tuning.h"
#include "cuop/tune/machine.h"

namespace cuop::kernels {

namespace {

namespace cuda = backend::cuda;

constexpr size_t kMostEngines = 12;
enum Operand : size_t { kX, kW, kY, kBias };

std::string key_of(const cuda::ConvShape& shape, Device device) {
  // Never destroyed: threads may compute while the process ends.
  static const std::string& version =
      *new std::string(backend::cuda_library_version(backend::CudaLibrary::kCudnn));
  return cat(cuda::conv_text(shape), " on ", tune::machine_text(device), ", cuDNN ", version);
}

void advise() {
  static std::once_flag once;
  std::call_once(once, [] {
    cuda::set_conv_advisor(
        {[](const cuda::ConvShape& shape, Device device) -> std::optional<std::string> {
           const auto choice = tune::stored_choice(key_of(shape, device));
           return choice ? std::optional(choice->value) : std::nullopt;
         },
         tune::note_loaded});
  });
}

TrialBuffers buffers_for(const cuda::ConvShape& s, const cuda::ConvData& data, Device device) {
  const auto volume = [](const cuda::ConvShape::Axes& axes) { return axes[0] * axes[1] * axes[2]; };
  std::vector<TrialBuffers::Stretch> stretches{
      {data.x, s.batch * s.in_channels * volume(s.in), s.dtype},
      {data.w, s.out_channels * (s.in_channels / s.groups) * volume(s.kernel), s.dtype},
      {data.y, s.batch * s.out_channels * volume(s.out), s.dtype}};
  if (s.has_bias) stretches.push_back({data.bias, s.out_channels, s.dtype});
  return {std::move(stretches), device, cuda::cuda_runtime(device).properties().l2_bytes};
}

void search(tune::LibraryTuning& tuning, const std::string& key, const char* who,
            const cuda::ConvShape& shape, const cuda::ConvData& data, Stream stream) {
  const std::vector<std::string> engines = cuda::conv_engines(who, shape, stream, kMostEngines);
  if (engines.empty()) return;
  TrialBuffers buffers = buffers_for(shape, data, stream.device);
  tune::LibraryProblem offered{.key = key, .values = engines, .most_repetitions = buffers.count()};
  Tensor expected;
  for (size_t i = 0; i < engines.size(); ++i) {
    tune::Candidate candidate;
    candidate.name = cat("cuDNN's engine ", engines[i]);
    candidate.run = [&, i](int64_t turn) {
      const auto address = [&](Operand operand) { return buffers.copy(turn, operand).data(); };
      const cuda::ConvData data_of_turn{address(kX), address(kW),
                                        shape.has_bias ? address(kBias) : nullptr, address(kY)};
      if (!cuda::conv_by(who, shape, engines[i], data_of_turn, stream)) {
        throw ExecutionError(cat(who, ": cuDNN offers its engine ", engines[i], " no longer"));
      }
      if (turn == 0 && i == 0) expected = clone(buffers.copy(0, kY));
    };
    candidate.disagreement = [&] { return disagreement(expected, buffers.copy(0, kY)); };
    offered.candidates.push_back(std::move(candidate));
  }
  offered.before_sample = [&](int64_t first, int turns) { buffers.restore(kY, first, turns); };
  offered.use = [&](size_t winner) {
    cuda::use_conv_engine(shape, stream.device, engines[winner]);
  };
  tuning.search(offered, *tune::clock_for(stream.device));
}

}  // namespace

bool tuned_conv(const char* who, const cuda::ConvShape& shape, const cuda::ConvData& data,
                Stream stream) {
  advise();
  if (tune::LibraryTuning* tuning = tune::LibraryTuning::current()) {
    const std::string key = key_of(shape, stream.device);
    if (tuning->wants(key, stream.device)) search(*tuning, key, who, shape, data, stream);
  }
  return cuda::conv(who, shape, data, stream);
}

bool has_tuned_conv(const char* who, const cuda::ConvShape& shape, Stream stream) {
  advise();
  return cuda::has_conv(who, shape, stream);
}

}  // namespace cuop::kernels
