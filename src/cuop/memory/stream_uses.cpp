#include "cuop/memory/stream_uses.h"

#include <algorithm>

namespace cuop::memory {

void StreamUses::add(void* data, Stream stream) {
  const std::lock_guard lock(mutex_);
  std::vector<Stream>& streams = streams_[data];
  if (streams.empty()) {
    ++count_;
    ++filter_[slot(data)];
  }
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

std::vector<Stream> StreamUses::take(void* data) {
  const std::lock_guard lock(mutex_);
  const auto entry = streams_.find(data);
  if (entry == streams_.end()) return {};
  std::vector<Stream> streams = std::move(entry->second);
  streams_.erase(entry);
  --filter_[slot(data)];
  --count_;
  return streams;
}

}  // namespace cuop::memory
