#include "cuop/dist/comm/shared_ring.h"

#include "cuop/core/divide_up.h"

namespace cuop::dist {
namespace {

constexpr size_t kLine = 64;  // what one end writes must not lie where the other one looks

}  // namespace

struct SharedRing::Ends {
  alignas(kLine) std::atomic<int64_t> filled;
  alignas(kLine) std::atomic<int64_t> emptied;
};
struct alignas(kLine) SharedRing::Slot {
  SlotNote note;
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

int64_t SharedRing::memory_bytes(int64_t slot_bytes) {
  const auto slot = static_cast<int64_t>(sizeof(Slot)) + round_up(slot_bytes, int64_t{kLine});
  return static_cast<int64_t>(sizeof(Ends)) + kSlots * slot;
}

SharedRing::SharedRing(void* memory, int64_t slot_bytes)
    : ends_(*static_cast<Ends*>(memory)),
      slots_(static_cast<std::byte*>(memory) + sizeof(Ends)),
      slot_bytes_(slot_bytes) {}

SharedRing::Slot& SharedRing::slot(int64_t number) const {
  const auto step = static_cast<int64_t>(sizeof(Slot)) + round_up(slot_bytes_, int64_t{kLine});
  return *reinterpret_cast<Slot*>(slots_ + number % kSlots * step);
}

std::byte* SharedRing::free_slot() {
  if (done_ - seen_ == kSlots) seen_ = ends_.emptied.load(std::memory_order_acquire);
  if (done_ - seen_ == kSlots) return nullptr;
  return reinterpret_cast<std::byte*>(&slot(done_) + 1);
}

void SharedRing::fill(const SlotNote& note) {
  slot(done_).note = note;
  ends_.filled.store(++done_, std::memory_order_release);
}

std::byte* SharedRing::filled_slot() {
  if (done_ == seen_) seen_ = ends_.filled.load(std::memory_order_acquire);
  if (done_ == seen_) return nullptr;
  return reinterpret_cast<std::byte*>(&slot(done_) + 1);
}

SlotNote SharedRing::note() const { return slot(done_).note; }

void SharedRing::empty() { ends_.emptied.store(++done_, std::memory_order_release); }

}  // namespace cuop::dist
