#include "cuop/backend/cuda/imported_range.h"

#include <iterator>

#include "cuop/backend/cuda/context.h"
#include "cuop/backend/cuda/cuda_runtime.h"
#include "cuop/backend/cuda/operation.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop::backend::cuda {

ImportedRange::ImportedRange(Device device, int64_t bytes) : device_(device), bytes_(bytes) {
  if (bytes <= 0 || bytes % kUnit != 0) {
    throw ExecutionError(cat("imported memory: a range has ", bytes,
                             " bytes, which is no positive multiple of ", kUnit));
  }
  const ContextScope scope(device_);
  DevicePointer range = 0;
  check(driver().mem_address_reserve(&range, static_cast<size_t>(bytes), size_t{kUnit}, 0, 0),
        "imported memory: reserving ", bytes, " bytes of addresses");
  base_ = reinterpret_cast<void*>(range);
}

ImportedRange::~ImportedRange() {
  while (!pieces_.empty()) unmap(pieces_.begin()->first);
  try {
    const ContextScope scope(device_);
    driver().mem_address_free(device_pointer(base_), static_cast<size_t>(bytes_));
  } catch (const Error&) {
    // The process is ending or its device is lost; the driver takes the addresses back itself.
  }
}

void ImportedRange::map(const MappedPiece& piece, const Descriptor& file) {
  const auto [number, offset, bytes] = piece;
  if (offset < 0 || bytes <= 0 || offset % kUnit != 0 || bytes % kUnit != 0 || bytes > bytes_ ||
      offset > bytes_ - bytes) {
    throw ExecutionError(cat("imported memory: a piece of ", bytes, " bytes at ", offset,
                             " does not lie in a range of ", bytes_, " bytes in steps of ", kUnit));
  }
  const auto after = pieces_.lower_bound(offset);
  const bool is_before_next = after == pieces_.end() || after->first >= offset + bytes;
  const bool is_behind_last = after == pieces_.begin() ||
                              std::prev(after)->first + std::prev(after)->second.bytes <= offset;
  if (!is_before_next || !is_behind_last) {
    throw ExecutionError(
        cat("imported memory: a piece of ", bytes, " bytes at ", offset, " lies across others"));
  }
  const ContextScope scope(device_);
  const Driver& d = driver();
  MemoryHandle handle = 0;
  auto* const given = reinterpret_cast<void*>(static_cast<intptr_t>(file.get()));
  check(d.mem_import_from_shareable_handle(&handle, given, ShareableHandle::kPosixFileDescriptor),
        "imported memory: ", bytes, " bytes of another process");
  const DevicePointer address = device_pointer(at(offset));
  const auto size = static_cast<size_t>(bytes);
  const Result mapped = d.mem_map(address, size, 0, handle, 0);
  d.mem_release(handle);  // lives as long as it is mapped
  check(mapped, "imported memory: mapping ", bytes, " bytes of another process");
  pieces_[offset] = piece;
  const AccessDescription access{{LocationType::kDevice, cuda_runtime(device_).id()},
                                 AccessFlags::kReadWrite};
  const Result opened = d.mem_set_access(address, size, &access, 1);
  if (opened == Result::kSuccess) return;
  unmap(offset);
  raise(opened, cat("imported memory: opening ", bytes, " bytes of another process to ", device_));
}

void ImportedRange::unmap(int64_t offset) noexcept {
  const auto piece = pieces_.find(offset);
  if (piece == pieces_.end()) return;
  const int64_t bytes = piece->second.bytes;
  pieces_.erase(piece);
  try {
    const ContextScope scope(device_);
    const Result result =
        driver().mem_unmap(device_pointer(at(offset)), static_cast<size_t>(bytes));
    if (result == Result::kSuccess || result == Result::kDeinitialized) return;
    log(LogLevel::kInfo, "imported memory: unmapping on ", device_, ": ", describe(result));
  } catch (const Error& error) {
    log(LogLevel::kInfo, "imported memory: unmapping on ", device_, ": ", error.what());
  }
}

bool ImportedRange::covers(int64_t offset, int64_t bytes) const {
  if (offset < 0 || bytes < 0 || bytes > bytes_ || offset > bytes_ - bytes) return false;
  auto piece = pieces_.upper_bound(offset);
  if (piece != pieces_.begin()) --piece;
  for (int64_t at = offset; at < offset + bytes; ++piece) {
    if (piece == pieces_.end() || piece->first > at) return false;
    if (piece->first + piece->second.bytes <= at) return false;
    at = piece->first + piece->second.bytes;
  }
  return true;
}

void copy_imported(void* dst, const void* src, int64_t bytes, Stream stream) {
  if (bytes <= 0) return;
  const ContextScope scope(stream.device);
  Operation operation("copy", stream);
  // By address: the copy that names contexts would make one on the other GPU.
  check(driver().memcpy_async(device_pointer(dst), device_pointer(src), static_cast<size_t>(bytes),
                              handle_of(stream)),
        "copy: ", bytes, " bytes from another process to ", stream.device);
  operation.started();
}

}  // namespace cuop::backend::cuda
