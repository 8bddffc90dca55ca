// Addresses for the buffers of a BLAS library in a process that has few of them (ulimit -v).
#pragma once

namespace cuop::backend::blas {

/// Whether the process's addresses are limited; a limit that is set after the first call of this is
/// not seen.
bool has_limited_addresses();

/// Stands around each call of the library, on the thread that makes it. OpenBLAS maps 128 MiB for
/// each thread inside, keeps them for later calls, and asks again without end when the system has
/// none. So, where addresses are limited, threads for which there is no room wait until another one
/// leaves; MemoryError when there is none for the only one.
class BufferRoom {
 public:
  BufferRoom() : is_counted_(has_limited_addresses()) {
    if (is_counted_) enter();
  }
  ~BufferRoom() {
    if (is_counted_) leave();
  }
  BufferRoom(const BufferRoom&) = delete;
  BufferRoom& operator=(const BufferRoom&) = delete;

 private:
  static void enter();
  static void leave();

  const bool is_counted_;
};

}  // namespace cuop::backend::blas
