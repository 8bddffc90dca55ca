// Whether the calls of a thread may bring the parts of a tensor together without being asked to.
#pragma once

#include <string>

#include "cuop/core/noncopyable.h"

namespace cuop::dist {

/// Whether this thread is inside a StrictScope.
bool is_strict();

/// Enters or leaves the state of such a scope; returns what was before.
bool set_strict(bool is_strict);

/// GatherError "who: strict() forbids to gather silently: what; say it with openly".
[[noreturn]] void refuse_to_gather(const std::string& who, const std::string& what,
                                   const std::string& openly);

/// For the time of its life, GatherError for calls of this thread that would make a tensor which no
/// rank has all of whole on one rank or on several, and for conversions of DistTensors to tensors
/// or numbers. What is asked for by name stays allowed: gather, gather_all, redistribute and the
/// `output` of a call. Everything else is computed as outside. All ranks must be in such a scope,
/// or none.
class StrictScope : NonCopyable {
 public:
  explicit StrictScope(bool is_strict = true);
  ~StrictScope();

 private:
  const bool before_;
};

}  // namespace cuop::dist
