#include "cuop/backend/cuda/recorded.h"

#include <mutex>
#include <unordered_set>

#include "cuop/backend/cuda/cuda_runtime.h"

namespace cuop::backend::cuda {

void keep_if_recorded(Stream stream, std::shared_ptr<const void> object) {
  if (!is_capturing(stream)) [[likely]]
    return;
  static std::mutex mutex;
  static auto* kept = new std::unordered_set<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  kept->insert(std::move(object));
}

}  // namespace cuop::backend::cuda
