// How functions become Python's: nanobind gives out the arguments, and every one that it cannot
// convert is explained by the call that it was for.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <utility>

#include "bindings.h"
#include "cuop/core/text.h"

namespace cuop::python {

// Beside nanobind's annotations:
/// Releases the GIL while the bound function runs; its arguments are converted before.
struct Released {};
/// Another form of the function is bound next, which is tried for arguments that this one declines.
struct OneOfSeveral {};

template <class Extra>
const Extra& for_nanobind(const Extra& extra) {
  return extra;
}
inline std::nullptr_t for_nanobind(Released) { return nullptr; }
inline std::nullptr_t for_nanobind(OneOfSeveral) { return nullptr; }

template <class Wanted, class... Extra>
constexpr bool has = (std::is_same_v<Wanted, Extra> || ...);

/// What nanobind made of one argument. Unless `declines`, it may not fit.
template <class T, bool declines>
struct Given {
  nb::detail::make_caster<T> caster;
  PyObject* object = nullptr;
  bool fits = false;
  Raised raised;  ///< by the object's own code, which then does not fit
};

/// *args and **kwargs, of which nothing can be wrong.
template <class T>
constexpr bool is_rest = std::is_same_v<std::remove_cvref_t<T>, nb::args> ||
                         std::is_same_v<std::remove_cvref_t<T>, nb::kwargs>;
template <class T, bool declines>
using Taken = std::conditional_t<is_rest<T>, const std::remove_cvref_t<T>&, Given<T, declines>&>;

inline PyObject* object_of(nb::handle rest) { return rest.ptr(); }
template <class T, bool declines>
PyObject* object_of(const Given<T, declines>& given) {
  return given.object;
}

template <class T>
constexpr bool is_converted_late = false;
template <class T>
constexpr bool is_converted_late<Arg<T>> = true;
template <class T>
constexpr bool is_converted_late<std::optional<Arg<T>>> = true;
template <class T>
constexpr bool is_converted_late<std::vector<Arg<T>>> = true;

template <class T>
void convert_late(Arg<T>& argument) {
  argument.convert();
}
template <class T>
void convert_late(std::optional<Arg<T>>& argument) {
  if (argument) argument->convert();
}
template <class T>
void convert_late(std::vector<Arg<T>>& arguments) {
  for (Arg<T>& argument : arguments) argument.convert();
}

inline void look_for_interrupt(nb::handle) {}
/// Throws it before anything is said of the arguments.
template <class T, bool declines>
void look_for_interrupt(const Given<T, declines>& given) {
  if (given.raised != nullptr) [[unlikely]]
    throw_interrupt(*given.raised);
}

inline void settle(const Call&, size_t, nb::handle) {}
/// Throws unless argument i is what its parameter needs.
template <class T, bool declines>
void settle(const Call& call, size_t i, Given<T, declines>& given) {
  if (!given.fits) call.refuse(i, given.raised);
  if constexpr (is_converted_late<std::remove_cvref_t<T>>) {
    try {
      convert_late(given.caster.value);
    } catch (...) {
      call.rethrow_for(i);
    }
  }
}

template <class T>
const T& value_of(const T& rest) {
  return rest;
}
template <class T, bool declines>
decltype(auto) value_of(Given<T, declines>& given) {
  return given.caster.operator nb::detail::cast_t<T>();
}

// The signature of what is bound, of which member functions become functions of an object first.
template <class T, class F>
requires(!std::is_member_function_pointer_v<F>) F plain_function(F f) { return f; }
template <class T, class R, class C, class... Arguments>
auto plain_function(R (C::*f)(Arguments...)) {
  return [f](T& self, Arguments... arguments) -> R {
    return (self.*f)(std::forward<Arguments>(arguments)...);
  };
}
template <class T, class R, class C, class... Arguments>
auto plain_function(R (C::*f)(Arguments...) const) {
  return [f](const T& self, Arguments... arguments) -> R {
    return (self.*f)(std::forward<Arguments>(arguments)...);
  };
}
template <class R, class... Arguments>
struct Form {};
template <class R, class... Arguments>
Form<R, Arguments...> form_of(R (*)(Arguments...)) {
  return {};
}
template <class R, class F, class... Arguments>
Form<R, Arguments...> form_of_call(R (F::*)(Arguments...) const) {
  return {};
}
template <class F>
auto form_of(const F&) {
  return form_of_call(&F::operator());
}

/// The function that nanobind calls: f within a Call.
template <bool declines, bool is_released, class F, class R, class... Arguments>
auto called(const Signature* signature, F f, Form<R, Arguments...>) {
  return [signature, f = std::move(f)](Taken<Arguments, declines>... given) -> R {
    const std::array<PyObject*, sizeof...(Arguments)> objects{object_of(given)...};
    const Call call(*signature, objects);
    return call.make([&]() -> R {
      (look_for_interrupt(given), ...);
      size_t i = 0;
      (settle(call, i++, given), ...);
      if constexpr (is_released) {
        const nb::gil_scoped_release released;
        return f(value_of(given)...);
      } else {
        return f(value_of(given)...);
      }
    });
  };
}

template <class T>
struct Held {
  using Type = T;
};
template <class T>
struct Held<std::optional<T>> : Held<T> {};
template <class T>
struct Held<std::shared_ptr<T>> : Held<T> {};
/// A parameter's type without const, reference, pointer and what holds it.
template <class T>
using Bare = typename Held<nb::detail::intrinsic_t<T>>::Type;

/// What type T says of its parameter.
template <class T>
constexpr ParameterType make_type() {
  using Value = Bare<T>;
  using Rest = ParameterType::Rest;
  ParameterType made;
  if constexpr (is_rest<T>) {
    made.rest = std::is_same_v<Value, nb::kwargs> ? Rest::kByName : Rest::kPlain;
  } else {
    made.takes_none = nb::detail::has_arg_defaults_v<T>;
    made.stub = nb::detail::make_caster<Given<T, false>>::Name.text;
    made.python = [] { return nb::type<Value>(); };
  }
  if constexpr (std::integral<Value> && !std::is_same_v<Value, bool>) {
    made.least = std::numeric_limits<Value>::min();
    made.most = static_cast<uint64_t>(std::numeric_limits<Value>::max());
  }
  return made;
}
template <class T>
inline constexpr ParameterType kType = make_type<T>();

template <class Other>
constexpr Annotation annotation_of(const Other&) {
  return {};
}
constexpr Annotation annotation_of(nb::kw_only) {
  return {.what = Annotation::What::kByNameFromHere};
}
template <uint32_t flags, bool locked>
constexpr Annotation annotation_of(const nb::arg_t<flags, locked>& argument) {
  return {.what = Annotation::What::kParameter,
          .name = argument.name_,
          .takes_none = (flags & nb::detail::cast_flags::accepts_none) != 0};
}
template <uint32_t flags, bool locked>
constexpr Annotation annotation_of(const nb::arg_v_t<flags, locked>& argument) {
  return {.what = Annotation::What::kParameter,
          .name = argument.name_,
          .has_default = true,
          .takes_none = (flags & nb::detail::cast_flags::accepts_none) != 0};
}

template <class R, class... Arguments, class... Extra>
const Signature* signature_of(nb::handle scope, std::string name, bool is_method,
                              Form<R, Arguments...>, const Extra&... extra) {
  static constexpr std::array<const ParameterType*, sizeof...(Arguments)> kTypes{
      &kType<Arguments>...};
  const std::array<Annotation, sizeof...(Extra)> annotations{annotation_of(extra)...};
  return make_signature(scope, std::move(name), is_method, kTypes, annotations);
}

inline const char* doc_of() { return ""; }
template <class... Rest>
const char* doc_of(const char* doc, const Rest&...) {
  return doc;
}
template <class First, class... Rest>
const char* doc_of(const First&, const Rest&... rest) {
  return doc_of(rest...);
}

/// A module whose functions word their errors.
class Module : public nb::module_ {
 public:
  explicit Module(nb::module_ module) : nb::module_(std::move(module)) {}

