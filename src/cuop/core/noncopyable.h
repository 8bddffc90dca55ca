// The base class of objects that stay where they are made.
#pragma once

namespace cuop {

/// Neither copied nor moved: scopes that put something back, owners of handles, and whatever others
/// hold the address of.
class NonCopyable {
 public:
  NonCopyable(const NonCopyable&) = delete;
  NonCopyable& operator=(const NonCopyable&) = delete;

 protected:
  NonCopyable() = default;
  ~NonCopyable() = default;
};

}  // namespace cuop
