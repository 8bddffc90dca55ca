#include "cuop/memory/sites.h"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cuop/core/fork_mutex.h"

namespace cuop::memory {

namespace {

struct Sites {
  ForkMutex mutex;
  std::shared_ptr<const SiteProvider> provider;
  std::deque<std::string> names{""};  // number 0 is the unknown place
  std::unordered_map<std::string, uint32_t> numbers;
};

/// Apart from the rest, so that an allocation needs no static to be constructed: a child that is
/// forked while another thread constructs one would wait for that for ever.
constinit std::atomic<bool> is_on = false;

Sites& sites() {
  static Sites* instance = new Sites;  // tensors may be allocated by static destructors
  return *instance;
}

}  // namespace

void set_site_provider(SiteProvider provider) {
  std::shared_ptr<const SiteProvider> next;
  if (provider) next = std::make_shared<const SiteProvider>(std::move(provider));
  const std::lock_guard lock(sites().mutex);
  is_on = next != nullptr;
  std::swap(sites().provider, next);
}

uint32_t current_site() {
  if (!is_on.load(std::memory_order_relaxed)) return 0;
  std::shared_ptr<const SiteProvider> provider;
  {
    const std::lock_guard lock(sites().mutex);
    provider = sites().provider;
  }
  if (provider == nullptr) return 0;
  std::string place = (*provider)();
  if (place.empty()) return 0;
  const std::lock_guard lock(sites().mutex);
  const auto [entry, is_new] =
      sites().numbers.emplace(std::move(place), static_cast<uint32_t>(sites().names.size()));
  if (is_new) sites().names.push_back(entry->first);
  return entry->second;
}

std::string site_name(uint32_t site) {
  const std::lock_guard lock(sites().mutex);
  return site < sites().names.size() ? sites().names[site] : "";
}

}  // namespace cuop::memory
