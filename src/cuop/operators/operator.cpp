#include "cuop/operators/operator.h"

#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/ops/copy/copy.h"

namespace cuop {

namespace {

/// The same error with another message.
template <class E>
[[noreturn]] void rethrow_as(const E&, const std::string& message) {
  throw E(message);
}
[[noreturn]] void rethrow_as(const MemoryError& error, const std::string& message) {
  throw MemoryError(message, error.figures());
}
[[noreturn]] void rethrow_as(const CommunicationError& error, const std::string& message) {
  throw CommunicationError(message, error.rank(), error.call());
}

template <class... Types>
[[noreturn]] void rethrow_typed(const Error& error, const std::string& message) {
  const auto rethrow_if = [&]<class E>(TypeTag<E>) {
    if (const auto* typed = dynamic_cast<const E*>(&error)) rethrow_as(*typed, message);
  };
  (rethrow_if(TypeTag<Types>{}), ...);
  throw Error(message);
}

}  // namespace

Tensor copy_on_cpu(const Tensor& tensor) {
  return tensor.is_defined() ? to_device(tensor, kCpu) : tensor;
}

Operator::Operator(const char* base_name, DType dtype)
    : name_(cat(base_name, dtype == DType::kFloat64 ? "Double" : "Float")), dtype_(dtype) {}

std::string Operator::last_error() const {
  const std::lock_guard lock(error_mutex_);
  return last_error_;
}

void Operator::remember_error(const std::string& message) const {
  const std::lock_guard lock(error_mutex_);
  last_error_ = message;
}

Tensor Operator::execute(const Task& task) const {
  task.run(task.out);
  return task.out;
}

void Operator::check(const Tensor& tensor, const char* argument) const {
  if (!tensor.is_defined()) throw ExecutionError(cat(argument, " is an undefined tensor"));
  if (tensor.dtype() != dtype_) {
    throw DTypeError(cat(argument, " has dtype ", tensor.dtype(), ", this class takes ", dtype_,
                         "; convert it with to('", dtype_, "')"));
  }
}

void Operator::check_ndim(const Tensor& tensor, int ndim, const char* argument) {
  if (tensor.ndim() == ndim) return;
  throw ShapeError(
      cat(argument, " has shape ", tensor.shape(), ", needed are ", ndim, " dimensions"));
}

void Operator::check_square(const Tensor& tensor, const char* argument) {
  check_ndim(tensor, 2, argument);
  if (tensor.shape(0) == tensor.shape(1)) return;
  throw ShapeError(cat(argument, " has shape ", tensor.shape(), ", needed is a square matrix"));
}

void Operator::set(Weight& weight, const Tensor& value, const char* argument,
                   std::optional<int> ndim) {
  guarded([&] {
    check(value, argument);
    if (ndim) check_ndim(value, *ndim, argument);
    weight.set(value);
  });
}

void Operator::rethrow_named() const {
  const auto named = [this](const Error& error) {
    const std::string message = error.what();
    const std::string text = message.rfind(name_, 0) == 0 ? message : cat(name_, ": ", message);
    remember_error(text);
    return text;
  };
  try {
    throw;
  } catch (const Error& error) {
    rethrow_typed<MemoryError, NotImplementedError, ExecutionError, CompilationError, ShapeError,
                  DTypeError, DeviceError, IndexError, CommunicationError>(error, named(error));
  }
}

void Weight::set(const Tensor& value) {
  Tensor copy = clone(value);
  const std::lock_guard lock(state_->mutex);
  std::swap(state_->value, copy);
}

void Weight::replace(const Tensor& before, const Tensor& value) {
  Tensor kept = value;
  const std::lock_guard lock(state_->mutex);
  const Tensor& now = state_->value;
  const bool is_same =
      now.is_defined() == before.is_defined() && (!now.is_defined() || now.data() == before.data());
  if (is_same) std::swap(state_->value, kept);
}

Tensor Weight::get_or_none() const {
  const std::lock_guard lock(state_->mutex);
  return state_->value;
}

Tensor Weight::get() const {
  const Tensor value = get_or_none();
  if (!value.is_defined()) {
    throw ExecutionError(cat("the ", what_, " is not set; call ", setter_, " first"));
  }
  return value;
}

std::vector<int64_t> sizes_of(std::initializer_list<const Tensor*> tensors,
                              std::initializer_list<int64_t> numbers) {
  std::vector<int64_t> sizes;
  for (const Tensor* tensor : tensors) {
    sizes.push_back(tensor->ndim());
    for (const int64_t size : tensor->shape()) sizes.push_back(size);
  }
  for (const int64_t number : numbers) sizes.push_back(number);
  return sizes;
}

}  // namespace cuop
