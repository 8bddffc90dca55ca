#include "cuop/dist/comm/mailbox.h"

#include "cuop/dist/comm/copy.h"

namespace cuop::dist {

void Mailbox::put(const void* data, int64_t bytes, int tag) {
  const char* begin = static_cast<const char*>(data);
  messages_[tag].emplace_back(begin, begin + bytes);
}

int64_t Mailbox::next_length(int tag) const {
  const auto found = messages_.find(tag);
  return found != messages_.end() ? static_cast<int64_t>(found->second.front().size()) : -1;
}

void Mailbox::take(void* data, int tag) {
  const auto found = messages_.find(tag);
  const std::vector<char>& message = found->second.front();
  copy_bytes(data, message.data(), static_cast<int64_t>(message.size()));
  found->second.pop_front();
  if (found->second.empty()) messages_.erase(found);
}

}  // namespace cuop::dist
