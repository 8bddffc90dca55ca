#include "cuop/core/storage.h"

#include <utility>

#include "cuop/core/error.h"

namespace cuop {

Storage::Storage(void* data, int64_t nbytes, Device device, std::shared_ptr<void> owner,
                 bool is_read_only)
    : data_(data),
      nbytes_(nbytes),
      device_(device),
      is_read_only_(is_read_only),
      owner_(std::move(owner)) {}

std::shared_ptr<Storage> Storage::deferred(int64_t nbytes, Device device,
                                           std::function<void()> produce) {
  auto storage = std::make_shared<Storage>(nullptr, nbytes, device, nullptr);
  storage->produce_ = std::move(produce);
  storage->is_deferred_ = true;
  return storage;
}

void Storage::fulfil(void* data, std::shared_ptr<void> owner) {
  data_ = data;
  owner_ = std::move(owner);
  is_deferred_.store(false, std::memory_order_release);
}

void* Storage::data() {
  if (is_deferred()) {
    produce_();
    if (is_deferred()) throw Error("storage: deferred work did not produce its result");
  }
  return data_;
}

}  // namespace cuop
