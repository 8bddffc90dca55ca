// Under a sanitizer, where each takes ten times as long, long tests try fewer cases: it looks at
// how memory is used, all values are tried without it.
#pragma once

namespace cuop::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
/// Every how manyth of many cases is tried; prime, so that what goes in turns still does.
inline constexpr int kSlowCaseStep = 7;
inline constexpr int kCaseStep = kIsSanitized ? kSlowCaseStep : 1;

}  // namespace cuop::test
