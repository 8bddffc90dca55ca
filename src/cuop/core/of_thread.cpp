#include "cuop/core/of_thread.h"

#include <cxxabi.h>

extern "C" {
extern void* __dso_handle __attribute__((visibility("hidden")));
}

namespace cuop {

/// As compilers register destructors of thread_local variables, which libraries wait for before
/// they are unloaded.
void call_at_thread_end(void (*end)()) noexcept {
  abi::__cxa_thread_atexit([](void* given) { reinterpret_cast<void (*)()>(given)(); },
                           reinterpret_cast<void*>(end), &__dso_handle);
}

}  // namespace cuop
