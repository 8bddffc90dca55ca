// Messages of a rank to itself.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace cuop::dist {

/// Copied at once, handed out in order by tag.
class Mailbox {
 public:
  void put(const void* data, int64_t bytes, int tag);
  /// Length of the next message with this tag, -1 when there is none.
  int64_t next_length(int tag) const;
  /// Copies the next message out; `data` has room for next_length(tag) bytes.
  void take(void* data, int tag);
  void clear() { messages_.clear(); }

 private:
  std::map<int, std::deque<std::vector<char>>> messages_;
};

}  // namespace cuop::dist
