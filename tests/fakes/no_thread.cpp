// A system that has few threads: preloaded, it lets CUOP_MOST_THREADS of them live at a time beside
// the first.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

using Start = void*(void*);
using Create = int(pthread_t*, const pthread_attr_t*, Start*, void*);

std::atomic<int> alive = 0;

struct Work {
  Start* start;
  void* argument;
};

void* run(void* given) {
  const Work work = *static_cast<Work*>(given);
  delete static_cast<Work*>(given);
  void* const result = work.start(work.argument);
  --alive;
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* options,
                                                                     Start* start, void* argument) {
  static Create* const create = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  const char* const most = std::getenv("CUOP_MOST_THREADS");
  if (++alive > std::atoi(most != nullptr ? most : "1000")) {
    --alive;
    return EAGAIN;
  }
  auto* const work = new Work{start, argument};
  const int result = create(thread, options, &run, work);
  if (result == 0) return 0;
  --alive;
  delete work;
  return result;
}
