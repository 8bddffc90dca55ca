// A trace of one test.
#pragma once

#include "cuop/core/trace.h"

namespace cuop::dist::rank_test {

/// A trace is recorded as long as this lives.
struct Recording {
  Recording() {
    trace::clear();
    trace::set_recording(true);
  }
  ~Recording() {
    trace::set_recording(false);
    trace::clear();
  }
};

}  // namespace cuop::dist::rank_test
