#include "cuop/dist/strict.h"

#include <utility>

namespace cuop::dist {

namespace {
thread_local bool strict = false;
}

bool is_strict() { return strict; }

bool set_strict(bool is_strict) { return std::exchange(strict, is_strict); }

StrictScope::StrictScope(bool is_strict) : before_(set_strict(is_strict)) {}
StrictScope::~StrictScope() { set_strict(before_); }

}  // namespace cuop::dist
