#include "tests/simulator/address_space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "tests/simulator/kernel_interface.h"

namespace cuop::simulator {

namespace {

constexpr size_t kPage = 4096;
/// Fresh memory holds this, NaN in every float, so that nobody takes it for zeros; of large blocks
/// the beginning does.
constexpr int kFreshByte = 0xff;
constexpr size_t kFreshBytes = size_t{2} << 20;

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "simulated GPU: %s: %s\n", what, std::strerror(errno));
  std::abort();
}

/// A file that is nowhere, in which every piece of memory has a place that is never used again.
int backing() {
  static const int file = [] {
    const int made = memfd_create("simulated GPU", MFD_CLOEXEC);
    if (made < 0 || ftruncate(made, int64_t{1} << 60) != 0) give_up("no memory");
    return made;
  }();
  return file;
}

std::atomic<int64_t> next_offset = 0;
std::array<std::atomic<size_t>, kMaxSimulated> used{}, totals{};

}  // namespace

Budget budget_of(int device) {
  const auto i = static_cast<size_t>(device);
  return {totals[i], used[i]};
}
bool has_room(int device, size_t bytes) {
  const Budget budget = budget_of(device);
  return budget.used <= budget.total && bytes <= budget.total - budget.used;
}
void set_total(int device, size_t bytes) { totals[static_cast<size_t>(device)] = bytes; }

/// The page before shareable memory. The file that stands for it is the backing one, opened again
/// at this place.
struct Physical::Header {
  static constexpr uint64_t kMark = 0x79726f6d656d6d69;
  uint64_t mark = kMark;
  int64_t device = 0;
  uint64_t bytes = 0;
};

Physical::Physical(int device, size_t bytes, bool is_shareable)
    : device_(device), bytes_(rounded_up(bytes, kPage)), is_shareable_(is_shareable) {
  const size_t before = is_shareable ? kPage : 0;
  offset_ =
      next_offset.fetch_add(static_cast<int64_t>(before + bytes_)) + static_cast<int64_t>(before);
  if (is_shareable) {
    const Header header{Header::kMark, device_, bytes_};
    const int64_t at = offset_ - static_cast<int64_t>(kPage);
    if (pwrite(backing(), &header, sizeof header, at) != sizeof header) give_up("no memory");
  }
  static const std::vector<char> fresh(kFreshBytes, static_cast<char>(kFreshByte));
  const size_t filled = std::min(bytes_, kFreshBytes);
  if (pwrite(backing(), fresh.data(), filled, offset_) != static_cast<ssize_t>(filled)) {
    give_up("no memory");
  }
  if (device_ >= 0) used[static_cast<size_t>(device_)] += bytes_;
}

Physical::~Physical() {
  if (imported_ >= 0) return;
  if (device_ >= 0) used[static_cast<size_t>(device_)] -= bytes_;
  const int64_t before = is_shareable_ ? static_cast<int64_t>(kPage) : 0;
  fallocate(backing(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_ - before,
            static_cast<int64_t>(bytes_) + before);
}

int Physical::share() const {
  if (!is_shareable_) return -1;
  const std::string own = "/proc/self/fd/" + std::to_string(backing());
  const int file = open(own.c_str(), O_RDWR | O_CLOEXEC);
  if (file >= 0) lseek(file, offset_ - static_cast<int64_t>(kPage), SEEK_SET);
  return file;
}

namespace {

/// The same file, open as long as this process: one for all memory of a process.
int kept_file(int file) {
  static std::mutex mutex;
  static auto* const kept = new std::map<std::pair<dev_t, ino_t>, int>;
  struct stat state {};
  if (fstat(file, &state) != 0) throw std::bad_alloc();
  const std::lock_guard lock(mutex);
  const auto [known, is_new] = kept->try_emplace({state.st_dev, state.st_ino}, -1);
  if (is_new) known->second = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (known->second < 0) throw std::bad_alloc();
  return known->second;
}

}  // namespace

std::shared_ptr<const Physical> Physical::import(int file) {
  const int64_t at = lseek(file, 0, SEEK_CUR);
  Header header;
  if (at < 0 || pread(file, &header, sizeof header, at) != sizeof header) return nullptr;
  if (header.mark != Header::kMark) return nullptr;
  const std::shared_ptr<Physical> made(new Physical);
  made->imported_ = kept_file(file);
  made->device_ = static_cast<int>(header.device);
  made->bytes_ = header.bytes;
  made->offset_ = at + static_cast<int64_t>(kPage);
  return made;
}

bool Physical::show_at(DevicePointer address) const {
  void* at = mmap(reinterpret_cast<void*>(address), bytes_, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_FIXED, imported_ >= 0 ? imported_ : backing(), offset_);
  return at != MAP_FAILED;
}

AddressSpace& AddressSpace::instance() {
  static auto* space = new AddressSpace;  // outlives every user
  return *space;
}

AddressSpace::AddressSpace() {
  const auto reserve_range = [](size_t bytes, int protection) {
    void* made =
        mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) give_up("no addresses");
    return made;
  };
  constexpr size_t kLargestPage = size_t{1} << 30;
  const auto raw = reinterpret_cast<uintptr_t>(reserve_range(kBytes + kLargestPage, PROT_NONE));
  base_ = next_ = rounded_up(raw, kLargestPage);
  reach_ = static_cast<unsigned char*>(
      reserve_range(kBytes / kReachableGranule, PROT_READ | PROT_WRITE));
  present_ = static_cast<unsigned short*>(
      reserve_range(kBytes / kReachableGranule * sizeof(unsigned short), PROT_READ | PROT_WRITE));
}

