#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "cuop/backend/current_device.h"
#include "cuop/backend/device_properties.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/jit/parameter.h"
#include "cuop/operators/tuned/user_kernel_check_internal.h"
#include "cuop/ops/output.h"

namespace cuop {

namespace {

using jit::KernelParameter;

bool is_identifier(const std::string& text) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_word);
}

bool has_control(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::iscntrl(c) != 0; });
}

std::string names_of(const std::vector<KernelParameter>& parameters) {
  std::vector<std::string> names;
  for (const KernelParameter& parameter : parameters) names.push_back(parameter.name);
  return join(names);
}

void check_number(const std::string& who, const Scalar& number, const KernelParameter& parameter) {
  const bool is_exact = !is_floating(*parameter.dtype) && !is_complex(*parameter.dtype);
  const bool has_fraction = is_exact && (number.is_floating() || number.is_complex());
  if (!has_fraction && number.fits(*parameter.dtype)) return;
  const std::string name = cat(who, ": ", parameter.name);
  if (has_fraction) {
    throw DTypeError(cat(name, " is ", parameter.type, ", given the number ", number));
  }
  number.check_fits(name.c_str(), *parameter.dtype);
}

void check_tensor(const std::string& who, const Tensor& tensor, const KernelParameter& parameter,
                  const std::optional<Device>& device) {
  const bool is_good = (!parameter.dtype || tensor.dtype() == *parameter.dtype) &&
                       !tensor.device().is_cpu() && (!device || tensor.device() == *device) &&
                       tensor.is_contiguous();
  if (is_good) {
    if (parameter.is_written) check_writable(who.c_str(), tensor);
    return;
  }
  const std::string name = cat(who, ": ", parameter.name);
  if (parameter.dtype && tensor.dtype() != *parameter.dtype) {
    throw DTypeError(cat(name, " is ", parameter.type, "*, which takes ", *parameter.dtype,
                         ", given a tensor of ", tensor.dtype()));
  }
  if (tensor.device().is_cpu()) {
    throw DeviceError(
        cat(name, " is on cpu; kernels run on a GPU: ", parameter.name, ".to('cuda')"));
  }
  if (device && tensor.device() != *device) {
    throw DeviceError(cat(name, " is on ", tensor.device(), ", tensors before it on ", *device));
  }
  throw ExecutionError(cat(name, " of shape ", tensor.shape(), " has strides ", tensor.strides(),
                           "; kernels get an address alone, so it must be row-major without gaps"));
}

/// Writes a number that fits as the kernel reads it.
void write_number(const Scalar& number, DType dtype, std::byte* to) {
  visit_dtype(AllTypes{}, dtype, "kernel", [&]<class T>(TypeTag<T>) {
    T value{};
    if constexpr (std::is_same_v<T, bool>) {
      value = number.to_complex() != std::complex<double>(0);
    } else if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>(number.to_bits64());
    } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                         std::is_same_v<T, std::complex<double>>) {
      value = T(number.to_complex());
    } else {
      value = jit::rounded_number<T>(number);
    }
    std::memcpy(to, &value, sizeof value);
  });
}

}  // namespace

void check_kernel_options(const std::string& who, const UserKernelOptions& options) {
  for (const std::string& option : options.compiler_options) {
    const bool reads_files = option.starts_with("-I") || option.starts_with("-i") ||
                             option.starts_with("--include-path") ||
                             option.starts_with("--pre-include");
    if (reads_files) {
      throw CompilationError(cat(who, ": the option ", option,
                                 " reads files that the cache of kernels does not know"));
    }
    if (!option.starts_with("-") || has_control(option)) {
      throw CompilationError(cat(who, ": '", option, "' is no option of the compiler"));
    }
  }
  for (const KernelConfig& config : options.configs) {
    for (const auto& [name, value] : config.macros) {
      if (!is_identifier(name)) {
        throw CompilationError(
            cat(who, ": a configuration defines '", name, "', which is no name of a macro"));
      }
      if (has_control(value)) {
        throw CompilationError(
            cat(who, ": the value of ", name, " in a configuration has control characters"));
      }
    }
  }
}

