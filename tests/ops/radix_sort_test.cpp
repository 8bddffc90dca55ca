// One line in several parts, with positions of both widths, beside the standard library.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "cuop/ops/sort/radix_sort_internal.h"

namespace cuop::kernels {
namespace {

/// Keys of which only the digits in `mask` differ.
template <class Key>
std::vector<Key> random_keys(size_t count, uint64_t mask, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Key> keys(count);
  for (Key& key : keys) key = static_cast<Key>(random() & mask);
  return keys;
}

template <class Key, class Index>
void expect_sorted(const std::vector<Key>& keys, size_t parts) {
  const size_t count = keys.size();
  std::vector<size_t> wanted(count);
  std::iota(wanted.begin(), wanted.end(), size_t{0});
  std::stable_sort(wanted.begin(), wanted.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });

  std::vector<Key> sorted(count);
  RadixSort<Key> sort(count, parts);
  std::vector<Index> order(count);
  RadixSort<Position<Key, Index>> sort_positions(count, parts);
  for (int round = 0; round < 2; ++round) {  // the memory of a line serves the next one
    sort([&](size_t i) { return keys[i]; }, [&](size_t i, Key key) { sorted[i] = key; });
    sort_positions(
        [&](size_t i) {
          return Position<Key, Index>{keys[i], static_cast<Index>(i)};
        },
        [&](size_t i, const Position<Key, Index>& position) { order[i] = position.index; });
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(sorted[i], keys[wanted[i]]) << i << " of " << count << ", " << parts << " parts";
      ASSERT_EQ(static_cast<size_t>(order[i]), wanted[i])
          << i << " of " << count << ", " << parts << " parts";
    }
  }
}

template <class Key>
void expect_sorted_in_parts(size_t count, uint64_t mask) {
  const auto keys = random_keys<Key>(count, mask, static_cast<unsigned>(count));
  for (const size_t parts : {1, 2, 3, 7}) {
    expect_sorted<Key, uint32_t>(keys, parts);
    expect_sorted<Key, int64_t>(keys, parts);
  }
}

template <class Key>
void expect_ranked(isa::Level level) {
  const auto run = isa::choose(level, []<class Level>(Level) { return &rank_keys<Level, Key>; });
  for (size_t count = 1; count <= kRankedLine<Key>; ++count) {
    for (const uint64_t mask : {~uint64_t{0}, uint64_t{0x8000000000008087}}) {
      const auto keys = random_keys<Key>(count, mask, static_cast<unsigned>(count));
      std::vector<Key> ranks(count + 1, Key{77});
      run(keys.data(), static_cast<int64_t>(count), ranks.data());
      for (size_t i = 0; i < count; ++i) {
        size_t before = 0;
        for (size_t j = 0; j < count; ++j) {
          before += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
        }
        ASSERT_EQ(static_cast<size_t>(ranks[i]), before) << i << " of " << count;
      }
      ASSERT_EQ(ranks[count], Key{77});
    }
  }
}

TEST(RankKeys, EveryInstructionSetAndLength) {
  for (const isa::Level level : {isa::Level::kBaseline, isa::Level::kV3, isa::Level::kV4}) {
    if (!isa::is_supported(level)) continue;
    expect_ranked<uint8_t>(level);
    expect_ranked<uint16_t>(level);
    expect_ranked<uint32_t>(level);
    expect_ranked<uint64_t>(level);
  }
}

TEST(RadixSort, LinesOfEveryLengthInEveryNumberOfParts) {
  for (const size_t count : {1, 2, 5, 16, 17, 32, 33, 64, 99, 100, 101, 128, 199, 200, 201, 5003}) {
    expect_sorted_in_parts<uint8_t>(count, ~uint64_t{0});
    expect_sorted_in_parts<uint32_t>(count, ~uint64_t{0});
    expect_sorted_in_parts<uint64_t>(count, ~uint64_t{0});
  }
}

TEST(RadixSort, EqualKeysKeepTheirOrder) {
  for (const size_t count : {13, 31, 127, 198, 3000}) {
    expect_sorted_in_parts<uint8_t>(count, 0x3);
    expect_sorted_in_parts<uint16_t>(count, 0x101);
    expect_sorted_in_parts<uint64_t>(count, 0x8000000000000001);
  }
}

TEST(RadixSort, DigitsThatAreEqualAreNoPasses) {
  for (const uint64_t mask : {0x0ull, 0x3ull, 0xf00ull, 0xff000000ull, 0x30ff00ull, 0xffffffull}) {
    expect_sorted_in_parts<uint32_t>(1009, mask);
    expect_sorted_in_parts<uint64_t>(1009, mask << 24);
  }
}

TEST(RadixSort, PartsOfSeveralPieces) {
  expect_sorted<uint16_t, uint32_t>(random_keys<uint16_t>(size_t{1} << 19, 0xffff, 1), 1);
}

}  // namespace
}  // namespace cuop::kernels
