// A stable radix sort, least significant digit first: as many passes over a line as there are
// digits that differ within it. The first pass reads the caller's elements and the last one writes
// the caller's result, so that keys of a byte move once and need no memory. Several threads can
// take parts of one line.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "cuop/backend/cpu/thread_pool.h"
#include "cuop/core/long_loop.h"
#include "cuop/ops/sort/rank_kernels.h"

namespace cuop::kernels {

/// Elements of a part of a line that are worth a thread.
inline constexpr size_t kSortedPart = size_t{1} << 16;

/// body(i) for i in [begin, end), a part of a line; a long one can be interrupted.
template <class Body>
void for_each_interruptibly(size_t begin, size_t end, Body&& body) {
  in_pieces(static_cast<int64_t>(end - begin), [&](int64_t first, int64_t last) {
    const size_t stop = begin + static_cast<size_t>(last);
    for (size_t i = begin + static_cast<size_t>(first); i < stop; ++i) body(i);
  });
}

/// A key and the position that goes with it.
template <class Key, class Index>
struct Position {
  Key key;
  Index index;
};

template <std::unsigned_integral Key>
Key key_of(Key key) {
  return key;
}
template <class Key, class Index>
Key key_of(const Position<Key, Index>& position) {
  return position.key;
}

/// Sorts lines of unsigned keys, or of positions by their keys, in `parts` parts each.
template <class Record>
class RadixSort {
  using Key = decltype(key_of(Record{}));

 public:
  RadixSort(size_t count, size_t parts) : count_(count), parts_(parts), counts_(parts) {}

  /// put(i, the i-th in order of read(0), ..., read(count - 1)) once for each i; both may be called
  /// from several threads at a time.
  template <class Read, class Put>
  void operator()(Read&& read, Put&& put) {
    if (count_ <= kRankedLine<Key>) return rank(read, put);
    count_digits(read);
    if constexpr (std::is_same_v<Record, uint8_t>) return put_counted(put);
    const std::vector<size_t> digits = differing_digits();
    if (digits.empty()) {
      each_part([&](size_t, size_t begin, size_t end) {
        for_each_interruptibly(begin, end, [put, read](size_t i) { put(i, read(i)); });
      });
      return;
    }
    if (digits.size() == 1) return move(digits[0], read, put);
    const size_t last = digits.size() - 1;
    make_runs(last);
    move(digits[0], read, Writer{run(0)});
    for (size_t pass = 1; pass < last; ++pass) {
      count_digit(digits[pass], run(pass - 1));
      move(digits[pass], Reader{run(pass - 1)}, Writer{run(pass)});
    }
    count_digit(digits[last], run(last - 1));
    move(digits[last], Reader{run(last - 1)}, put);
  }

 private:
  static constexpr size_t kDigits = sizeof(Key), kValues = 256;
  /// Equal bytes that follow each other would wait for their count to be written: counts take
  /// turns.
  static constexpr size_t kTurns = sizeof(Key) == 1 ? 4 : 1;
  using Counts = std::array<size_t, kValues>;
  struct Reader {
    const Record* records;
    const Record& operator()(size_t i) const { return records[i]; }
  };
  struct Writer {
    Record* records;
    void operator()(size_t i, const Record& record) const { records[i] = record; }
  };

  static size_t digit_of(Key key, size_t digit) {
    return static_cast<size_t>((key >> (8 * digit)) & 0xff);
  }

  template <class Read, class Put>
  void rank(Read&& read, Put&& put) const {
    std::array<Record, kRankedLine<Key>> records;
    std::array<Key, kRankedLine<Key>> keys, ranks;
    for (size_t i = 0; i < count_; ++i) {
      records[i] = read(i);
      keys[i] = key_of(records[i]);
    }
    rank_keys_in_use<Key>()(keys.data(), static_cast<int64_t>(count_), ranks.data());
    for (size_t i = 0; i < count_; ++i) put(static_cast<size_t>(ranks[i]), records[i]);
  }

  /// body(part, begin, end) for all parts of the line.
  template <class Body>
  void each_part(Body&& body) const {
    backend::parallel_for_each(static_cast<int64_t>(parts_), 1, [&](int64_t i) {
      const auto part = static_cast<size_t>(i);
      const size_t each = count_ / parts_, rest = count_ % parts_;
      const size_t begin = part * each + std::min(part, rest);
      body(part, begin, begin + each + (part < rest ? 1 : 0));
    });
  }