void check_kernel_key(const std::string& who, const std::vector<std::string>& key,
                      const std::vector<KernelParameter>& parameters) {
  for (const std::string& name : key) {
    const bool is_known =
        std::any_of(parameters.begin(), parameters.end(),
                    [&](const KernelParameter& parameter) { return parameter.name == name; });
    if (!is_known) {
      throw CompilationError(cat(who, ": the key names '", name,
                                 "', which is no parameter; they are ", names_of(parameters)));
    }
  }
}

Device check_kernel_arguments(const std::string& who, std::span<const KernelArgument> arguments,
                              const std::vector<KernelParameter>& parameters) {
  if (arguments.size() != parameters.size()) {
    throw ExecutionError(cat(who, ": takes ", parameters.size(), " arguments (",
                             names_of(parameters), "), given ", arguments.size()));
  }
  std::optional<Device> device;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const KernelParameter& parameter = parameters[i];
    const Tensor* tensor = std::get_if<Tensor>(&arguments[i]);
    if (parameter.is_pointer && tensor == nullptr) {
      throw DTypeError(cat(who, ": ", parameter.name, " is ", parameter.type,
                           "*, a tensor of a GPU; given the number ",
                           std::get<Scalar>(arguments[i])));
    }
    if (!parameter.is_pointer && tensor != nullptr) {
      throw DTypeError(cat(who, ": ", parameter.name, " is ", parameter.type,
                           ", a number; given a tensor of shape ", tensor->shape()));
    }
    if (tensor != nullptr) {
      check_tensor(who, *tensor, parameter, device);
      device = tensor->device();
    } else {
      check_number(who, std::get<Scalar>(arguments[i]), parameter);
    }
  }
  const Device chosen = device ? *device : backend::current_device();
  if (chosen.is_cpu()) {
    throw DeviceError(cat(who,
                          ": no argument is a tensor, and the current device is cpu; kernels "
                          "run on a GPU"));
  }
  return chosen;
}

jit::LaunchShape check_kernel_launch(const std::string& who, const KernelLaunch& launch,
                                     Device device) {
  const auto& properties = backend::runtime(device).properties();
  constexpr int64_t kMostBlocks[] = {2147483647, 65535, 65535};
  int64_t threads = 1;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] < 0 || launch.grid[axis] > kMostBlocks[axis]) {
      throw ExecutionError(cat(who, ": the grid has ", launch.grid[axis], " blocks along axis ",
                               axis, ", allowed are 0 to ", kMostBlocks[axis]));
    }
    const int64_t size = launch.block[axis];
    threads = size < 1 || size > properties.max_threads_per_block ? 0 : threads * size;
  }
  if (threads < 1 || threads > properties.max_threads_per_block) {
    throw ExecutionError(cat(who, ": a block of ", join(launch.block, " x "), " threads; ", device,
                             " allows 1 to ", properties.max_threads_per_block));
  }
  if (launch.shared_bytes < 0 || launch.shared_bytes > properties.shared_per_block_optin) {
    throw ExecutionError(cat(who, ": a block asks for ", launch.shared_bytes,
                             " bytes of shared memory, allowed are 0 to ",
                             properties.shared_per_block_optin));
  }
  const auto narrow = [](int64_t size) { return static_cast<unsigned>(size); };
  return {.grid_x = narrow(launch.grid[0]),
          .grid_y = narrow(launch.grid[1]),
          .grid_z = narrow(launch.grid[2]),
          .threads = narrow(launch.block[0]),
          .threads_y = narrow(launch.block[1]),
          .threads_z = narrow(launch.block[2]),
          .shared_bytes = narrow(launch.shared_bytes)};
}

PackedArguments::PackedArguments(std::span<const KernelArgument> arguments,
                                 const std::vector<KernelParameter>& parameters)
    : values_(arguments.size()) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::byte* const bytes = values_[i].bytes;
    addresses_.push_back(bytes);
    if (const Tensor* tensor = std::get_if<Tensor>(&arguments[i])) {
      void* const data = tensor->data();
      std::memcpy(bytes, &data, sizeof data);
    } else {
      write_number(std::get<Scalar>(arguments[i]), *parameters[i].dtype, bytes);
    }
  }
}

}  // namespace cuop
