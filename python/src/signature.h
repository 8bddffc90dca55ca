// What a bound function takes, for the words of its errors.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cuop::python {

namespace nb = nanobind;

/// What the type of a parameter says of it.
struct ParameterType {
  enum class Rest { kNone, kPlain, kByName };  ///< the last two: *args, **kwargs

  Rest rest = Rest::kNone;
  bool takes_none = false;
  const char* stub = "";             ///< what stubs call it: "int", "ArrayLike", of our classes "%"
  nb::handle (*python)() = nullptr;  ///< the class, where it is one of ours
  int64_t least = 0;                 ///< of an integer
  uint64_t most = 0;                 ///< of an integer; 0 for other types
};

/// What one of nanobind's annotations says of a parameter.
struct Annotation {
  enum class What { kOther, kParameter, kByNameFromHere };

  What what = What::kOther;
  const char* name = nullptr;
  bool has_default = false;
  bool takes_none = false;
};

/// A parameter of a bound function.
struct Parameter {
  enum class Kind { kPlain, kByName, kRest, kRestByName };  ///< the last two: *args, **kwargs

  std::string name;
  Kind kind = Kind::kPlain;
  bool has_default = false;
  bool takes_none = false;
  const ParameterType* type = nullptr;
};

/// Whether the calls of a function wait for other ranks.
enum class Collective {
  kNever,
  kByName,  ///< those that refusals.cpp names, and those of several tensors in parts
  kAlways,  ///< where a communicator is among the arguments
};

/// A bound function, method (whose first parameter is `self`) or accessor of a property.
struct Signature {
  std::string name;   ///< Python's; of a property with its class: "Generator.counter"
  std::string owner;  ///< the class of a method or property
  Collective collective;
  std::vector<Parameter> parameters;
};

/// Of a function of the module or class `scope`. Lives as long as the process, as the functions of
/// an extension do.
const Signature* make_signature(nb::handle scope, std::string name, bool is_method,
                                std::span<const ParameterType* const> types,
                                std::span<const Annotation> annotations);

/// The signatures by which one function can be called.
using Forms = std::vector<const Signature*>;

/// Keeps a form of the function `name` of a module or class, of which another one is to come.
void add_form(nb::handle scope, const char* name, const Signature* form);
/// The forms that were kept and the last one.
Forms close_forms(nb::handle scope, const char* name, const Signature* last);

}  // namespace cuop::python
