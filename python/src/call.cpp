#include "call.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "call_end.h"
#include "casters.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/operators/operator.h"
#include "raised.h"

namespace cuop::python {

namespace {

using namespace nb::literals;

const Operator* operator_of(std::span<PyObject* const> arguments) {
  const nb::handle self = arguments.empty() ? nullptr : arguments[0];
  const bool is_operator =
      self.is_valid() && nb::isinstance<Operator>(self) && nb::inst_ready(self);
  return is_operator ? nb::inst_ptr<Operator>(self) : nullptr;
}

/// The text of the exception being handled.
std::string message_of_current() {
  try {
    throw;
  } catch (const nb::python_error& error) {  // whose what() fails for some texts
    return message_of_raised(error.value());
  } catch (const std::exception& error) {
    return error.what();
  }
}

bool has_self(const Signature& signature) {
  return !signature.parameters.empty() && signature.parameters[0].name == "self";
}

std::string names_of_arguments(const Signature& form) {
  std::vector<std::string> names;
  for (size_t i = has_self(form) ? 1 : 0; i < form.parameters.size(); ++i) {
    names.push_back(form.parameters[i].name);
  }
  return cat("(", join(names), ")");
}

/// What is needed, by the name of a type in stubs.
constexpr std::pair<std::string_view, const char*> kWords[] = {
    {"int", "an integer"},
    {"float", "a real number"},
    {"bool", "True or False"},
    {"str", "a string"},
    {"Tensor", "a tensor"},
    {"object", "a value other than None"},
    {"Callable", "a function"},
    {"Sequence", "a sequence"},
    {"Mapping", "a dict"},
    {"ArrayLike", "an array or a number"},
    {"DTypeLike", "a dtype or its name"},
    {"DeviceLike", "a device or its name"},
    {"ShapeLike", "an integer or a sequence of integers"},
    {"AxesLike", "an integer or a sequence of integers"},
    {"OffsetLike", "an integer or a sequence of integers"},
    {"Number", "a number"},
    {"UploLike", "one of the names or integers that stand for it"},
    {"SideLike", "one of the names or integers that stand for it"},
    {"TransLike", "one of the names or integers that stand for it"},
    {"DiagLike", "one of the names or integers that stand for it"},
};

std::string needed(const Parameter& parameter) {
  std::string word(parameter.type->stub);
  if (word == "%") {
    word = nb::cast<std::string>(parameter.type->python().attr("__name__"));
  } else {  // "@collections.abc.Sequence[int]@list[int]@"
    word = word.substr(word.find_first_not_of('@'));
    word = word.substr(0, word.find_first_of("[@ "));
    word = word.substr(word.rfind('.') + 1);
  }
  for (const auto& [stub, words] : kWords) {
    if (word == stub) return words;
  }
  return word;
}

/// Throws when the value is an integer, which is then out of the parameter's range.
void refuse_range(const std::string& place, const Parameter& parameter, nb::handle given) {
  if (PyBool_Check(given.ptr()) != 0 || PyIndex_Check(given.ptr()) == 0) return;
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) {  // which it was a moment ago
    wrong_kind();
    return;
  }
  const std::string text = cat(place, " is ", message_of(number));
  const ParameterType& type = *parameter.type;
  if (type.least == 0 && message_of(number).starts_with("-")) {
    throw ExecutionError(cat(text, "; it must not be negative"));
  }
  if (type.least == std::numeric_limits<int64_t>::min()) {  // what is allowed is far from that
    throw ExecutionError(cat(text, ", which does not fit in 64 bits"));
  }
  throw ExecutionError(cat(text, type.least == 0 ? ", out of range" : "", "; allowed are ",
                           type.least, " to ", type.most));
}

/// Python's own answer to a call of such parameters: what each of them was given by name; throws
/// its TypeError for arguments that are too many, too few or unknown.
nb::dict bind_arguments(const Signature& form, const nb::args& plain, const nb::kwargs& by_name) {
  static constexpr const char* kKinds[] = {"POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY",
                                           "VAR_POSITIONAL", "VAR_KEYWORD"};
  const nb::module_ inspect = nb::module_::import_("inspect");
  const nb::object type = inspect.attr("Parameter");
  nb::list parameters;
  for (const Parameter& parameter : form.parameters) {
    const bool is_self = has_self(form) && nb::len(parameters) == 0;  // no annotation tells of it
    const auto kind = is_self ? Parameter::Kind::kPlain : parameter.kind;
    const nb::object standard = parameter.has_default ? nb::none() : type.attr("empty");
    parameters.append(
        type(parameter.name, type.attr(kKinds[static_cast<size_t>(kind)]), "default"_a = standard));
  }
  return inspect.attr("Signature")(parameters).attr("bind")(*plain, **by_name).attr("arguments");
}

/// Refuses a call that has an argument for each parameter and yet is not made: for None where that
/// has no meaning, else for the argument by which forms differ.
[[noreturn]] void refuse_bound(const Signature& form, const nb::dict& bound) {
  std::vector<PyObject*> given;
  size_t misfit = has_self(form) && form.parameters.size() > 1 ? 1 : 0;
  for (const Parameter& parameter : form.parameters) {
    const nb::object value = bound.attr("get")(parameter.name, nb::handle(Py_Ellipsis));
    if (value.is_none() && !parameter.takes_none) misfit = given.size();
    given.push_back(value.ptr());  // which the call's arguments hold
  }
  Call(form, given).refuse(misfit);
}

[[noreturn]] void refuse_misfit(const Forms& forms, const Call& call, const nb::args& plain,
                                const nb::kwargs& by_name) {
  std::string why_not;
  std::vector<std::string> all_forms;
  for (auto last = forms.rbegin(); last != forms.rend(); ++last) {  // which takes the most kinds
    const Signature* form = *last;
    std::string reason;
    nb::dict bound;
    try {
      bound = bind_arguments(*form, plain, by_name);
    } catch (const nb::python_error& error) {
      reason = message_of(error.value());
    }
    if (reason.empty()) refuse_bound(*form, bound);
    // Of several forms, the one that lacks nothing but knows a name less is nearest.
    const bool is_nearer = reason.starts_with("got an unexpected");
    if (why_not.empty() || (is_nearer && !why_not.starts_with("got"))) why_not = reason;
    const std::string names = names_of_arguments(*form);
    if (std::find(all_forms.begin(), all_forms.end(), names) == all_forms.end()) {
      all_forms.insert(all_forms.begin(), names);
    }
  }
  call.fail(cat(call.who(), ": ", why_not, "; the arguments are ", join(all_forms, " or ")));
}

}  // namespace

