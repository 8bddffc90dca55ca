#include "refusals.h"

#include <algorithm>
#include <array>

#include "bindings.h"
#include "calls.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/dist_tensor.h"

namespace cuop::python {

namespace {

using dist::Communicator;
using dist::DistTensor;

/// Methods of communicators and distributed tensors that begin by settling whether all ranks can go
/// on; functions of the module all do.
constexpr std::array kSettling = {"broadcast",    "scatter",     "gather",    "all_gather",
                                  "redistribute", "gather_all",  "__add__",   "__sub__",
                                  "__mul__",      "__truediv__", "__matmul__"};
/// Those that wait for all ranks without.
constexpr std::array kPlain = {"split", "barrier"};
constexpr std::array kMessages = {"send", "recv", "sendrecv"};

template <class Names>
bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Communicator* communicator_of(nb::handle argument) {
  if (nb::isinstance<Communicator>(argument)) return nb::cast<Communicator*>(argument);
  if (!nb::isinstance<DistTensor>(argument) || !nb::inst_ready(argument)) return nullptr;
  const auto* tensor = nb::inst_ptr<DistTensor>(argument);
  return tensor->is_defined() ? &tensor->comm() : nullptr;
}

/// The exception's text, whatever is in it; "" for the failure of a communicator, which tells of
/// itself.
std::string reason(const nb::python_error& error) {
  const nb::object failure = nb::module_::import_("cuop.errors").attr("CommunicationError");
  if (error.matches(failure)) return "";
  const nb::object text = nb::str("{}: {}").format(error.type().attr("__name__"), error.value());
  const nb::bytes encoded(text.attr("encode")("utf-8", "backslashreplace"));
  return {encoded.c_str(), encoded.size()};
}

}  // namespace

void refuse_together(nb::handle function, std::span<PyObject* const> arguments) {
  Communicator* comm = nullptr;
  for (size_t i = 0; comm == nullptr && i < arguments.size(); ++i) {
    comm = communicator_of(arguments[i]);
  }
  if (comm == nullptr) return;
  nb::python_error error;  // takes the exception, so that Python can be asked
  const std::string name = nb::cast<std::string>(function.attr("__name__"));
  const bool is_message = contains(kMessages, name);
  const bool is_method = class_name(function) == "nb_method";
  const std::string text = reason(error);
  error.restore();
  if (text.empty()) return;
  nb::gil_scoped_release release;
  if (is_message) {
    comm->refuse_message(text);
  } else if (contains(kPlain, name)) {
    comm->refuse_call(text);
  } else if (!is_method || contains(kSettling, name)) {
    try {
      dist::prepare_together(*comm, name, [&] { throw ExecutionError(text); });
    } catch (const Error&) {  // that one, or a failure of other ranks; the call has its own error
    }
  }
}

}  // namespace cuop::python
