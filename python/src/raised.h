// What Python code raises that a call runs for its arguments, as __index__, __array__ or a
// property. An exception of the object's own goes to whoever made the call, as it is. One that says
// no more than that the object is of another kind becomes our error, which names the argument and
// has it as its cause. KeyboardInterrupt, SystemExit and their like are never anything else than
// themselves.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cuop::python {

namespace nb = nanobind;

/// An exception of Python, or null.
using Raised = std::shared_ptr<nb::python_error>;

/// Python's current exception, which is current no more; null when there is none.
Raised take_raised() noexcept;
/// Whether it says that an object is not of the kind that it was asked for: TypeError, and
/// ShapeError, which tensors of several elements raise.
bool says_wrong_kind(const nb::python_error& raised);
/// Python's current exception when it says that; any other is thrown.
Raised wrong_kind();
/// Throws what is no Exception, as KeyboardInterrupt.
void throw_interrupt(const nb::python_error& raised);
/// As wrong_kind, where the object has no code of its own and all that is raised is Python's
/// answer: only what is no Exception is thrown.
Raised python_answer();

/// What led to an error of ours, in Python its __cause__.
class Caused {
 public:
  explicit Caused(Raised cause) : cause_(std::move(cause)) {}
  const Raised& cause() const { return cause_; }

 protected:
  ~Caused() = default;

 private:
  Raised cause_;
};
template <class E>
class CausedBy : public E, public Caused {
 public:
  CausedBy(const std::string& message, Raised cause) : E(message), Caused(std::move(cause)) {}
};
/// Throws an E, of which `cause` is the cause unless it is null.
template <class E>
[[noreturn]] void refuse(const std::string& message, Raised cause) {
  if (cause == nullptr) throw E(message);
  throw CausedBy<E>(message, std::move(cause));
}

/// An attribute; invalid for an object without it. Throws what a property raises.
nb::object attribute_of(nb::handle object, const char* name);
bool has_attribute(nb::handle object, const char* name);

/// The integer that an object with __index__ but a bool stands for, when it is one of 64 bits. Else
/// `why` is the reason, if the object gave one.
std::optional<int64_t> integer_in(nb::handle object, Raised& why);
/// str(object) of an argument that is known by its text, as dtypes of other libraries are; nullopt,
/// and the reason, for one that has none.
std::optional<std::string> text_in(nb::handle object, Raised& why);

}  // namespace cuop::python