  template <class F, class... Extra>
  Module& def(const char* name, F f, const Extra&... extra) {
    define_function(*this, name, std::move(f), extra...);
    return *this;
  }
};

/// Binds f as the function of a module or the static method of a class.
template <class F, class... Extra>
[[gnu::cold]] void define_function(nb::handle scope, const char* name, F f, const Extra&... extra) {
  constexpr bool declines = has<OneOfSeveral, Extra...>;
  const auto form = form_of(f);
  const Signature* signature = signature_of(scope, name, false, form, extra...);
  nb::cpp_function_def(called<declines, has<Released, Extra...>>(signature, std::move(f), form),
                       nb::scope(scope), nb::name(name), for_nanobind(extra)...);
  if constexpr (declines) {
    add_form(scope, name, signature);
  } else {
    bind_misfits(scope, name, doc_of(extra...), close_forms(scope, name, signature));
  }
}

/// A class whose methods and properties do.
template <class T, class... Bases>
class Class : public nb::class_<T, Bases...> {
 public:
  using Plain = nb::class_<T, Bases...>;
  using Plain::Plain;

  template <class F, class... Extra>
  [[gnu::cold]] Class& def(const char* name, F given, const Extra&... extra) {
    // What an operator of Python does not take, the other operand is asked for.
    constexpr bool is_operator = has<nb::is_operator, Extra...>;
    constexpr bool declines = is_operator || has<OneOfSeveral, Extra...>;
    auto f = plain_function<T>(std::move(given));
    const auto form = form_of(f);
    const Signature* signature = signature_of(*this, name, true, form, extra...);
    Plain::def(name, called<declines, has<Released, Extra...>>(signature, std::move(f), form),
               for_nanobind(extra)...);
    if constexpr (!is_operator) {
      if constexpr (declines) {
        add_form(*this, name, signature);
      } else {
        bind_misfits(*this, name, doc_of(extra...), close_forms(*this, name, signature));
      }
    }
    return *this;
  }

