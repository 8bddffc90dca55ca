// What a library that is being opened reads from the environment.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "cuop/core/noncopyable.h"

namespace cuop {

/// While it lives, an environment variable has another value.
class VariableScope : NonCopyable {
 public:
  VariableScope(const char* name, const std::string& value) : name_(name) {
    const char* const before = std::getenv(name);
    if (before != nullptr) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~VariableScope() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace cuop
