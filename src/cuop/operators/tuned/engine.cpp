#include "cuop/operators/tuned/engine.h"

#include <algorithm>
#include <filesystem>

#include "cuop/backend/cpu/blas_library.h"
#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/backend/current_device.h"
#include "cuop/backend/library_use.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/reports.h"
#include "cuop/operators/tuned/chooser.h"
#include "cuop/operators/tuned/config_check.h"
#include "cuop/operators/tuned/demands.h"
#include "cuop/operators/tuned/measure.h"
#include "cuop/operators/tuned/product_kernels.h"
#include "cuop/operators/tuned/roof.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/create.h"

namespace cuop {

namespace {

constexpr const char* kLibrary = "library";

/// What ran when this kernel was asked for.
std::string kernel_text(const backend::LibraryWatch& watch, const backend::Kernel& kernel) {
  if (watch.has_library()) return kLibrary;
  // Products that are left to the operator go to the library, or by parts of their elements.
  const bool is_own_choice = kernel.tile == 0 && *watch.precision() != '\0';
  return is_own_choice ? "split" : name(kernel);
}
constexpr int kRounds = 9;
constexpr int kRoundsOfBest = 21;

double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

/// Of matrices.
int64_t shorter_side(const Tensor& t) {
  return t.ndim() < 2 ? 1 : std::min(t.shape(t.ndim() - 1), t.shape(t.ndim() - 2));
}

/// The kernels that the configuration leaves for a task, the default first: one where it names the
/// type or the tile, else all that the task has.
std::vector<Kernel> candidates_of(const Task& task, const JitConfig& config,
                                  const KernelTraits& traits) {
  if (wants_simple(config)) return {{KernelType::kSimple}};
  const int64_t tile = traits.takes_tile ? config.tile_size : 0;
  if (config.kernel_type == KernelType::kTiled || tile != 0) return {{KernelType::kTiled, tile}};
  return {task.kernels.begin(), task.kernels.end()};
}

/// The same on a GPU, each with the threads of a block that are asked for. Products have kernels of
/// our own beside the library's.
std::vector<Kernel> gpu_candidates_of(const Task& task, const JitConfig& config,
                                      const KernelTraits& traits) {
  if (traits.gpu_kernels == GpuKernels::kCublasLt) {
    return product_kernels(config, traits.dtype, shorter_side(task.out),
                           backend::runtime(task.out.device()).kernel_limits());
  }
  std::vector<Kernel> kernels(task.gpu_kernels.begin(), task.gpu_kernels.end());
  if (wants_simple(config)) {
    kernels = {{KernelType::kSimple}};
  } else if (config.kernel_type != KernelType::kAuto) {
    kernels.resize(1);
  }
  if (config.block_size == 0) return kernels;
  std::vector<Kernel> shaped;
  for (Kernel kernel : kernels) {
    kernel.shape.threads = static_cast<int>(config.block_size);
    if (std::find(shaped.begin(), shaped.end(), kernel) == shaped.end()) shaped.push_back(kernel);
  }
  return shaped;
}

bool is_measured(const JitConfig& config, const GlobalJitConfig& global) {
  const std::string& level = config.optimization_level;
  if (level == "best") return true;
  return global.enable_auto_tuning && (level == "auto" || level == "O3");
}

/// Nothing is compiled for the CPU.
jit::CompileStatistics compiled_so_far(Device device) {
  return device.is_cpu() ? jit::CompileStatistics{} : jit::compile_statistics();
}

/// What to compare the task's result with, and who it is from; undefined when there is none.
struct Reference {
  Tensor result;
  const char* whose = "the simple kernel";
};
Reference reference_of(const Task& task) {
  const Device device = task.out.device();
  if (!device.is_cpu()) {
    const bool is_captured = backend::runtime(device).is_recording(current_stream(device));
    if (!task.on_cpu || is_captured) return {};
    Tensor result = task.reads_out ? to_device(task.out, kCpu)
                                   : empty(task.out.shape(), task.out.dtype(), kCpu);
    task.on_cpu(result);
    return {result, "the CPU"};
  }
  for (const Kernel& kernel : task.kernels) {
    if (kernel.type != KernelType::kSimple) continue;
    const Tensor result = trial_output(task);
    try_kernel(task, kernel, result);
    return {result};
  }
  return {};
}

std::string described(const CallRecord& call) {
  return call.no_effect.empty() ? call.kernel_type
                                : cat(call.kernel_type, "; ", join(call.no_effect, "; "));
}

}  // namespace

void JitEngine::enable_jit(bool is_on) {
  const std::lock_guard lock(mutex_);
  config_.enable_jit = is_on;
}

void JitEngine::make_directory(const std::string& path) const {
  if (path.empty()) return;
  const std::string problem = tune::ChoiceStore(path, 0).make_directory();
  if (!problem.empty()) throw ExecutionError(cat(who_, ": the cache directory ", problem));
}

void JitEngine::enable_persistent_cache(bool is_on) {
  std::string directory;
  if (is_on) {
    const std::lock_guard lock(mutex_);
    directory = directory_;
  }
  make_directory(directory);
  const std::lock_guard lock(mutex_);
  is_persistent_ = is_on;
}

void JitEngine::set_persistent_cache_directory(const std::string& path) {
  if (path.empty()) throw ExecutionError(cat(who_, ": the cache directory is an empty path"));
  if (path.find('\0') != std::string::npos) {
    throw ExecutionError(cat(who_, ": the cache directory has a zero byte in its path"));
  }
  const std::string whole = std::filesystem::absolute(path).string();
  if (is_persistent()) make_directory(whole);
  const std::lock_guard lock(mutex_);
  directory_ = whole;
}

CachePlace JitEngine::place() const {
  const std::lock_guard lock(mutex_);
  if (!is_persistent_) return {CachePlace::Kind::kNowhere};
  if (directory_.empty()) return {};
  return {CachePlace::Kind::kOwn, directory_};
}

backend::ExecutionOptions JitEngine::options_for(const Task& task, const JitConfig& config) const {
  const bool is_on = config.enable_jit && global_jit_config().enable_jit;
  backend::ExecutionOptions options =
      is_on ? with_demands(config, task.out.device()) : backend::execution_options();
  options.cache_place = place();
  return options;
}

void JitEngine::set_config(const JitConfig& config) {
  const Device device = backend::current_device();
  check_jit_config(who_.c_str(), config, device, traits_, backend::runtime(device).kernel_limits());
  const auto idle = fields_without_effect(config, device, traits_);
  {
    const std::lock_guard lock(mutex_);
    config_ = config;
    checked_ = {device, idle};
  }
  warn_of_no_effect(who_, idle);
}

JitConfig JitEngine::config() const {
  const std::lock_guard lock(mutex_);
  return config_;
}

bool JitEngine::is_persistent() const {
  const std::lock_guard lock(mutex_);
  return is_persistent_;
}

std::shared_ptr<tune::ChoiceStore> JitEngine::store_for(const GlobalJitConfig& global) {
  const std::lock_guard lock(mutex_);
  if (!is_persistent_ && !global.enable_debug) return nullptr;
  const std::string& directory = directory_.empty() ? global.cache_dir : directory_;
  const bool is_same = store_ != nullptr && store_->directory() == directory &&
                       store_limit_ == global.max_cache_size;
  if (!is_same) {
    if (store_ != nullptr) damaged_before_ += store_->damaged_count();
    store_ = std::make_shared<tune::ChoiceStore>(directory, global.max_cache_size);
    store_limit_ = global.max_cache_size;
  }
  return store_;
}

ChoiceRequest JitEngine::request_for(const Task& task, const JitConfig& config,
                                     const GlobalJitConfig& global) const {
  ChoiceRequest request;
  request.task = &task;
  request.who = who_;
  const bool is_gpu = !task.out.device().is_cpu();
  request.candidates =
      is_gpu ? gpu_candidates_of(task, config, traits_) : candidates_of(task, config, traits_);
  request.is_measured = is_measured(config, global) && task.out.size() > 0;
  request.is_for_library = is_gpu && config.kernel_type == KernelType::kAuto &&
                           traits_.gpu_kernels != GpuKernels::kOwn &&
                           request.candidates.front().is_default();
  const bool is_best = config.optimization_level == "best";
  request.options.is_asked = is_best;
  request.options.limits = {is_best ? kRoundsOfBest : kRounds, global.compilation_timeout};
  request.options.most_measuring = global.max_compilation_threads;
  request.is_cached = global.enable_caching;
  return request;
}

void JitEngine::count(const ChosenKernel& chosen, Device device) {
  using Source = ChosenKernel::Source;
  constexpr const char* kSources[] = {"measured", "memory", "disk", "put off"};
  const std::lock_guard lock(mutex_);
  report_ = {kSources[static_cast<size_t>(chosen.source)],
             name(chosen.kernel),
             chosen.found->gain,
             chosen.found->made_in_ms,
             chosen.found->text,
             chosen.found->measurements};
  if (chosen.source == Source::kPutOff) {
    ++statistics_.cache_misses;
    return;
  }
  if (chosen.source == Source::kMade) {
    ++statistics_.cache_misses;
    if (!device.is_cpu()) return;
    ++statistics_.compilations;
    statistics_.compilation_time_ms += chosen.found->made_in_ms;
    return;
  }
  ++statistics_.cache_hits;
  if (chosen.source == Source::kDisk) ++statistics_.persistent_cache_hits;
  statistics_.time_saved_ms += chosen.found->made_in_ms;
}

JitConfig JitEngine::config_for(const Task& task) const {
  const Device device = task.out.device();
  JitConfig config;
  std::vector<NoEffect> idle;
  {
    const std::lock_guard lock(mutex_);
    if (checked_ && checked_->device == device) return config_;
    check_jit_config(who_.c_str(), config_, device, traits_,
                     backend::runtime(device).kernel_limits());
    config = config_;
    idle = fields_without_effect(config, device, traits_);
    checked_ = {device, idle};
  }
  warn_of_no_effect(who_, idle);
  return config;
}

std::vector<std::string> JitEngine::no_effect() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  if (checked_) {
    for (const NoEffect& field : checked_->no_effect) texts.push_back(field.text);
  }
  return texts;
}

