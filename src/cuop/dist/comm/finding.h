// What goes wrong while ranks find out what they can do is a finding, not an error of the call.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "cuop/core/interrupt.h"
#include "cuop/dist/comm/checks.h"

namespace cuop::dist {

/// What goes wrong with the work, or null. An interrupt is raised.
template <class Work>
std::exception_ptr error_of(Work&& work) {
  try {
    work();
    return nullptr;
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {
    return std::current_exception();
  }
}

/// The same in words, or "".
template <class Work>
std::string finding_of(Work&& work) {
  const std::exception_ptr error = error_of(std::forward<Work>(work));
  return error ? message_of(error) : "";
}

}  // namespace cuop::dist
