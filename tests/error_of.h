// The error that a piece of work must raise.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "cuop/core/error.h"

namespace cuop::test {

/// The error of this kind that `work` raises. Anything else, or nothing, ends the test.
template <class Raised, class Work>
Raised caught(Work&& work) {
  try {
    work();
  } catch (const Raised& error) {
    return error;
  }
  throw std::logic_error("nothing");
}

/// Its text. Where `work` raises anything else, or nothing, the test has failed and goes on.
template <class Raised = CommunicationError, class Work>
std::string error_of(Work&& work) {
  try {
    return caught<Raised>(work).what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "raised is not what was expected but: " << error.what();
    return error.what();
  }
}

}  // namespace cuop::test
