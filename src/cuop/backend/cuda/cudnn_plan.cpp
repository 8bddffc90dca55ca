#include "cuop/backend/cuda/cudnn_plan.h"

#include <algorithm>
#include <sstream>

#include "cuop/core/text.h"

namespace cuop::backend::cuda::dnn {

namespace {

/// Engines that are passed over: those whose results differ from run to run, those that add up in
/// fewer bits than asked for, and those whose results depend on values outside the window of the
/// kernel (an infinity there would spread). Matrix units round float32 to TF32 first.
bool is_refused(Note note, bool is_exact) {
  switch (note) {
    case Note::kTensorCore:
    case Note::kDownConvertInputs:
      return is_exact;
    case Note::kReducedPrecisionReduction:
    case Note::kFft:
    case Note::kNondeterministic:
    case Note::kWinograd:
      return true;
  }
  return false;
}

/// Engines for few channels of float16, without a bias and with one. They return 0 where -infinity
/// is due, as if a rectifier followed: seen of cuDNN 9 on an H200, of all their settings and no
/// others.
constexpr int64_t kLoseInfinities[] = {47, 32};

Descriptor engine_of(const char* who, const Descriptor& config) {
  Descriptor engine(who, DescriptorType::kEngine);
  void* raw = engine.raw();
  config.get(Attribute::kConfigEngine, 1, &raw);
  return engine;
}

int64_t index_of(const Descriptor& engine) {
  int64_t index = -1;
  engine.get(Attribute::kEngineIndex, 1, &index);
  return index;
}

std::vector<Note> notes_of(const Descriptor& engine) {
  std::vector<Note> notes(static_cast<size_t>(kNoteCount));
  const int64_t count = engine.get(Attribute::kEngineNotes, kNoteCount, notes.data());
  notes.resize(static_cast<size_t>(std::min(count, kNoteCount)));
  return notes;
}

bool is_allowed(const char* who, const Descriptor& config, ElementType type) {
  const Descriptor engine = engine_of(who, config);
  const bool is_half = type == ElementType::kReal16;
  if (is_half && std::ranges::count(kLoseInfinities, index_of(engine)) > 0) return false;
  return std::ranges::none_of(
      notes_of(engine), [&](Note note) { return is_refused(note, type == ElementType::kReal32); });
}

EngineChoice choice_of(const char* who, const Descriptor& config) {
  EngineChoice choice;
  choice.engine = index_of(engine_of(who, config));
  std::vector<Descriptor> knobs;
  std::vector<void*> addresses;
  for (int64_t i = 0; i < kMostKnobs; ++i) {
    addresses.push_back(knobs.emplace_back(who, DescriptorType::kKnobChoice).raw());
  }
  const int64_t count = config.get(Attribute::kConfigKnobChoices, kMostKnobs, addresses.data());
  for (size_t i = 0; i < static_cast<size_t>(std::min(count, kMostKnobs)); ++i) {
    Knob knob{};
    int64_t value = 0;
    knobs[i].get(Attribute::kKnobType, 1, &knob);
    knobs[i].get(Attribute::kKnobValue, 1, &value);
    choice.knobs.emplace_back(static_cast<int64_t>(knob), value);
  }
  std::sort(choice.knobs.begin(), choice.knobs.end());
  return choice;
}

/// The engines that cuDNN ranks for the graph, the best first.
std::vector<Descriptor> ranked(const char* who, const Descriptor& graph, HeuristicMode mode) {
  std::vector<Descriptor> configs;
  Descriptor heuristic(who, DescriptorType::kHeuristic);
  heuristic.set(Attribute::kHeuristicGraph, graph);
  heuristic.set(Attribute::kHeuristicMode, mode);
  if (!heuristic.try_finalize()) return configs;
  const int64_t count = heuristic.get<void*>(Attribute::kHeuristicResults, 0, nullptr);
  std::vector<void*> raw;
  for (int64_t i = 0; i < count; ++i) {
    raw.push_back(configs.emplace_back(who, DescriptorType::kEngineConfig).raw());
  }
  const int64_t given = heuristic.get(Attribute::kHeuristicResults, count, raw.data());
  while (static_cast<int64_t>(configs.size()) > given) configs.pop_back();
  return configs;
}

}  // namespace

Descriptor describe(const char* who, const TensorSpec& spec, int64_t alignment) {
  Descriptor tensor(who, DescriptorType::kTensor);
  std::vector<int64_t> strides(spec.shape.size(), 1);
  for (size_t i = strides.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * spec.shape[i + 1];
  tensor.set(Attribute::kTensorId, static_cast<int64_t>(spec.role));
  tensor.set(Attribute::kTensorElementType, spec.type);
  tensor.set(Attribute::kTensorShape, std::span<const int64_t>(spec.shape));
  tensor.set(Attribute::kTensorStrides, std::span<const int64_t>(strides));
  tensor.set(Attribute::kTensorAlignment, alignment);
  tensor.set(Attribute::kTensorIsVirtual, spec.is_virtual);
  tensor.finalize();
  return tensor;
}

std::string EngineChoice::text() const {
  std::string text = cat(engine);
  for (const auto& [knob, value] : knobs) text += cat(" ", knob, "=", value);
  return text;
}

std::optional<EngineChoice> EngineChoice::parse(const std::string& text) {
  EngineChoice choice;
  std::istringstream in(text);
  if (!(in >> choice.engine)) return std::nullopt;
  for (std::pair<int64_t, int64_t> knob; in >> knob.first;) {
    char equals = 0;
    if (!in.get(equals) || equals != '=' || !(in >> knob.second)) return std::nullopt;
    choice.knobs.push_back(knob);
  }
  if (!in.eof()) return std::nullopt;
  return choice;
}

namespace {

/// The graph as a whole; none when the library has nothing for it.
Descriptor* whole_of(const char* who, Handle handle, Graph& graph) {
  Descriptor& whole = graph.keep(Descriptor(who, DescriptorType::kOperationGraph));
  whole.set(Attribute::kGraphHandle, handle);
  whole.set(Attribute::kGraphOperations, std::span<void* const>(graph.operations));
  return whole.try_finalize() ? &whole : nullptr;
}

/// A plan and the workspace it needs; none when it cannot be made or needs too much.
std::optional<std::pair<Descriptor, int64_t>> plan_of(const char* who, Handle handle,
                                                      const Descriptor& config,
                                                      int64_t most_workspace) {
  Descriptor plan(who, DescriptorType::kPlan);
  plan.set(Attribute::kPlanHandle, handle);
  plan.set(Attribute::kPlanConfig, config);
  if (!plan.try_finalize()) return std::nullopt;
  int64_t bytes = 0;
  plan.get(Attribute::kPlanWorkspace, 1, &bytes);
  if (bytes > most_workspace) return std::nullopt;
  return std::pair<Descriptor, int64_t>(std::move(plan), bytes);
}

}  // namespace

std::optional<CudnnPlan> CudnnPlan::choose(const char* who, Handle handle, Graph graph,
                                           ElementType type, int64_t most_workspace,
                                           const EngineChoice* wanted) {
  const Descriptor* const whole = whole_of(who, handle, graph);
  if (whole == nullptr) return std::nullopt;
  for (const HeuristicMode mode : {HeuristicMode::kBest, HeuristicMode::kFallback}) {
    for (Descriptor& config : ranked(who, *whole, mode)) {
      if (!is_allowed(who, config, type)) continue;
      if (wanted != nullptr && choice_of(who, config) != *wanted) continue;
      auto plan = plan_of(who, handle, config, most_workspace);
      if (!plan) continue;
      const auto notes = notes_of(engine_of(who, config));
      const bool on_matrix_units = std::ranges::count(notes, Note::kTensorCore) > 0;
      graph.keep(std::move(config));
      return CudnnPlan(std::move(graph), std::move(plan->first), plan->second, on_matrix_units);
    }
  }
  return std::nullopt;
}

std::vector<EngineChoice> CudnnPlan::offered(const char* who, Handle handle, Graph graph,
                                             ElementType type, int64_t most_workspace,
                                             size_t most) {
  std::vector<EngineChoice> choices;
  const Descriptor* const whole = whole_of(who, handle, graph);
  if (whole == nullptr) return choices;
  for (const HeuristicMode mode : {HeuristicMode::kBest, HeuristicMode::kFallback}) {
    for (const Descriptor& config : ranked(who, *whole, mode)) {
      if (choices.size() == most) return choices;
      if (!is_allowed(who, config, type)) continue;
      if (!plan_of(who, handle, config, most_workspace)) continue;
      EngineChoice choice = choice_of(who, config);
      const bool is_known = std::find(choices.begin(), choices.end(), choice) != choices.end();
      if (!is_known) choices.push_back(std::move(choice));
    }
  }
  return choices;
}

void CudnnPlan::run(const char* who, Handle handle, const Addresses& data, void* workspace) const {
  std::vector<const void*> pointers;
  std::vector<int64_t> ids;
  for (size_t role = 0; role < data.size(); ++role) {
    if (data[role] == nullptr) continue;
    pointers.push_back(data[role]);
    ids.push_back(static_cast<int64_t>(role));
  }
  Descriptor pack(who, DescriptorType::kVariantPack);
  pack.set(Attribute::kPackPointers, std::span<const void* const>(pointers));
  pack.set(Attribute::kPackIds, std::span<const int64_t>(ids));
  pack.set(Attribute::kPackWorkspace, static_cast<const void*>(workspace));
  pack.finalize();
  check_status(library().execute(handle, plan_.raw(), pack.raw()), who, "the convolution");
}

}  // namespace cuop::backend::cuda::dnn