DevicePointer AddressSpace::find_gap(size_t bytes, size_t alignment) const {
  // Past what was given out last; after the end once more from the beginning.
  for (const DevicePointer start : {next_, base_}) {
    DevicePointer at = rounded_up(start, alignment);
    auto after = reserved_.lower_bound(at);
    if (after != reserved_.begin()) {
      const auto& [begin, before] = *std::prev(after);
      at = std::max(at, rounded_up(begin + before.bytes, alignment));
    }
    for (; after != reserved_.end() && after->first < at + bytes; ++after) {
      at = rounded_up(after->first + after->second.bytes, alignment);
    }
    if (at + bytes <= base_ + kBytes) return at;
  }
  return 0;
}

DevicePointer AddressSpace::reserve(size_t bytes, size_t alignment) {
  const std::lock_guard lock(mutex_);
  bytes = rounded_up(bytes, kPage);
  if (bytes == 0 || bytes > kBytes) return 0;
  const DevicePointer at = find_gap(bytes, std::max(alignment, kPage));
  if (at == 0) return 0;
  next_ = at + bytes;
  reserved_.emplace(at, Reservation{bytes});
  return at;
}

Result AddressSpace::unreserve(DevicePointer address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reserved_.find(address);
  if (found == reserved_.end() || found->second.bytes != rounded_up(bytes, kPage)) {
    return Result::kInvalidValue;
  }
  const auto inside = blocks_.lower_bound(address);
  if (inside != blocks_.end() && inside->first < address + bytes) return Result::kInvalidValue;
  reserved_.erase(found);
  return Result::kSuccess;
}

Result AddressSpace::map(DevicePointer address, std::shared_ptr<const Physical> memory) {
  const std::lock_guard lock(mutex_);
  const size_t bytes = memory->bytes();
  auto reservation = reserved_.upper_bound(address);
  if (reservation == reserved_.begin()) return Result::kInvalidValue;
  --reservation;
  if (address + bytes > reservation->first + reservation->second.bytes) {
    return Result::kInvalidValue;
  }
  const auto after = blocks_.lower_bound(address);
  if (after != blocks_.end() && after->first < address + bytes) return Result::kInvalidValue;
  if (after != blocks_.begin()) {
    const Block& before = std::prev(after)->second.block;
    if (before.begin + before.bytes > address) return Result::kInvalidValue;
  }
  if (!memory->show_at(address)) return Result::kOutOfMemory;
  const int device = memory->device();
  set_present(address, bytes);
  blocks_[address] = {{address, bytes, false, true, false, device}, std::move(memory)};
  return Result::kSuccess;
}

void AddressSpace::mark(DevicePointer address, size_t bytes, unsigned char reached_by) {
  std::memset(reach_ + (address - base_) / kReachableGranule, reached_by,
              rounded_up(bytes, kReachableGranule) / kReachableGranule);
}

void AddressSpace::set_present(DevicePointer address, size_t bytes) {
  unsigned short* const first = present_ + (address - base_) / kReachableGranule;
  const size_t whole = bytes / kReachableGranule, rest = bytes % kReachableGranule;
  std::fill_n(first, whole, static_cast<unsigned short>(kReachableGranule));
  if (rest > 0) first[whole] = static_cast<unsigned short>(rest);
}

void AddressSpace::hide(DevicePointer address, size_t bytes) {
  mark(address, bytes, 0);
  void* at = mmap(reinterpret_cast<void*>(address), rounded_up(bytes, kPage), PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (at == MAP_FAILED) give_up("freed memory cannot be hidden");
}

Result AddressSpace::unmap(DevicePointer address, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || !found->second.block.is_mapped ||
      found->second.block.bytes != bytes) {
    return Result::kInvalidValue;
  }
  hide(address, bytes);
  blocks_.erase(found);
  return Result::kSuccess;
}

