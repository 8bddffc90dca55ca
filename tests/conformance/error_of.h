// The message of the error that a piece of work must raise.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cuop/core/error.h"

namespace cuop::dist::conformance {

/// Runs `work`, which must raise; the error it raised.
template <class Raised = CommunicationError, class Work>
std::string error_of(Work&& work) {
  try {
    work();
  } catch (const Raised& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "raised another error: " << error.what();
    return error.what();
  }
  ADD_FAILURE() << "did not raise";
  return "";
}

}  // namespace cuop::dist::conformance
