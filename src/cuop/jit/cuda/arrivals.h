// Counters for blocks that share work: each counts itself when it has written its part, the last to
// come goes on alone and puts the zero back.
#pragma once

#include <memory>

#include "cuop/core/storage.h"
#include "cuop/core/stream.h"

namespace cuop::jit {

/// Zeros on the stream's device, for one launch on the stream.
class Arrivals {
 public:
  /// So many are kept for each stream; more of them are new memory and a fill.
  static constexpr int64_t kKept = 4096;

  Arrivals(int64_t count, Stream stream);
  unsigned* data() const { return data_; }

 private:
  std::shared_ptr<Storage> own_;
  unsigned* data_ = nullptr;
};

}  // namespace cuop::jit
