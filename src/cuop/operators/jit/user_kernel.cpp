#include "cuop/operators/jit/user_kernel.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/lru_cache.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"
#include "cuop/core/trace.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "cuop/operators/jit/config.h"
#include "cuop/operators/jit/kernel_trial_internal.h"
#include "cuop/operators/jit/user_kernel_check_internal.h"
#include "cuop/ops/agreement.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/tune/database.h"
#include "cuop/tune/machine.h"
#include "cuop/tune/permission.h"
#include "cuop/tune/search.h"

namespace cuop {

namespace {

using jit::KernelParameter;

/// The fixed-width names, which NVRTC has no header for. Declaring them again is no error.
constexpr const char* kPreamble =
    "using int8_t = signed char; using int16_t = short; using int32_t = int;"
    "using int64_t = long long; using uint8_t = unsigned char; using uint16_t = unsigned short;"
    "using uint32_t = unsigned int; using uint64_t = unsigned long long;\n";

}  // namespace

std::string KernelConfig::text() const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : macros) parts.push_back(cat(name, "=", value));
  return join(parts, " ");
}

class UserKernel::Implementation {
 public:
  Implementation(std::string source, std::string name, UserKernelOptions options)
      : source_(std::move(source)),
        name_(std::move(name)),
        who_(cat("kernel ", name_)),
        options_(std::move(options)) {
    if (options_.configs.empty()) options_.configs.emplace_back();
    check_kernel_options(who_, options_);
    for (const KernelConfig& config : options_.configs) {
      parameters_.push_back(jit::parse_signature(source_, name_, config.macros));
    }
    check_kernel_key(who_, options_.key, parameters_[0]);
    digest_ = digest();
    for (size_t i = 0; i < options_.configs.size(); ++i) {
      loaded_keys_.push_back(cat("user ", digest_, " ", title(i)));
    }
  }

  void launch(std::span<const KernelArgument> arguments, const LaunchFor& launch_for) {
    const size_t config = options_.configs.size() == 1 ? 0 : choose(arguments, launch_for);
    start(config, arguments, launch_for);
  }

  size_t choose(std::span<const KernelArgument> arguments, const LaunchFor& launch_for) {
    const Device device = check_kernel_arguments(who_, arguments, parameters_[0]);
    if (options_.configs.size() == 1) return 0;
    const std::string key = key_for(arguments, device);
    if (const auto known = chosen_.find(key)) return *known;
    const std::lock_guard one_search(search_mutex_);
    if (const auto known = chosen_.find(key)) return *known;
    const GlobalJitConfig global = global_jit_config();
    if (const auto stored = read(key)) {
      chosen_.put(key, stored);
      return *stored;
    }
    const std::string obstacle = tune::measuring_obstacle(device, true);
    if (!obstacle.empty() || !global.enable_auto_tuning || !KernelTrial::is_possible(arguments)) {
      return 0;
    }
    return search(key, device, arguments, launch_for, global.compilation_timeout);
  }

  jit::CompileRequest request(size_t config) const {
    jit::CompileRequest request;
    request.name = title(config);
    request.source = kPreamble;
    // Not as options: those would reach the compiler's own text, in which T is a common name.
    for (const auto& [name, value] : options_.configs[config].macros) {
      request.source += cat("#define ", name, " ", value, "\n");
    }
    request.source += cat("#line 1 \"", name_, ".cu\"\n", source_);
    request.options = options_.compiler_options;
    request.entry = name_;
    request.has_runtime_types = true;
    return request;
  }

  std::string last_search() const {
    const std::lock_guard lock(mutex_);
    return last_search_;
  }

  const std::string source_, name_, who_;
  UserKernelOptions options_;
  std::vector<std::vector<KernelParameter>> parameters_;  ///< of each configuration

 private:
  std::string title(size_t config) const {
    const std::string text = options_.configs[config].text();
    return text.empty() ? name_ : cat(name_, " (", text, ")");
  }

  std::string digest() const {
    Sha256 sha;
    const auto add = [&sha](const std::string& part) {
      sha.add(cat(part.size(), ":"));
      sha.add(part);
    };
    add(source_);
    for (const std::string& option : options_.compiler_options) add(option);
    add("configs");
    for (const KernelConfig& config : options_.configs) add(config.text());
    return sha.hex().substr(0, 16);
  }

  std::string key_for(std::span<const KernelArgument> arguments, Device device) const {
    std::string key = cat("kernel ", name_, " ", digest_);
    for (size_t i = 0; i < arguments.size(); ++i) {
      const KernelParameter& parameter = parameters_[0][i];
      const bool is_named =
          std::find(options_.key.begin(), options_.key.end(), parameter.name) != options_.key.end();
      const Tensor* tensor = std::get_if<Tensor>(&arguments[i]);
      const bool takes_any = tensor != nullptr && !parameter.dtype;
      if (takes_any) key += cat(" ", parameter.name, " ", tensor->dtype());
      if (!is_named) continue;
      key += cat(" ", parameter.name, "=");
      key += tensor != nullptr ? cat(tensor->shape()) : cat(std::get<Scalar>(arguments[i]));
    }
    return cat(key, " on ", tune::machine_text(device), ", ", jit::Nvrtc::instance().identity());
  }

