// Libraries that are looked for at run time. A library that is absent is a state with a reason, not
// an error, until somebody needs a symbol of it.
#pragma once

#include <string>
#include <vector>

#include "cuop/core/noncopyable.h"

namespace cuop {

/// The address of a symbol, which takes the type of the pointer that it initialises.
class Symbol {
 public:
  explicit Symbol(void* address) : address_(address) {}
  template <class T>
  operator T*() const {  // NOLINT(google-explicit-constructor)
    return reinterpret_cast<T*>(address_);
  }

 private:
  void* address_;
};

class DynLib : NonCopyable {
 public:
  /// Tries the names in order (sonames or paths); remembers why none could be opened. `advice` says
  /// what to do about that; it ends the errors of require().
  DynLib(std::string title, const std::vector<std::string>& candidates, std::string advice = {});

  bool is_loaded() const { return handle_ != nullptr; }
  const std::string& title() const { return title_; }
  /// The file that was opened, or "" when none was.
  const std::string& path() const { return path_; }
  /// Why it could not be opened, or "".
  const std::string& reason() const { return reason_; }
  const std::string& advice() const { return advice_; }

  /// The file from which a symbol of the library really comes; path() when that cannot be told.
  std::string real_path(const char* symbol) const;

  /// Gives up a library of which nothing is in use.
  void close();

  /// Address of a symbol, null when the library or the symbol is absent.
  void* find(const char* symbol) const;
  /// A symbol, for a pointer that tells its type; DeviceError "title: ...; advice" when the library
  /// or the symbol is absent.
  Symbol require(const std::string& symbol) const;

  /// From now on, wherever in the process, the library calls `function` instead of another
  /// library's function of that name; whether it calls one at all.
  bool redirect(const char* imported, void* function) const;

 private:
  std::string title_;
  std::string path_;
  std::string reason_;
  std::string advice_;
  void* handle_ = nullptr;  // kept open until the process ends, unless it is closed
};

}  // namespace cuop
