#include "cuop/backend/cache.h"

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/memory/current.h"

namespace cuop {

int64_t empty_cache(Device device) {
  const int64_t prepared = backend::runtime(device).release_prepared();
  return prepared + memory::whole_resource(device).release_cached();
}

MemoryContext::~MemoryContext() {
  try {
    empty_cache(device_);
  } catch (const Error&) {
    // A destructor does not throw, and whoever uses the device next is told the same.
  }
}

}  // namespace cuop
