// What a thread keeps between its calls, and computes with to its very end.
#pragma once

#include <utility>

namespace cuop {

/// Calls `end` when the calling thread ends, also from within that; never for what is registered
/// by destructors of static objects.
void call_at_thread_end(void (*end)()) noexcept;

/// The calling thread's object of this `make`, which is a lambda of the place of the call and
/// returns a new one; it goes with the thread. Unlike a thread_local variable it is there for
/// destructors of other such variables and, as the first thread's go before these, of static
/// objects too: who asks after it has gone gets another.
template <class Make>
auto& of_thread(const Make& make) {
  using Object = decltype(make());
  static constinit thread_local Object object = nullptr;
  if (object == nullptr) [[unlikely]] {
    object = make();
    call_at_thread_end([] { delete std::exchange(object, nullptr); });
  }
  return *object;
}

}  // namespace cuop
