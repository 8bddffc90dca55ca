// Files that are read where the kernel maps them, page by page as they are used. Who cuts such a
// file off while it is mapped would end the process by SIGBUS when a lost page is read; here the
// page reads as zeros and the loss is counted, so that the reader can raise an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuop/core/noncopyable.h"

namespace cuop::memory {

/// The mapping as the signal's handler sees it.
struct MappedRange;

/// Bytes of an open file, read-only, for the life of this object; the file may be closed meanwhile.
class MappedFile : NonCopyable {
 public:
  /// The bytes from `offset` on of an open ordinary file, whose name is for messages.
  /// ExecutionError when it is shorter, or cannot be mapped.
  MappedFile(int descriptor, int64_t offset, int64_t bytes, std::string name);
  ~MappedFile();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  MappedRange* range_ = nullptr;
};

/// How many reads have met a lost page so far, in any file of the process.
uint64_t lost_page_count() noexcept;
/// The name of the mapped file that holds this address, if it was cut off since it was mapped;
/// null looks for any file of which a read met a lost page.
std::optional<std::string> cut_off_file(const void* address);

}  // namespace cuop::memory