Result AddressSpace::set_reach(DevicePointer address, size_t bytes, int device, bool is_reached) {
  const std::lock_guard lock(mutex_);
  DevicePointer at = address;
  for (auto block = blocks_.find(address); at < address + bytes; ++block) {
    if (block == blocks_.end() || block->first != at) return Result::kInvalidValue;
    at += block->second.block.bytes;
  }
  const auto bit = static_cast<unsigned char>(1u << device);
  unsigned char* const entries = reach_ + (address - base_) / kReachableGranule;
  for (size_t i = 0; i < bytes / kReachableGranule; ++i) {
    entries[i] = static_cast<unsigned char>(is_reached ? entries[i] | bit : entries[i] & ~bit);
  }
  return Result::kSuccess;
}

DevicePointer AddressSpace::allocate(size_t bytes, int device, unsigned reached_by, bool is_host,
                                     bool is_pooled) {
  auto memory = std::make_shared<const Physical>(is_host ? -1 : device, bytes);
  const DevicePointer address = reserve(memory->bytes(), kPage);
  if (address == 0) return 0;
  const std::lock_guard lock(mutex_);
  if (!memory->show_at(address)) return 0;
  mark(address, bytes, static_cast<unsigned char>(reached_by));
  set_present(address, bytes);
  blocks_[address] = {{address, bytes, is_host, false, is_pooled, device}, std::move(memory)};
  return address;
}

Result AddressSpace::free(DevicePointer address, bool is_host) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end() || found->second.block.is_mapped ||
      found->second.block.is_host != is_host) {
    return Result::kInvalidValue;
  }
  hide(address, found->second.block.bytes);
  blocks_.erase(found);
  reserved_.erase(address);
  return Result::kSuccess;
}

void AddressSpace::add_reach(int owner, int device, bool is_pooled) {
  const std::lock_guard lock(mutex_);
  const auto bit = static_cast<unsigned char>(1u << device);
  for (const auto& [address, entry] : blocks_) {
    const Block& block = entry.block;
    if (block.is_mapped || block.is_pooled != is_pooled || block.device != owner) continue;
    unsigned char* const entries = reach_ + (address - base_) / kReachableGranule;
    const size_t count = rounded_up(block.bytes, kReachableGranule) / kReachableGranule;
    for (size_t i = 0; i < count; ++i) entries[i] |= bit;
  }
}

std::shared_ptr<const Physical> AddressSpace::mapped_at(DevicePointer address) const {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return nullptr;
  const Entry& entry = std::prev(after)->second;
  const bool is_there = entry.block.is_mapped && address - entry.block.begin < entry.block.bytes;
  return is_there ? entry.memory : nullptr;
}

std::optional<Block> AddressSpace::find(DevicePointer address) const {
  const std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (after == blocks_.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second.block;
  if (address - block.begin >= block.bytes) return std::nullopt;
  return block;
}

bool AddressSpace::is_reached(DevicePointer address, size_t bytes, int device) const {
  if (bytes == 0) return true;
  if (!is_within(address) || !is_within(address + bytes - 1)) return false;
  const std::lock_guard lock(mutex_);
  const size_t first = (address - base_) / kReachableGranule;
  const size_t last = (address + bytes - 1 - base_) / kReachableGranule;
  for (size_t i = first; i <= last; ++i) {
    if ((reach_[i] >> device & 1) == 0) return false;
    if (i < last && present_[i] < kReachableGranule) return false;
  }
  return (address + bytes - 1 - base_) % kReachableGranule < present_[last];
}

void AddressSpace::add_registered(const void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  registered_[reinterpret_cast<uintptr_t>(data)] = bytes;
}

bool AddressSpace::remove_registered(const void* data) {
  const std::lock_guard lock(mutex_);
  return registered_.erase(reinterpret_cast<uintptr_t>(data)) == 1;
}

bool AddressSpace::is_registered(const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(data);
  const auto [begin, size] = registered_at(address);
  return size > 0 && bytes <= size - (address - begin);
}

std::pair<uintptr_t, size_t> AddressSpace::registered_at(DevicePointer address) const {
  const std::lock_guard lock(mutex_);
  const auto after = registered_.upper_bound(address);
  if (after == registered_.begin()) return {};
  const auto [begin, size] = *std::prev(after);
  return address - begin < size ? std::pair{begin, size} : std::pair<uintptr_t, size_t>();
}

}  // namespace cuop::simulator
