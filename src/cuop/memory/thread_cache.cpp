#include "cuop/memory/thread_cache.h"

#include <map>
#include <mutex>
#include <thread>

#include "cuop/core/fork_steps.h"

namespace cuop::memory {

namespace {

/// Which pools there are. Never destroyed: threads may end after static destructors ran.
struct Registry {
  std::mutex mutex;
  std::map<uint64_t, CacheOwner*> owners;
  uint64_t last_id = 0;
};

Registry& registry() {
  static Registry* instance = [] {
    static constexpr auto kUnlock = []() noexcept {
      for (auto& [id, owner] : registry().owners) owner->unlock_after_fork();
      registry().mutex.unlock();
    };
    static constexpr ForkSteps kSteps{[]() noexcept {
                                        registry().mutex.lock();
                                        for (auto& [id, owner] : registry().owners) {
                                          owner->lock_for_fork();
                                        }
                                      },
                                      kUnlock, kUnlock};
    set_fork_steps(ForkStage::kPools, kSteps);
    return new Registry;
  }();
  return *instance;
}

// The hit path reads this and nothing else of the thread: it needs no construction.
constinit thread_local ThreadCache* last_used = nullptr;
constinit thread_local bool is_thread_ending = false;

/// Returns the thread's caches to their pools when it ends.
struct ThreadCaches {
  std::vector<std::shared_ptr<ThreadCache>> caches;
  ~ThreadCaches() {
    is_thread_ending = true;
    last_used = nullptr;
    const std::lock_guard lock(registry().mutex);
    for (const auto& cache : caches) {
      const auto owner = registry().owners.find(cache->pool_id());
      if (owner != registry().owners.end()) owner->second->adopt(*cache);
    }
  }
};

thread_local ThreadCaches thread_caches;

}  // namespace

bool ThreadCache::claim_patiently() noexcept {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (claim()) return true;
    std::this_thread::yield();
  }
  return false;
}

void ThreadCache::open(void* stream) {
  if (bring_to_front(stream)) return;
  auto magazines = std::unique_ptr<Magazines>(new Magazines);  // slots stay unwritten
  magazines->stream = stream;
  all_.push_back(std::move(magazines));
  front_ = all_.back().get();
}

bool ThreadCache::bring_to_front(void* stream) noexcept {
  for (const auto& magazines : all_) {
    if (magazines->stream != stream) continue;
    front_ = magazines.get();
    return true;
  }
  return false;
}

int ThreadCache::drain(int size_class, void* stream, void** out, int count) noexcept {
  int taken = 0;
  while (taken < count) {
    void* data = pop(size_class, stream);
    if (data == nullptr) break;
    out[taken++] = data;
  }
  return taken;
}

int64_t ThreadCache::largest_idle() const {
  int largest = -1;
  for (const auto& magazines : all_) {
    for (int c = 0; c < classes_.count(); ++c) {
      if (magazines->count[static_cast<size_t>(c)] > 0) largest = std::max(largest, c);
    }
  }
  return largest < 0 ? 0 : classes_.bytes(largest);
}

ThreadCache::Counts ThreadCache::take_counts() noexcept {
  const Counts counts{allocations_, frees_, live_, live_peak_};
  allocations_ = frees_ = live_ = live_peak_ = 0;
  return counts;
}

uint64_t register_cache_owner(CacheOwner& owner) {
  const std::lock_guard lock(registry().mutex);
  const uint64_t id = ++registry().last_id;
  registry().owners[id] = &owner;
  return id;
}

void unregister_cache_owner(uint64_t pool_id) {
  const std::lock_guard lock(registry().mutex);
  registry().owners.erase(pool_id);
}

ThreadCache* find_thread_cache(uint64_t pool_id) noexcept {
  ThreadCache* cache = last_used;
  if (cache != nullptr && cache->pool_id() == pool_id) [[likely]]
    return cache;
  if (is_thread_ending) return nullptr;
  for (const auto& candidate : thread_caches.caches) {
    if (candidate->pool_id() == pool_id) return last_used = candidate.get();
  }
  return nullptr;
}

ThreadCache* add_thread_cache(std::shared_ptr<ThreadCache> cache) {
  if (is_thread_ending) return nullptr;
  auto& caches = thread_caches.caches;
  {
    // Caches of pools that are gone would only pile up.
    const std::lock_guard lock(registry().mutex);
    std::erase_if(caches,
                  [](const auto& old) { return !registry().owners.contains(old->pool_id()); });
  }
  last_used = cache.get();
  caches.push_back(std::move(cache));
  return last_used;
}

}  // namespace cuop::memory
