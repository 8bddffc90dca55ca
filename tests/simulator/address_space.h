// The memory of the simulated devices. All of it lies in one range of host addresses that nobody
// can touch, except where memory is; a table says which devices reach what, to the byte. Freed
// addresses are not given out again before the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuop/backend/cuda/driver_types.h"

namespace cuop::simulator {

using backend::cuda::DevicePointer;
using backend::cuda::Result;

inline constexpr int kMaxSimulated = 8;

/// Memory that is somewhere; its pages go back to the host with it. What another process imported
/// holds zeros from then on, where that of a real device stays: nobody may count on either.
class Physical {
 public:
  Physical(int device, size_t bytes, bool is_shareable = false);
  ~Physical();
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;

  /// A file that stands for the memory in any process; -1 when it is not shareable or the system
  /// gives none.
  int share() const;
  /// What such a file stands for, of this process or another; null for any other file. The file
  /// stays the caller's.
  static std::shared_ptr<const Physical> import(int file);

  int device() const { return device_; }
  size_t bytes() const { return bytes_; }
  /// Makes the bytes appear at an address.
  bool show_at(DevicePointer address) const;

 private:
  struct Header;
  Physical() = default;

  int device_ = -1;  ///< whose memory it takes; -1: the host's
  size_t bytes_ = 0;
  int64_t offset_ = 0;
  bool is_shareable_ = false;  ///< a page before the memory says what it is
  int imported_ = -1;          ///< the file of another process
};

/// What lies at a range of addresses.
struct Block {
  DevicePointer begin = 0;
  size_t bytes = 0;
  bool is_host = false;    ///< page-locked
  bool is_mapped = false;  ///< by mem_map into reserved addresses
  bool is_pooled = false;  ///< from the device's pool, which is opened to others as a whole
  int device = 0;          ///< whose memory it is, or with whose context it was page-locked
};

class AddressSpace {
 public:
  static AddressSpace& instance();

  /// Addresses alone. 0 when there are none left.
  DevicePointer reserve(size_t bytes, size_t alignment);
  Result unreserve(DevicePointer address, size_t bytes);
  Result map(DevicePointer address, std::shared_ptr<const Physical> memory);
  Result unmap(DevicePointer address, size_t bytes);
  /// Sets which devices reach a mapped range: device i with bit i.
  Result set_reach(DevicePointer address, size_t bytes, int device, bool is_reached);

  /// Memory with addresses of its own, reached by the devices of the mask.
  DevicePointer allocate(size_t bytes, int device, unsigned reached_by, bool is_host,
                         bool is_pooled = false);
  Result free(DevicePointer address, bool is_host);
  /// A device is let into what another allocated, in its pool or outside.
  void add_reach(int owner, int device, bool is_pooled);

  /// The memory that is mapped there; null when none is.
  std::shared_ptr<const Physical> mapped_at(DevicePointer address) const;
  /// The block that holds an address. Addresses that were only reserved have none.
  std::optional<Block> find(DevicePointer address) const;
  bool is_within(DevicePointer address) const { return address - base_ < kBytes; }
  /// Whether all of a range is there and reached by the device.
  bool is_reached(DevicePointer address, size_t bytes, int device) const;

  void add_registered(const void* data, size_t bytes);
  bool remove_registered(const void* data);
  bool is_registered(const void* data, size_t bytes) const;
  /// Where what holds the address begins, and its bytes; 0 and 0 where nothing is registered.
  std::pair<uintptr_t, size_t> registered_at(DevicePointer address) const;

  DevicePointer base() const { return base_; }
  static constexpr size_t kBytes = size_t{1} << 40;
  const unsigned char* reach() const { return reach_; }
  const unsigned short* present() const { return present_; }

 private:
  AddressSpace();
  struct Entry {
    Block block;
    std::shared_ptr<const Physical> memory;
  };
  struct Reservation {
    size_t bytes;
  };

  DevicePointer find_gap(size_t bytes, size_t alignment) const;
  void mark(DevicePointer address, size_t bytes, unsigned char reached_by);
  void set_present(DevicePointer address, size_t bytes);
  void hide(DevicePointer address, size_t bytes);

  mutable std::mutex mutex_;
  DevicePointer base_ = 0, next_ = 0;
  // Of every kReachableGranule bytes.
  unsigned char* reach_ = nullptr;     ///< which devices reach them
  unsigned short* present_ = nullptr;  ///< how many of them, from the first, were allocated
  std::map<DevicePointer, Reservation> reserved_;
  std::map<DevicePointer, Entry> blocks_;
  std::map<uintptr_t, size_t> registered_;
};

/// What a device has and how much of it is taken.
struct Budget {
  size_t total = 0, used = 0;
};
Budget budget_of(int device);
/// Whether so much more can be had; memory is counted by Physical.
bool has_room(int device, size_t bytes);
void set_total(int device, size_t bytes);

}  // namespace cuop::simulator
