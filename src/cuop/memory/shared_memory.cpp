#include "cuop/memory/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cuop/core/byte_size.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/memory/host_memory.h"
#include "cuop/memory/sealed_file.h"

namespace cuop::memory {
namespace {

void* map(int descriptor, int64_t bytes) {
  return mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
              0);
}

/// Allocates all pages now, while a lack of memory is still an error code and no signal.
int reserve(int descriptor, int64_t bytes) {
  int result = 0;
  do {
    result = posix_fallocate(descriptor, 0, bytes);
  } while (result == EINTR);
  return result;
}

}  // namespace

std::shared_ptr<SharedMemory> SharedMemory::create(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  const auto refused = [bytes](int error) {
    return MemoryError(cat("shared memory: no ", format_bytes(bytes), ": ", errno_text(error)));
  };
  // Beyond what there is the system would end some process instead of refusing.
  if (bytes > host_memory().free) throw refused(ENOMEM);
  Descriptor file = make_sealed_file("cuop", bytes);
  if (!file.is_open()) throw refused(errno);
  if (const int error = reserve(file.get(), bytes)) throw refused(error);
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL) != 0) throw refused(errno);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw refused(errno);
  void* const data = map(file.get(), bytes);
  if (data == MAP_FAILED) throw refused(errno);
  const SharedMemoryName name{getpid(), file.get(), static_cast<int64_t>(status.st_dev),
                              static_cast<int64_t>(status.st_ino), bytes};
  return std::shared_ptr<SharedMemory>(new SharedMemory(std::move(file), data, name));
}

std::shared_ptr<SharedMemory> SharedMemory::open(const SharedMemoryName& name) {
  const Descriptor file = open_sealed_file(name.process, name.descriptor, name.bytes, true);
  if (!file.is_open()) return nullptr;
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return nullptr;
  const bool is_it = static_cast<int64_t>(status.st_dev) == name.device &&
                     static_cast<int64_t>(status.st_ino) == name.inode;
  if (!is_it || (fcntl(file.get(), F_GET_SEALS) & F_SEAL_SEAL) == 0) return nullptr;
  void* const data = map(file.get(), name.bytes);
  if (data == MAP_FAILED) return nullptr;
  return std::shared_ptr<SharedMemory>(new SharedMemory(Descriptor(), data, name));
}

SharedMemory::~SharedMemory() { munmap(data_, static_cast<size_t>(name_.bytes)); }

}  // namespace cuop::memory
