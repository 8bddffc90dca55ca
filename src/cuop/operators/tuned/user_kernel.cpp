#include "cuop/operators/tuned/user_kernel.h"

#include <algorithm>
#include <mutex>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/interruptible.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"
#include "cuop/jit/compile_service.h"
#include "cuop/jit/cuda/kernel_cache.h"
#include "cuop/operators/tuned/config.h"
#include "cuop/operators/tuned/user_kernel_check_internal.h"
#include "cuop/ops/trial.h"
#include "cuop/tune/database.h"
#include "cuop/tune/machine.h"

namespace cuop {

namespace {

using jit::KernelParameter;

/// The fixed-width names, which NVRTC has no header for. Declaring them again is no error.
constexpr const char* kPreamble =
    "using int8_t = signed char; using int16_t = short; using int32_t = int;"
    "using int64_t = long long; using uint8_t = unsigned char; using uint16_t = unsigned short;"
    "using uint32_t = unsigned int; using uint64_t = unsigned long long;\n";

using Arguments = std::span<const KernelArgument>;

std::vector<Tensor> tensors_of(Arguments arguments) {
  std::vector<Tensor> tensors;
  for (const KernelArgument& argument : arguments) {
    if (const Tensor* tensor = std::get_if<Tensor>(&argument)) tensors.push_back(*tensor);
  }
  return tensors;
}

/// The arguments with other tensors in the place of theirs.
std::vector<KernelArgument> with_tensors(Arguments arguments, const std::vector<Tensor>& tensors) {
  std::vector<KernelArgument> replaced(arguments.begin(), arguments.end());
  size_t next = 0;
  for (KernelArgument& argument : replaced) {
    if (std::holds_alternative<Tensor>(argument)) argument = tensors[next++];
  }
  return replaced;
}

std::vector<Trial::Operand> operands_of(Arguments arguments,
                                        const std::vector<KernelParameter>& parameters) {
  std::vector<Trial::Operand> operands;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor* tensor = std::get_if<Tensor>(&arguments[i]);
    if (tensor == nullptr) continue;
    operands.push_back(
        {.original = *tensor, .is_written = parameters[i].is_written, .name = parameters[i].name});
  }
  return operands;
}

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
    tune::Problem problem{.key = key_for(arguments, device), .device = device};
    if (const auto known = chosen_.find(problem.key)) return known->winner;
    const std::lock_guard one_search(search_mutex_);
    for (const KernelConfig& config : options_.configs) problem.values.push_back(config.text());
    problem.search = [&](const tune::SearchLimits& limits) {
      return search(device, arguments, launch_for, limits);
    };
    const GlobalJitConfig global = global_jit_config();
    tune::ChoiceOptions options;
    options.limits.seconds = global.compilation_timeout;
    options.is_asked = true;
    options.memory = &chosen_;
    if (!global.enable_auto_tuning) options.obstacle = "enable_auto_tuning is off";
    if (!Trial::is_possible(tensors_of(arguments))) options.obstacle = "arguments overlap";
    return tune::choose_in_database(problem, options).found->winner;
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

  tune::Finding search(Device device, std::span<const KernelArgument> arguments,
                       const LaunchFor& launch_for, const tune::SearchLimits& limits) {
    std::vector<std::string> names;
    for (size_t i = 0; i < options_.configs.size(); ++i) {
      jit::kernel_if_ready(device, loaded_keys_[i], [&] { return request(i); });  // all at once
      names.push_back(options_.configs[i].text());
    }
    Trial trial(operands_of(arguments, parameters_[0]), backend::runtime(device).l2_bytes());
    const auto run = [&](size_t config, const std::vector<Tensor>& copies) {
      start(config, with_tensors(arguments, copies), launch_for);
    };
    tune::Finding found = tune::finding_of(trial.search(names, device, run, limits));
    const std::lock_guard lock(mutex_);
    last_search_ = found.text;
    return found;
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
  mutable ForkMutex mutex_;
  InterruptibleMutex search_mutex_{who_.c_str()};
  tune::Findings chosen_{tune::kMostFindings};
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
  jit::check_architecture(request.name, arch);
  request.arch = arch;
  return jit::compile_kernel(request);
}

}  // namespace cuop
