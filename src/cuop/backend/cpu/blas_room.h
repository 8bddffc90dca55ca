// Addresses for the buffers of a BLAS library in a process that has few of them (ulimit -v).
#pragma once

#include "cuop/core/noncopyable.h"

namespace cuop::backend::blas {

/// Whether the process's addresses are limited; a limit that is set after the first call of this is
/// not seen.
bool has_limited_addresses();

/// Before such a library is opened, which may take a buffer then: MemoryError when there is no
/// room.
void check_room_to_open();

/// Stands around each call of the library, on the thread that makes it. OpenBLAS maps 128 MiB for
/// each thread inside, keeps them for later calls, and when the system has none asks again without
/// end, or since 0.3.30 ends the process. So, where addresses are limited, threads for which there
/// is no room wait until another one leaves; MemoryError when there is none for the only one.
class BufferRoom : NonCopyable {
 public:
  BufferRoom() : is_counted_(has_limited_addresses()) {
    if (is_counted_) is_new_ = enter();
  }
  ~BufferRoom() {
    if (is_counted_) leave(is_new_);
  }

 private:
  /// Whether the library will take another buffer.
  static bool enter();
  static void leave(bool is_new);

  const bool is_counted_;
  bool is_new_ = false;
};

}  // namespace cuop::backend::blas