constinit thread_local const Call* Call::current_ = nullptr;

std::string Call::place(const char* argument) {
  return current_ == nullptr ? argument : cat(current_->who(), ": ", argument);
}

std::string Call::name_of(nb::handle argument) {
  if (current_ == nullptr) return "input";
  const auto& [signature, arguments] = std::tie(current_->signature_, current_->arguments_);
  const auto place = std::find(arguments.begin(), arguments.end(), argument.ptr());
  const auto i = static_cast<size_t>(place - arguments.begin());
  return i < signature.parameters.size() ? signature.parameters[i].name : "input";
}

std::string Call::who() const {
  const std::string& name = signature_.name;
  if (name == "__init__" && !arguments_.empty()) return class_name(arguments_[0]);
  if (!name.starts_with("__")) {
    const Operator* op = operator_of(arguments_);
    return op != nullptr && has_self(signature_) ? cat(op->name(), ": ", name) : name;
  }
  const size_t first = name.find_first_not_of('_');
  return name.substr(first, name.find_last_not_of('_') + 1 - first);
}

std::string Call::place_of(const Parameter& parameter) const {
  return signature_.name.find('.') == std::string::npos ? cat(who(), ": ", parameter.name) : who();
}

void Call::refuse(size_t i, const Raised& raised) const {
  const Parameter& parameter = signature_.parameters[i];
  const nb::handle given = arguments_[i];
  const std::string place = place_of(parameter);
  try {
    if (raised != nullptr && !says_wrong_kind(*raised)) throw nb::python_error(*raised);
    if (i == 0 && has_self(signature_)) {
      const bool is_unmade = nb::inst_check(given) && !nb::inst_ready(given);
      throw DTypeError(cat(who(), ": this method of ", signature_.owner, " was given ",
                           describe(given), is_unmade ? ", which was never made" : ""));
    }
    if (parameter.type->most != 0 && raised == nullptr) refuse_range(place, parameter, given);
    std::string words = needed(parameter);
    if (words == "a tensor" && has_attribute(given, "__array__")) {
      words += ", which cuop.asarray(array) makes of an array's own memory";
    } else if (parameter.takes_none && words != "None") {
      words += " or None";
    }
    python::refuse<DTypeError>(cat(place, ": needed is ", words, ", given ", describe(given)),
                               raised);
  } catch (...) {
    remember_current();
    throw;
  }
}

void Call::rethrow_for(size_t i) const {
  try {
    std::rethrow_exception(renamed(place_of(signature_.parameters[i])));
  } catch (...) {
    remember_current();
    throw;
  }
}

void Call::remember_current() const {
  if (operator_of(arguments_) != nullptr) remember(message_of_current());
}

void Call::fail(const std::string& why) const {
  remember(why);
  PyErr_SetObject(PyExc_TypeError, make_message(why).ptr());
  nb::raise_python_error();
}

void Call::remember(const std::string& message) const {
  const Operator* op = operator_of(arguments_);
  if (op != nullptr && has_self(signature_)) op->remember_error(message);
}

void Call::note_collectives() noexcept { collectives_ = dist::collective_calls(); }

void Call::tell_other_ranks() const {
  if (dist::collective_calls() != collectives_) return;  // it has, before it failed
  refuse_together(signature_.name, signature_.collective == Collective::kAlways, arguments_);
}

void Call::look_for_lost_pages() const {
  if (!check_mapped_files(arguments_)) nb::raise_python_error();
}

void Call::rethrow_failure() const {
  if (signature_.collective != Collective::kNever) tell_other_ranks();
  try {
    throw;
  } catch (const CommunicationError&) {
    look_for_lost_pages();  // other ranks may not have been able to read a file of this one
    throw;
  } catch (const UnnamedShapeError& error) {
    throw ShapeError(cat(who(), ": ", error.what()));
  }
}

void bind_misfits(nb::handle scope, const char* name, const char* doc, Forms forms) {
  const bool is_method = has_self(*forms[0]);
  const auto refuse = [forms = std::move(forms)](const nb::args& plain, const nb::kwargs& by_name) {
    std::vector<PyObject*> given;
    for (nb::handle value : plain) given.push_back(value.ptr());
    for (auto [key, value] : by_name) given.push_back(value.ptr());
    const Call call(*forms[0], given);
    call.make([&] { refuse_misfit(forms, call, plain, by_name); });
  };
  const std::string text = cat("def ", name, "(...)");
  const nb::sig signature(text.c_str());
  if (is_method) {
    nb::cpp_function(refuse, nb::scope(scope), signature, nb::is_method(), doc);
  } else {
    nb::cpp_function(refuse, nb::scope(scope), signature, doc);
  }
}

}  // namespace cuop::python