  /// How often each value of every digit is in each part.
  template <class Read>
  void count_digits(Read&& read) {
    each_part([&](size_t part, size_t begin, size_t end) {
      auto& counts = counts_[part];
      for (Counts& each : counts) each.fill(0);
      if constexpr (kTurns == 1) {
        for_each_interruptibly(begin, end, [read, counts = counts.data()](size_t i) {
          const Key key = key_of(read(i));
          for (size_t d = 0; d < kDigits; ++d) ++counts[d][digit_of(key, d)];
        });
      } else {
        std::array<Counts, kTurns> turns{};
        for_each_interruptibly(begin, end, [read, turns = turns.data()](size_t i) {
          ++turns[i % kTurns][key_of(read(i))];
        });
        for (const Counts& turn : turns) {
          for (size_t value = 0; value < kValues; ++value) counts[0][value] += turn[value];
        }
      }
    });
  }

  /// Keys of a byte are known by their counts.
  template <class Put>
  void put_counted(Put&& put) const {
    Counts ends{};
    for (size_t value = 0, end = 0; value < kValues; ++value) {
      for (const auto& counts : counts_) end += counts[0][value];
      ends[value] = end;
    }
    each_part([&](size_t, size_t begin, size_t end) {
      size_t value = 0;
      for (size_t at = begin; at < end; ++value) {
        const size_t stop = std::min(end, std::max(at, ends[value]));
        for_each_interruptibly(at, stop,
                               [put, key = static_cast<Key>(value)](size_t i) { put(i, key); });
        at = stop;
      }
    });
  }

  /// The same of one digit, of records in another order: parts have other ones than before.
  void count_digit(size_t digit, const Record* records) {
    if (parts_ == 1) return;
    each_part([&](size_t part, size_t begin, size_t end) {
      Counts& counts = counts_[part][digit];
      counts.fill(0);
      for_each_interruptibly(begin, end, [=, counts = counts.data()](size_t i) {
        ++counts[digit_of(key_of(records[i]), digit)];
      });
    });
  }

  std::vector<size_t> differing_digits() const {
    std::vector<size_t> digits;
    for (size_t d = 0; d < kDigits; ++d) {
      const auto has_all = [&](size_t value) {
        size_t count = 0;
        for (const auto& counts : counts_) count += counts[d][value];
        return count == count_;
      };
      const Counts& some = counts_[0][d];
      const auto used = std::find_if(some.begin(), some.end(), [](size_t n) { return n > 0; });
      if (!has_all(static_cast<size_t>(used - some.begin()))) digits.push_back(d);
    }
    return digits;
  }

  /// Puts every record where the counts of its digit, which become places, say.
  template <class From, class To>
  void move(size_t digit, From&& from, To&& to) {
    size_t start = 0;
    for (size_t value = 0; value < kValues; ++value) {
      for (auto& counts : counts_) {
        const size_t own = counts[digit][value];
        counts[digit][value] = start;
        start += own;
      }
    }
    each_part([&](size_t part, size_t begin, size_t end) {
      // Copies: what is written could be what they say, for all the compiler knows.
      size_t* const places = counts_[part][digit].data();
      for_each_interruptibly(begin, end, [=](size_t i) {
        const Record record = from(i);
        to(places[digit_of(key_of(record), digit)]++, record);
      });
    });
  }

  /// Where a pass that is not the last one leaves the records. Nothing writes it beforehand, which
  /// for a long line would take long, and nobody could interrupt it.
  Record* run(size_t pass) { return runs_.get() + (pass % 2) * count_; }

  /// Memory for what so many passes leave.
  void make_runs(size_t passes) {
    const size_t wanted = std::min(passes, size_t{2});
    if (wanted <= made_runs_) return;
    runs_ = std::make_unique_for_overwrite<Record[]>(wanted * count_);
    made_runs_ = wanted;
  }

  size_t count_, parts_;
  std::vector<std::array<Counts, kDigits>> counts_;  // of each part
  std::unique_ptr<Record[]> runs_;
  size_t made_runs_ = 0;
};

}  // namespace cuop::kernels
