#include <algorithm>
#include <array>

#include "bindings.h"
#include "call_end.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/dist_tensor.h"
#include "executor_arguments.h"

namespace cuop::python {

namespace {

using dist::Communicator;
using dist::DistTensor;

/// Methods of communicators and distributed tensors that begin by settling whether all ranks can go
/// on; functions of the modules all do.
constexpr std::array kSettling = {
    "broadcast", "scatter", "gather", "all_gather", "redistribute", "gather_all", "sum",  "mean",
    "prod",      "max",     "min",    "any",        "all",          "fft",        "ifft", "rfft",
    "irfft",     "fft2d",   "ifft2d", "var",        "std",          "__matmul__"};
/// Those that wait for all ranks without.
constexpr std::array kPlain = {"split", "barrier"};
constexpr std::array kMessages = {"send", "recv", "sendrecv"};

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Of a communicator, a tensor in parts or the devices of ranks, or of the first one in a tuple, as
/// *operands come in.
Communicator* communicator_of(nb::handle argument) {
  if (nb::isinstance<nb::tuple>(argument)) {
    for (nb::handle each : nb::borrow<nb::tuple>(argument)) {
      if (Communicator* const comm = communicator_of(each)) return comm;
    }
    return nullptr;
  }
  if (nb::isinstance<Communicator>(argument)) return nb::cast<Communicator*>(argument);
  if (!nb::inst_check(argument) || !nb::inst_ready(argument)) return nullptr;
  if (nb::isinstance<RankDevices>(argument)) {
    return nb::inst_ptr<RankDevices>(argument)->comm.get();
  }
  if (!nb::isinstance<DistTensor>(argument)) return nullptr;
  const auto* tensor = nb::inst_ptr<DistTensor>(argument);
  return tensor->is_defined() ? &tensor->comm() : nullptr;
}

/// Not of one that is being made: its maker tells the others, if anybody does.
bool is_in_parts(PyObject* argument) {
  return nb::isinstance<DistTensor>(nb::handle(argument)) && nb::inst_ready(nb::handle(argument));
}

bool has_several_parts(std::span<PyObject* const> arguments) {
  return std::ranges::count_if(arguments, is_in_parts) > 1;
}

/// The text of the exception being handled, whatever is in it; "" for the failure of a
/// communicator, which tells of itself.
std::string reason() {
  try {
    throw;
  } catch (const nb::python_error& error) {
    const nb::object failure = nb::module_::import_("cuop.errors").attr("CommunicationError");
    if (error.matches(failure)) return "";
    return cat(class_name(error.value()), ": ", message_of_raised(error.value()));
  } catch (const CommunicationError&) {
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

void refuse_together(const std::string& function, bool always_waits,
                     std::span<PyObject* const> arguments) {
  Communicator* comm = nullptr;
  for (size_t i = 0; comm == nullptr && i < arguments.size(); ++i) {
    comm = communicator_of(arguments[i]);
  }
  if (comm == nullptr) return;
  const std::string text = reason();
  if (text.empty()) return;
  nb::gil_scoped_release release;
  if (contains(kMessages, function)) {
    comm->refuse_message(text);
  } else if (contains(kPlain, function)) {
    comm->refuse_call(text);
  } else if (always_waits || contains(kSettling, function) || has_several_parts(arguments)) {
    try {
      dist::prepare_together(*comm, function, [&] { throw ExecutionError(text); });
    } catch (const Error&) {  // that one, or a failure of other ranks; the call has its own error
    }
  } else if (std::ranges::any_of(arguments, is_in_parts)) {
    comm->refuse_call(text);  // the others, which may have computed on their parts, hear of it next
  }
}

}  // namespace cuop::python
