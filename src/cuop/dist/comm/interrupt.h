// Lets a long wait be ended by the user: Python's Ctrl-C is a flag that somebody must look at.
#pragma once

namespace cuop::dist {

/// `check` is called now and then by threads that wait for other ranks and throws to end the wait,
/// which aborts the communicator. Null for none.
void set_interrupt_check(void (*check)());
/// Calls it, at most every 0.1 s in a thread.
void check_interrupt();

}  // namespace cuop::dist
