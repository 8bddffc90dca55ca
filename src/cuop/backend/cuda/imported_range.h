// Memory of another process, mapped into this one.
#pragma once

#include <cstdint>
#include <map>

#include "cuop/backend/cuda/mapped_ranges.h"
#include "cuop/core/descriptor.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/stream.h"

namespace cuop::backend::cuda {

/// Addresses as many as a range of the other process has, in which pieces stand at the offsets that
/// they have there, so that what is contiguous there is contiguous here. `device` reaches them,
/// whichever GPU their memory is of; no context of that GPU is made.
class ImportedRange : NonCopyable {
 public:
  /// What offsets and lengths of pieces are multiples of.
  static constexpr int64_t kUnit = int64_t{2} << 20;

  /// MemoryError when there are not so many addresses.
  ImportedRange(Device device, int64_t bytes);
  /// Unmaps all; no work that uses it is in flight.
  ~ImportedRange();

  /// Maps the memory that the file stands for. ExecutionError when the piece lies outside of the
  /// range or across others; the driver's error when the file stands for no memory or for less, or
  /// when the device does not reach it.
  void map(const MappedPiece& piece, const Descriptor& file);
  /// The piece that begins there, if there is one.
  void unmap(int64_t offset) noexcept;

  int64_t bytes() const { return bytes_; }
  bool is_empty() const { return pieces_.empty(); }
  /// Whether all of the bytes are mapped.
  bool covers(int64_t offset, int64_t bytes) const;
  void* at(int64_t offset) const { return static_cast<char*>(base_) + offset; }

 private:
  Device device_;
  int64_t bytes_ = 0;
  void* base_ = nullptr;
  std::map<int64_t, MappedPiece> pieces_;
};

/// Copies between the memory of `stream`'s device and imported memory, as work of the stream.
void copy_imported(void* dst, const void* src, int64_t bytes, Stream stream);

}  // namespace cuop::backend::cuda