  std::optional<size_t> read(const std::string& key) const {
    const auto choice = tune::stored_choice(key);
    if (!choice) return std::nullopt;
    for (size_t i = 0; i < options_.configs.size(); ++i) {
      if (options_.configs[i].text() != choice->value) continue;
      tune::note_loaded(true);
      return i;
    }
    tune::note_loaded(false);
    return std::nullopt;
  }

  size_t search(const std::string& key, Device device, std::span<const KernelArgument> arguments,
                const LaunchFor& launch_for, double seconds) {
    const int64_t start_ns = trace::now_ns();
    for (size_t i = 0; i < options_.configs.size(); ++i) {
      jit::kernel_if_ready(device, loaded_keys_[i], [&] { return request(i); });  // all at once
    }
    KernelTrial trial(parameters_[0], arguments,
                      backend::cuda::cuda_runtime(device).properties().l2_bytes);
    std::vector<Tensor> expected;
    std::vector<tune::Candidate> candidates;
    for (size_t i = 0; i < options_.configs.size(); ++i) {
      tune::Candidate candidate;
      candidate.name = options_.configs[i].text();
      candidate.run = [&, i](int64_t turn) {
        start(i, trial.arguments(turn), launch_for);
        if (turn != 0 || i != 0) return;
        for (const Tensor& result : trial.results()) expected.push_back(clone(result));
      };
      candidate.disagreement = [&] { return difference(expected, trial.results()); };
      candidates.push_back(std::move(candidate));
    }
    tune::SearchOptions options;
    options.seconds = seconds;
    options.most_repetitions = trial.count();
    options.before_sample = [&](int64_t first, int count) { trial.restore(first, count); };
    const auto clock = tune::clock_for(device);
    const tune::SearchResult found = tune::search(candidates, *clock, options);
    const double took_ms = static_cast<double>(trace::now_ns() - start_ns) * 1e-6;
    {
      const std::lock_guard lock(mutex_);
      last_search_ = found.text();
    }
    log(LogLevel::kDebug, "tune: ", key, "\n", found.text());
    if (found.is_complete) {
      tune::store_choice(
          key, {options_.configs[found.winner].text(), took_ms, found.gain, found.rounds});
    }
    chosen_.put(key, found.winner);
    return found.winner;
  }

  std::string difference(const std::vector<Tensor>& expected,
                         const std::vector<Tensor>& results) const {
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string found = disagreement(expected[i], results[i]);
      if (!found.empty()) return cat(written_name(i), ": ", found);
    }
    return "";
  }

  const std::string& written_name(size_t index) const {
    for (const KernelParameter& parameter : parameters_[0]) {
      if (parameter.is_written && index-- == 0) return parameter.name;
    }
    return name_;
  }

  void start(size_t config, std::span<const KernelArgument> arguments,
             const LaunchFor& launch_for) const {
    const Device device = check_kernel_arguments(who_, arguments, parameters_[config]);
    const KernelLaunch asked = launch_for(config);
    const jit::LaunchShape shape = check_kernel_launch(who_, asked, device);
    if (std::find(asked.grid.begin(), asked.grid.end(), 0) != asked.grid.end()) return;
    PackedArguments packed(arguments, parameters_[config]);
    jit::launch(jit::loaded_kernel(device, loaded_keys_[config], [&] { return request(config); }),
                shape, packed.addresses(), current_stream(device));
  }

  std::string digest_;
  std::vector<std::string> loaded_keys_;  ///< of each configuration, for jit::loaded_kernel
  mutable std::mutex mutex_;
  std::mutex search_mutex_;
  SharedLruCache<std::string, std::optional<size_t>> chosen_{1 << 16};
  std::string last_search_;
};

UserKernel::UserKernel(std::string source, std::string name, UserKernelOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(source), std::move(name),
                                                       std::move(options))) {}
UserKernel::~UserKernel() = default;

const std::string& UserKernel::name() const { return implementation_->name_; }

const std::vector<KernelConfig>& UserKernel::configs() const {
  return implementation_->options_.configs;
}

const std::vector<KernelParameter>& UserKernel::parameters() const {
  return implementation_->parameters_[0];
}

void UserKernel::launch(std::span<const KernelArgument> arguments, const LaunchFor& launch_for) {
  implementation_->launch(arguments, launch_for);
}

size_t UserKernel::choose(std::span<const KernelArgument> arguments, const LaunchFor& launch_for) {
  return implementation_->choose(arguments, launch_for);
}

std::string UserKernel::last_search() const { return implementation_->last_search(); }

jit::CompiledKernel UserKernel::compile(size_t config, const std::string& arch) const {
  jit::CompileRequest request = implementation_->request(config);
  request.arch = arch;
  return jit::compile_kernel(request);
}

}  // namespace cuop