  template <class... Arguments, class... Extra>
  Class& def(nb::init<Arguments...>, const Extra&... extra) {
    return def(
        "__init__",
        [](T* self, Arguments... arguments) {
          new (self) T(std::forward<Arguments>(arguments)...);
        },
        extra...);
  }

  template <class F, class... Extra>
  Class& def_static(const char* name, F f, const Extra&... extra) {
    define_function(*this, name, std::move(f), extra...);
    return *this;
  }

  // What is only read needs no arguments: nanobind's own.
  template <class... Extra>
  Class& def_prop_ro(const Extra&... extra) {
    Plain::def_prop_ro(extra...);
    return *this;
  }
  template <class... Extra>
  Class& def_ro(const Extra&... extra) {
    Plain::def_ro(extra...);
    return *this;
  }
  template <class Get, class Set, class... Extra>
  Class& def_prop_rw(const char* name, Get get, Set given, const Extra&... extra) {
    auto set = plain_function<T>(given);
    const auto form = form_of(set);
    const auto owner = nb::cast<std::string>(this->attr("__name__"));
    const Signature* signature = signature_of(*this, cat(owner, ".", name), true, form);
    const std::string stub =
        cat("def ", name, "(self, arg: ", signature->parameters[1].type->stub, ", /) -> None");
    Plain::def_prop_rw(name, get, called<false, false>(signature, std::move(set), form),
                       nb::for_setter(nb::arg().none()), nb::for_setter(nb::sig(stub.c_str())),
                       extra...);
    return *this;
  }
  template <class C, class D, class... Extra>
  Class& def_rw(const char* name, D C::*member, const Extra&... extra) {
    return def_prop_rw(
        name, [member](const T& self) -> const D& { return self.*member; },
        [member](T& self, D value) { self.*member = std::move(value); }, extra...);
  }
};

}  // namespace cuop::python

namespace nanobind::detail {

template <class T, bool declines>
struct has_arg_defaults<cuop::python::Given<T, declines>> : has_arg_defaults<intrinsic_t<T>> {};

template <class T, bool declines>
struct type_caster<cuop::python::Given<T, declines>> {
  static constexpr auto Name = make_caster<remove_opt_mono_t<intrinsic_t<T>>>::Name;
  template <class U>
  using Cast = cuop::python::Given<T, declines>&;
  template <class U>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    value.object = source.ptr();
    if constexpr (std::is_same_v<cuop::python::Bare<T>, bool>) {
      source = cuop::python::plain_bool(source);
    }
    value.fits = value.caster.from_python(
        source, flags | cast_flags::convert | none_disallowed_flag<T>, cleanup);
    if (value.fits) return true;
    value.raised = cuop::python::take_raised();
    // No other form of the function is tried after an exception of the object's own.
    const bool is_own = value.raised != nullptr && !cuop::python::says_wrong_kind(*value.raised);
    return !declines || is_own;
  }
  explicit operator cuop::python::Given<T, declines>&() { return value; }

  cuop::python::Given<T, declines> value;
};

}  // namespace nanobind::detail
