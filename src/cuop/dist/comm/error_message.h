// The text of a caught exception, whatever its type.
#pragma once

#include <exception>
#include <string>

namespace cuop::dist {

inline std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

}  // namespace cuop::dist
