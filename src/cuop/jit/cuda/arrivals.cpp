#include "cuop/jit/cuda/arrivals.h"

#include <map>
#include <mutex>

#include "cuop/backend/cuda/capture.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/memory/current.h"

namespace cuop::jit {

namespace {

std::shared_ptr<Storage> zeros(int64_t count, Stream stream) {
  return backend::filled_storage(count * static_cast<int64_t>(sizeof(unsigned)), 0, stream);
}

/// The same now, whatever is being captured: what is kept may not live in a graph's memory, nor
/// wait for a replay to become zero.
std::shared_ptr<Storage> zeros_now(int64_t count, Device device) {
  const memory::ResourceScope scope(memory::device_resource(device));
  const backend::OwnedStream aside(device);
  const StreamScope current(aside.get());
  auto storage = zeros(count, aside.get());
  backend::runtime(device).synchronize(aside.get());
  return storage;
}

/// One array a stream, as launches of one stream follow each other. It is made under no lock: the
/// driver may wait, and a memory callback may compute on this very stream.
unsigned* kept_by(Stream stream) {
  static auto& mutex = *new ForkMutex;
  static auto* all = new std::map<std::pair<int, void*>, std::shared_ptr<Storage>>;
  const std::pair key(stream.device.index, stream.handle);
  {
    const std::lock_guard lock(mutex);
    if (const auto known = all->find(key); known != all->end()) {
      return static_cast<unsigned*>(known->second->data());
    }
  }
  const auto made = zeros_now(Arrivals::kKept, stream.device);  // goes back if another came first
  const std::lock_guard lock(mutex);
  return static_cast<unsigned*>(all->try_emplace(key, made).first->second->data());
}

}  // namespace

Arrivals::Arrivals(int64_t count, Stream stream) {
  // Graphs of one stream may run at the same time: each that another library records has its own,
  // in memory that stays its own. Ours have a stream of their own instead.
  if (count <= kKept && backend::cuda::capture_by_others(stream) == 0) {
    data_ = kept_by(stream);
  } else {
    own_ = zeros(count, stream);
    data_ = static_cast<unsigned*>(own_->data());
  }
}

}  // namespace cuop::jit