JitEngine::Decision JitEngine::decide(const Task& task, const JitConfig& config) {
  const GlobalJitConfig global = global_jit_config();
  if (!config.enable_jit || !global.enable_jit) {
    return {task.kernels.front(), 0.0, 0.0, global.enable_debug};
  }
  ChoiceRequest request = request_for(task, config, global);
  const std::shared_ptr<tune::ChoiceStore> store = store_for(global);
  if (is_persistent()) request.options.store = store.get();
  if (global.enable_debug) request.options.log_store = store.get();
  const ChosenKernel chosen = choose_kernel(request);
  count(chosen, task.out.device());
  const bool is_remembered = chosen.source == ChosenKernel::Source::kMemory;
  return {chosen.kernel, chosen.found->made_in_ms, is_remembered ? 0.0 : chosen.took_ms,
          global.enable_debug};
}

void JitEngine::count_compiled(const jit::CompileStatistics& before,
                               const jit::CompileStatistics& now) {
  const std::lock_guard lock(mutex_);
  statistics_.compilations += now.compilations - before.compilations;
  statistics_.compilation_time_ms += now.compile_ms - before.compile_ms;
}

Tensor JitEngine::run(const Task& task) {
  const jit::CompileStatistics at_start = compiled_so_far(task.out.device());
  const JitConfig config = config_for(task);
  const backend::ExecutionScope scope(options_for(task, config));
  const Decision decision = decide(task, config);
  const double before_ms = milliseconds(trace::now_ns() - task.start_ns) - decision.choosing_ms;
  const Reference reference = decision.is_debug ? reference_of(task) : Reference{};
  CallRecord call;
  call.device = task.out.device();
  call.cost = task.cost;
  call.before_ms = before_ms;
  call.choosing_ms = decision.compilation_ms;
  const Stream stream = current_stream(call.device);
  const double compiled_before = compiled_so_far(call.device).compile_ms;
  trace::StreamTimer timer(stream);
  const int64_t launch_ns = trace::now_ns();
  const backend::LibraryWatch watch;
  run_kernel(task, decision.kernel, task.out);
  call.running_ms = milliseconds(std::max<int64_t>(1, trace::now_ns() - launch_ns));
  call.work = timer.stop();
  call.kernel_type = kernel_text(watch, decision.kernel);
  call.used_tensor_core = watch.has_matrix_units();
  call.precision = *watch.precision() != '\0' ? watch.precision() : cuop::name(traits_.dtype);
  // Of all threads, so it can be more than this call waited for.
  const jit::CompileStatistics at_end = compiled_so_far(call.device);
  call.compiling_ms = std::min(at_end.compile_ms - compiled_before, call.running_ms);
  count_compiled(at_start, at_end);
  if (reference.result.is_defined() && !results_agree(reference.result, task.out)) {
    throw ExecutionError(cat(who_, ": kernel ", call.kernel_type, " and ", reference.whose,
                             " disagree (checked in debug mode)"));
  }
  call.no_effect = no_effect();
  if (jit::is_reporting()) jit::note(cat(who_, " on ", call.device, ": ", described(call)));
  const std::lock_guard lock(mutex_);
  report_.kernel = call.kernel_type;
  last_call_ = std::move(call);
  return task.out;
}

