#include "cuop/core/lru_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace cuop {
namespace {

TEST(LruCache, TheLeastRecentlyUsedGoesFirst) {
  LruCache<std::string, int> cache(2);
  EXPECT_EQ(cache.find("a"), nullptr);
  EXPECT_EQ(cache.put("a", 1), std::nullopt);
  EXPECT_EQ(cache.put("b", 2), std::nullopt);
  EXPECT_EQ(*cache.find("a"), 1);
  EXPECT_EQ(cache.put("c", 3), 2) << "b was not used";
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(cache.put("a", 4), 1) << "what the key had";
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.put("d", 5), 3) << "putting is using";
  EXPECT_EQ(*cache.find("a"), 4);
}

TEST(LruCache, CanBeEmptied) {
  LruCache<int, int> cache(4);
  for (int i = 0; i < 4; ++i) cache.put(i, 10 * i);
  EXPECT_EQ(cache.take_last(), 0);
  cache.erase(2);
  cache.erase(2);
  int sum = 0;
  cache.visit([&](int value) { sum += value; });
  EXPECT_EQ(sum, 40);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.find(1), nullptr);
  cache.put(1, 1);
  EXPECT_EQ(*cache.find(1), 1);
}

TEST(LruCache, KeepsNothingWithoutRoom) {
  LruCache<int, int> cache(0);
  EXPECT_EQ(cache.put(1, 10), 10);
  EXPECT_EQ(cache.size(), 0u);
}

/// All keys at one place of the table, so that only equality tells them apart.
struct SameHash {
  size_t operator()(int) const { return 7; }
};

TEST(LruCache, AgreesWithAListThatIsSearched) {
  LruCache<int, int, SameHash> cache(8);
  std::list<std::pair<int, int>> expected;  // the last used first
  const auto find = [&](int key) {
    return std::find_if(expected.begin(), expected.end(),
                        [&](const auto& each) { return each.first == key; });
  };
  std::mt19937 random(5);
  for (int step = 0; step < 20000; ++step) {
    const int key = static_cast<int>(random() % 16);
    const auto known = find(key);
    switch (random() % 8) {
      case 0:
        cache.erase(key);
        if (known != expected.end()) expected.erase(known);
        break;
      case 1:
      case 2:
      case 3:
        cache.put(key, step);
        if (known != expected.end()) expected.erase(known);
        expected.emplace_front(key, step);
        if (expected.size() > 8) expected.pop_back();
        break;
      default:
        const int* value = cache.find(key);
        ASSERT_EQ(value != nullptr, known != expected.end()) << step;
        if (value == nullptr) break;
        ASSERT_EQ(*value, known->second) << step;
        expected.splice(expected.begin(), expected, known);
    }
    ASSERT_EQ(cache.size(), expected.size()) << step;
  }
  while (!expected.empty()) {
    EXPECT_EQ(cache.take_last(), expected.back().second);
    expected.pop_back();
  }
}

struct Throwing {
  bool operator==(const Throwing& other) const { return value == other.value; }
  int value = 0;
};
struct ThrowingHash {
  size_t operator()(const Throwing& key) const {
    return key.value < 0 ? throw std::bad_alloc() : static_cast<size_t>(key.value);
  }
};

TEST(LruCache, AFailureChangesNothing) {
  LruCache<Throwing, int, ThrowingHash> cache(2);
  cache.put({1}, 1);
  EXPECT_THROW(cache.put({-1}, 2), std::bad_alloc);
  EXPECT_EQ(cache.size(), 1u);
  cache.put({2}, 2);
  EXPECT_EQ(cache.put({3}, 3), 1);
}

TEST(SharedLruCache, KeepsNothingThatIsEmpty) {
  SharedLruCache<int, std::optional<int>> cache(2);
  EXPECT_EQ(cache.get(1, [] { return std::nullopt; }), std::nullopt);
  EXPECT_EQ(cache.get(1, [] { return std::optional(5); }), 5);
  EXPECT_EQ(cache.get(1, [] { return std::optional(6); }), 5);
}

TEST(SharedLruCache, WhatIsInUseOutlivesItsEntry) {
  SharedLruCache<int, std::shared_ptr<int>> cache(1);
  const auto used = cache.get(1, [] { return std::make_shared<int>(10); });
  EXPECT_EQ(cache.get(1, [] { return nullptr; }), used) << "not made again";
  const std::weak_ptr<int> unused = cache.get(2, [] { return std::make_shared<int>(20); });
  EXPECT_EQ(*used, 10);
  EXPECT_EQ(cache.find(1), nullptr);
  cache.put(3, std::make_shared<int>(30));
  EXPECT_TRUE(unused.expired());
}

/// Asks the cache again where it ends, which would wait for ever if that were locked.
struct Asking {
  ~Asking() { cache->find(0); }
  SharedLruCache<int, std::shared_ptr<Asking>>* cache;
};

TEST(SharedLruCache, WhatGoesEndsWhenNothingIsLocked) {
  SharedLruCache<int, std::shared_ptr<Asking>> cache(1);
  for (int i = 0; i < 3; ++i) cache.put(i, std::make_shared<Asking>(&cache));
  cache.put(2, std::make_shared<Asking>(&cache));
  for (int i = 0; i < 3; ++i) cache.get(i, [&] { return std::make_shared<Asking>(&cache); });
  cache.put(2, nullptr);
}

TEST(SharedLruCache, ThreadsThatMakeTheSameGetTheFirst) {
  SharedLruCache<int, std::shared_ptr<int>> cache(4);
  const auto outer = cache.get(1, [&] {
    const auto inner = cache.get(1, [] { return std::make_shared<int>(1); });  // a quicker thread
    EXPECT_EQ(*inner, 1);
    return std::make_shared<int>(2);
  });
  EXPECT_EQ(*outer, 1);

  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const int key = (i * (t + 3)) % 9;
        if (*cache.get(key + 100, [&] { return std::make_shared<int>(key); }) != key) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace cuop
