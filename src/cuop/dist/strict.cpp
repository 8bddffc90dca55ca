#include "cuop/dist/strict.h"

#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {
thread_local bool strict = false;
}

bool is_strict() { return strict; }

bool set_strict(bool is_strict) { return std::exchange(strict, is_strict); }

void refuse_to_gather(const std::string& who, const std::string& what, const std::string& openly) {
  throw GatherError(
      cat(who, ": strict() forbids to gather silently: ", what, "; say it with ", openly));
}

StrictScope::StrictScope(bool is_strict) : before_(set_strict(is_strict)) {}
StrictScope::~StrictScope() { set_strict(before_); }

}  // namespace cuop::dist
