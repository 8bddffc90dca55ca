// Libraries that are looked for at run time. A library that is absent is a state with a reason, not
// an error, until somebody needs a symbol of it.
#pragma once

#include <string>
#include <vector>

namespace cuop {

class DynLib {
 public:
  /// Tries the names in order (sonames or paths); remembers why none could be opened. `advice` says
  /// what to do about that; it ends the errors of require().
  DynLib(std::string title, const std::vector<std::string>& candidates, std::string advice = {});
  DynLib(const DynLib&) = delete;
  DynLib& operator=(const DynLib&) = delete;

  bool is_loaded() const { return handle_ != nullptr; }
  const std::string& title() const { return title_; }
  /// The file that was opened, or "" when none was.
  const std::string& path() const { return path_; }
  /// Why it could not be opened, or "".
  const std::string& reason() const { return reason_; }
  const std::string& advice() const { return advice_; }

  /// The file from which a symbol of the library really comes; path() when that cannot be told.
  std::string real_path(const char* symbol) const;

  /// Address of a symbol, null when the library or the symbol is absent.
  void* find(const char* symbol) const;
  /// Address of a symbol; DeviceError "title: ...; advice" when the library or the symbol is
  /// absent.
  void* require(const char* symbol) const;

  template <class Function>
  Function* require_function(const char* symbol) const {
    return reinterpret_cast<Function*>(require(symbol));
  }
  /// The same, into a pointer that tells the type.
  template <class Function>
  void bind(Function*& entry, const char* symbol) const {
    entry = require_function<Function>(symbol);
  }

 private:
  std::string title_;
  std::string path_;
  std::string reason_;
  std::string advice_;
  void* handle_ = nullptr;  // kept open until the process ends
};

}  // namespace cuop
