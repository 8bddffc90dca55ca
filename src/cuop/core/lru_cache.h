// Bounded memories of what was used last.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cuop/core/fork_mutex.h"

namespace cuop {

/// Up to `most` values by their keys: beyond that the one that was not used for the longest time
/// goes. For one thread at a time.
template <class Key, class Value, class Hash = std::hash<Key>>
class LruCache {
 public:
  explicit LruCache(size_t most) : most_(most) {}

  size_t size() const { return entries_.size(); }
  /// The value, used now; null when there is none. Good until the cache changes.
  Value* find(const Key& key) {
    const auto entry = entries_.find(key);
    if (entry == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, entry->second.place);
    return &entry->second.value;
  }
  /// Keeps the value, used now. Returns what had to go for it, which the caller may let end later:
  /// the value that the key had, or the one that was not used for the longest time.
  std::optional<Value> put(const Key& key, Value value) {
    if (Value* before = find(key)) return std::exchange(*before, std::move(value));
    std::list<const Key*> place(1);  // first, since nothing may fail once the entry is there
    const auto [entry, is_new] = entries_.try_emplace(key, Entry{std::move(value), place.begin()});
    place.front() = &entry->first;
    order_.splice(order_.begin(), place);
    return size() > most_ ? std::optional(take_last()) : std::nullopt;
  }
  /// Takes out the one that was not used for the longest time; there must be one.
  Value take_last() {
    const auto entry = entries_.find(*order_.back());
    Value last = std::move(entry->second.value);
    order_.pop_back();
    entries_.erase(entry);
    return last;
  }
  void erase(const Key& key) {
    if (find(key) == nullptr) return;
    order_.pop_front();
    entries_.erase(key);
  }
  void clear() {
    order_.clear();
    entries_.clear();
  }
  /// Shows every value, in no order.
  template <class Look>
  void visit(Look&& look) const {
    for (const auto& [key, entry] : entries_) look(entry.value);
  }

 private:
  struct Entry {
    Value value;
    std::list<const Key*>::iterator place;
  };

  const size_t most_;
  std::list<const Key*> order_;  // the last used first; the keys are those of the entries
  std::unordered_map<Key, Entry, Hash> entries_;
};

/// The same for any number of threads. Values are handed out as copies: pointers, which keep what
/// is in use alive when it goes, or optionals. What goes ends when nothing is locked.
template <class Key, class Value, class Hash = std::hash<Key>>
class SharedLruCache {
 public:
  explicit SharedLruCache(size_t most) : cache_(most) {}

  /// Empty when there is none.
  Value find(const Key& key) {
    const std::lock_guard lock(mutex_);
    const Value* known = cache_.find(key);
    return known == nullptr ? Value() : *known;
  }
  void put(const Key& key, Value value) {
    std::optional<Value> gone;
    const std::lock_guard lock(mutex_);
    gone = cache_.put(key, std::move(value));
  }
  /// What is known, else what make() returns, which is kept unless it is empty. Nothing is locked
  /// while it is made; when threads make the same, all get the first.
  template <class Make>
  Value get(const Key& key, Make&& make) {
    if (Value known = find(key)) return known;
    Value made = make();
    if (!made) return made;
    std::optional<Value> gone;
    const std::lock_guard lock(mutex_);
    if (const Value* first = cache_.find(key)) return *first;
    gone = cache_.put(key, made);
    return made;
  }
  /// Returns how many there were.
  size_t clear() {
    const std::lock_guard lock(mutex_);
    const size_t count = cache_.size();
    cache_.clear();
    return count;
  }

 private:
  ForkMutex mutex_;
  LruCache<Key, Value, Hash> cache_;
};

}  // namespace cuop
