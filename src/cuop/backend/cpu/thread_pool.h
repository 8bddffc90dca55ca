// One pool of worker threads a process. `parallel_for` hands out ranges; the caller works too, so
// the pool needs no worker when there is one core. Nested calls run serially in their caller.
#pragma once

#include <cstdint>
#include <functional>

namespace cuop::backend {

/// Cores this process may run on (its affinity mask, not the machine's total).
int core_count();
/// How many ranks share this host; the threads of each are core_count() / ranks, at least 1.
void set_local_ranks(int ranks);
/// Threads that parallel work of this thread may use; 1 while it asks for simple kernels.
int thread_count();
/// Sets it for the calling thread (a rank that is a thread has its own share); 0 restores the
/// default.
void set_thread_count(int count);

/// Whether the system lets so many more threads run at a time, for libraries that hang or end the
/// process where it does not. Starts and ends them.
bool can_start_threads(int64_t count);

/// Calls body(begin, end) over disjoint pieces of [0, count) of at least `grain` items (1 where it
/// is less), on up to thread_count() threads; returns when all are done. The first exception is
/// rethrown here. Between pieces the user may interrupt (core/interrupt.h): long work comes in
/// several pieces a thread.
void parallel_for(int64_t count, int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& body);
/// The same for work(i) of each single i.
template <class Work>
void parallel_for_each(int64_t count, int64_t grain, const Work& work) {
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

}  // namespace cuop::backend
