// Memory that processes of one user share. It has no name: nothing is left of it behind the last
// process that has it, however that ends, and nobody else can open it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "cuop/core/descriptor.h"
#include "cuop/core/noncopyable.h"

namespace cuop::memory {

/// By what another process of this host finds it.
struct SharedMemoryName {
  int64_t process = 0;
  int64_t descriptor = 0;  ///< of that process
  int64_t device = 0;      ///< and number of the file behind it
  int64_t inode = 0;
  int64_t bytes = 0;
};

class SharedMemory : NonCopyable {
 public:
  /// New memory, all zero, at least one byte of it. MemoryError where the system has not so much.
  static std::shared_ptr<SharedMemory> create(int64_t bytes);
  /// What another process has created; null where the system does not let this one have it, or it
  /// is not that memory.
  static std::shared_ptr<SharedMemory> open(const SharedMemoryName& name);
  ~SharedMemory();

  void* data() const { return data_; }
  /// While the creator lives; its descriptor is closed then.
  const SharedMemoryName& name() const { return name_; }

 private:
  SharedMemory(Descriptor file, void* data, const SharedMemoryName& name)
      : file_(std::move(file)), data_(data), name_(name) {}

  Descriptor file_;  ///< of the creator
  void* data_;
  SharedMemoryName name_;
};

}  // namespace cuop::memory
