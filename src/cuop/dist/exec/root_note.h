// What the root of a rooted call tells the other ranks beside shapes and dtypes.
#pragma once

#include <cstdint>
#include <string>

#include "cuop/dist/cost/machine.h"

namespace cuop::dist {

struct RootNote {
  Machine machine;
  uint64_t hash = 0;  ///< of the root's plan
  bool is_on_gpu = false;
  bool is_to_measure = false;  ///< the ranks find out their figures and plan with those
};

std::string write_note(const RootNote& note);
/// CommunicationError unless it is the whole of a note, with figures above 0.
RootNote read_note(const std::string& bytes);

}  // namespace cuop::dist
