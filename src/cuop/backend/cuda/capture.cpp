#include "cuop/backend/cuda/capture.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "cuop/backend/cuda/context.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend::cuda {

namespace {

struct OwnStreams {
  ForkMutex mutex;
  std::vector<StreamHandle> recorded;
};
OwnStreams& own_streams() {
  static auto* made = new OwnStreams;  // graphs may outlive static destructors
  return *made;
}

}  // namespace

OwnCapture::OwnCapture(StreamHandle stream) : stream_(stream) {
  const std::lock_guard lock(own_streams().mutex);
  own_streams().recorded.push_back(stream);
}

OwnCapture::~OwnCapture() {
  const std::lock_guard lock(own_streams().mutex);
  std::erase(own_streams().recorded, stream_);
}

bool is_capturing(Stream stream) {
  const ContextScope scope(stream.device);
  CaptureStatus status{};
  check(driver().stream_is_capturing(handle_of(stream), &status), "stream of ", stream.device);
  return status != CaptureStatus::kNone;
}

uint64_t capture_by_others(Stream stream) {
  if (stream.handle == nullptr) return 0;  // the default stream cannot be recorded
  const ContextScope scope(stream.device);
  const StreamHandle handle = handle_of(stream);
  CaptureStatus status{};
  uint64_t id = 0;
  check(driver().stream_get_capture_info(handle, &status, &id, nullptr, nullptr, nullptr),
        "stream of ", stream.device);
  if (status == CaptureStatus::kNone) return 0;
  const std::lock_guard lock(own_streams().mutex);
  const auto& recorded = own_streams().recorded;
  return std::find(recorded.begin(), recorded.end(), handle) == recorded.end() ? id : 0;
}

void keep_if_recorded(Stream stream, std::shared_ptr<const void> object) {
  if (!is_capturing(stream)) [[likely]]
    return;
  static auto& mutex = *new ForkMutex;
  static auto* kept = new std::unordered_set<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept->insert(std::move(object));
}

}  // namespace cuop::backend::cuda
