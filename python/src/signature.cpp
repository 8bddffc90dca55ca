#include "signature.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "casters.h"
#include "cuop/core/text.h"

namespace cuop::python {

namespace {

using Kind = Parameter::Kind;
using Rest = ParameterType::Rest;
using What = Annotation::What;

/// Of the functions of a module or class, which take such arguments.
Collective collective_of(nb::handle scope, bool is_method,
                         std::span<const ParameterType* const> types) {
  const char* home = PyType_Check(scope.ptr()) != 0 ? "__module__" : "__name__";
  const std::string module = message_of(scope.attr(home));
  const bool is_of_ranks = module.ends_with("._dist") || module.ends_with("._executor");
  if (is_of_ranks && !is_method) return Collective::kAlways;
  const bool takes_parts = std::any_of(types.begin(), types.end(), [](const ParameterType* type) {
    return std::string_view(type->stub).ends_with("DistTensor");
  });
  return is_of_ranks || takes_parts ? Collective::kByName : Collective::kNever;
}

/// Of functions that have another form to come, while the module is made.
std::map<std::pair<PyObject*, std::string>, Forms>& open_forms() {
  static std::map<std::pair<PyObject*, std::string>, Forms> forms;
  return forms;
}

Kind kind_of(Rest rest, bool is_by_name) {
  if (rest == Rest::kPlain) return Kind::kRest;
  if (rest == Rest::kByName) return Kind::kRestByName;
  return is_by_name ? Kind::kByName : Kind::kPlain;
}

}  // namespace

const Signature* make_signature(nb::handle scope, std::string name, bool is_method,
                                std::span<const ParameterType* const> types,
                                std::span<const Annotation> annotations) {
  auto* made = new Signature{std::move(name), "", collective_of(scope, is_method, types), {}};
  if (PyType_Check(scope.ptr()) != 0) made->owner = nb::cast<std::string>(scope.attr("__name__"));
  bool is_by_name = false;
  auto annotation = annotations.begin();
  // The annotation of the next parameter, if there is one.
  const auto next = [&] {
    for (; annotation != annotations.end(); ++annotation) {
      if (annotation->what == What::kByNameFromHere) is_by_name = true;
      if (annotation->what == What::kParameter) return *annotation++;
    }
    return Annotation{};
  };
  for (const ParameterType* type : types) {
    const bool is_self = is_method && made->parameters.empty();  // which has no annotation
    const Annotation found = is_self ? Annotation{.name = "self"} : next();
    const size_t number = made->parameters.size() - (is_method ? 1 : 0);
    made->parameters.push_back(
        {.name = found.name == nullptr ? cat("arg", number) : found.name,
         .kind = kind_of(type->rest, is_by_name),
         .has_default = found.has_default,
         .takes_none = found.takes_none || (type->takes_none && type->rest == Rest::kNone),
         .type = type});
    is_by_name = is_by_name || type->rest == Rest::kPlain;
  }
  return made;
}

void add_form(nb::handle scope, const char* name, const Signature* form) {
  open_forms()[{scope.ptr(), name}].push_back(form);
}

Forms close_forms(nb::handle scope, const char* name, const Signature* last) {
  Forms all;
  if (const auto kept = open_forms().extract({scope.ptr(), name})) all = std::move(kept.mapped());
  all.push_back(last);
  return all;
}

}  // namespace cuop::python
