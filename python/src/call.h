// A call of a bound function, for its errors: who, which argument, what was given and is needed.
#pragma once

#include <span>
#include <string>
#include <type_traits>

#include "cuop/memory/mapped_file.h"
#include "raised.h"
#include "signature.h"
#include "words.h"

namespace cuop::python {

/// One call, from its arguments to its result.
class Call {
 public:
  Call(const Signature& signature, std::span<PyObject* const> arguments) noexcept
      : signature_(signature), arguments_(arguments), outer_(current_) {
    if (signature.collective != Collective::kNever) note_collectives();
    current_ = this;
  }
  ~Call() { current_ = outer_; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// The arguments of the call that this thread is making; none outside of calls.
  static std::span<PyObject* const> arguments() noexcept {
    return current_ == nullptr ? std::span<PyObject* const>() : current_->arguments_;
  }
  /// "add: x1": an argument of the call that this thread is making.
  static std::string place(const char* argument);
  /// Its name for this very object, "x1"; "input" for one that is none of its arguments.
  static std::string name_of(nb::handle argument);

  /// The function, for messages.
  std::string who() const;
  /// Throws what is wrong with argument i, of which the object's own code has `raised`, if it has.
  [[noreturn]] void refuse(size_t i, const Raised& raised = nullptr) const;
  /// Throws the exception being handled as one of argument i.
  [[noreturn]] void rethrow_for(size_t i) const;

  /// Throws Python's TypeError.
  [[noreturn]] void fail(const std::string& why) const;

  /// work(). Ranks that would wait for this one hear of an error; data that was lost while it was
  /// worked on is one.
  template <class Work>
  std::invoke_result_t<Work> make(Work&& work) const {
    try {
      if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
        work();
        check_files();
      } else {
        std::invoke_result_t<Work> result = work();
        check_files();
        return result;
      }
    } catch (...) {
      rethrow_failure();
    }
  }

 private:
  std::string place_of(const Parameter& parameter) const;
  void note_collectives() noexcept;
  void tell_other_ranks() const;
  void check_files() const {
    if (memory::lost_page_count() != 0) [[unlikely]]
      look_for_lost_pages();
  }
  void look_for_lost_pages() const;
  /// Throws the exception being handled, once other ranks know of it, with the function's name
  /// where it lacks one.
  [[noreturn]] void rethrow_failure() const;
  /// Keeps a message where get_last_error finds it.
  void remember(const std::string& message) const;
  void remember_current() const;

  static thread_local constinit const Call* current_;
  const Signature& signature_;
  std::span<PyObject* const> arguments_;
  const Call* outer_;
  int64_t collectives_ = 0;
};

/// Adds the last overload of a function, whose other forms are given: the one for calls that fit
/// none of them. It raises TypeError with what does not fit, DTypeError for None in the wrong
/// place.
void bind_misfits(nb::handle scope, const char* name, const char* doc, Forms forms);

}  // namespace cuop::python