void JitEngine::warm_up(const Task& task) {
  warm_up();
  const jit::CompileStatistics at_start = compiled_so_far(task.out.device());
  const JitConfig config = config_for(task);
  const backend::ExecutionScope scope(options_for(task, config));
  try_kernel(task, decide(task, config).kernel, trial_output(task));
  count_compiled(at_start, compiled_so_far(task.out.device()));
}

void JitEngine::warm_up() const {
  backend::blas::info();
  backend::parallel_for(backend::thread_count(), 1, [](int64_t, int64_t) {});
}

PerformanceProfile JitEngine::profile() const {
  CallRecord call;
  {
    const std::lock_guard lock(mutex_);
    call = last_call_;
  }
  PerformanceProfile profile = profile_of(call);
  if (profile.kernel_time_ms > 0.0) {
    const auto roof = known_roof(traits_.dtype, call.device);
    if (roof) {
      profile.percent_of_roof = percent_of_roof(call.cost, profile.kernel_time_ms, *roof);
    }
  }
  return profile;
}

TuningReport JitEngine::tuning_report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

JitStatistics JitEngine::statistics() const {
  const std::lock_guard lock(mutex_);
  JitStatistics statistics = statistics_;
  statistics.damaged_entries = damaged_before_ + (store_ ? store_->damaged_count() : 0);
  return statistics;
}

int64_t clear_kernel_cache() {
  const GlobalJitConfig global = global_jit_config();
  return forget_choices() + tune::ChoiceStore(global.cache_dir, global.max_cache_size).clear() +
         jit::kernel_disk_cache()->clear();
}

}  // namespace cuop
