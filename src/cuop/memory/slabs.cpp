#include "cuop/memory/slabs.h"

#include <algorithm>

namespace cuop::memory {

namespace {

uintptr_t page_of(const void* data) {
  return reinterpret_cast<uintptr_t>(data) / static_cast<uintptr_t>(Slabs::kPage);
}

}  // namespace

int64_t Slabs::slab_bytes(int size_class) const {
  // At least eight blocks, and not so small that the table of pages grows.
  return std::max(4 * kPage, round_up(8 * classes_.bytes(size_class), kPage));
}

void Slabs::add(Block* block, int size_class) {
  auto slab = std::make_unique<Slab>();
  slab->block = block;
  slab->size_class = size_class;
  slab->total = static_cast<int>(block->bytes / classes_.bytes(size_class));
  slab->idle.resize(static_cast<size_t>(slab->total));
  for (int i = 0; i < slab->total; ++i) {  // the lowest address is taken first
    slab->idle[static_cast<size_t>(i)] = static_cast<uint16_t>(slab->total - 1 - i);
  }
  for (std::byte* page = block->address; page < block->end(); page += kPage) {
    pages_[page_of(page)] = slab.get();
  }
  idle_bytes_ += slab->total * classes_.bytes(size_class);
  enlist(slab.get());
  slabs_.emplace(slab.get(), std::move(slab));
}

int Slabs::take(int size_class, void* stream, void** out, int count) {
  const int64_t bytes = classes_.bytes(size_class);
  Lists& of_class = lists(size_class, stream);
  int taken = 0;
  for (; taken < count && !of_class.strays.empty(); ++taken) {
    out[taken] = of_class.strays.back();
    of_class.strays.pop_back();
  }
  while (taken < count && !of_class.partial.empty()) {
    Slab* slab = of_class.partial.back();
    while (taken < count && !slab->idle.empty()) {
      out[taken++] = slab->block->address + bytes * slab->idle.back();
      slab->idle.pop_back();
    }
    if (slab->idle.empty()) delist(slab);
  }
  idle_bytes_ -= taken * bytes;
  taken_bytes_ += taken * bytes;
  return taken;
}

Block* Slabs::give(void* data, void* stream) {
  Slab* slab = slab_of(data);
  const int64_t bytes = classes_.bytes(slab->size_class);
  idle_bytes_ += bytes;
  taken_bytes_ -= bytes;
  if (stream != slab->block->stream) {
    lists(slab->size_class, stream).strays.push_back(data);
    return nullptr;
  }
  const int64_t offset = static_cast<std::byte*>(data) - slab->block->address;
  slab->idle.push_back(static_cast<uint16_t>(offset / bytes));
  if (slab->position < 0) enlist(slab);
  const bool is_empty = static_cast<int>(slab->idle.size()) == slab->total;
  const bool has_other = lists(slab->size_class, stream).partial.size() > 1;
  return is_empty && has_other ? remove(slab) : nullptr;
}

bool Slabs::has_block(const void* data) const {
  const Slab* slab = slab_of(data);
  if (slab == nullptr) return false;
  const int64_t offset = static_cast<const std::byte*>(data) - slab->block->address;
  const int64_t bytes = classes_.bytes(slab->size_class);
  return offset % bytes == 0 && offset < slab->total * bytes;
}

std::vector<Slabs::Stray> Slabs::take_strays() {
  std::vector<Stray> result;
  for (auto& [stream, classes] : lists_) {
    for (Lists& of_class : classes) {
      for (void* data : of_class.strays) {
        result.push_back({data, stream});
        const int64_t bytes = classes_.bytes(slab_of(data)->size_class);
        idle_bytes_ -= bytes;
        taken_bytes_ += bytes;
      }
      of_class.strays.clear();
    }
  }
  return result;
}

std::vector<Block*> Slabs::take_empty() {
  std::vector<Slab*> empty;
  for (const auto& [slab, owner] : slabs_) {
    if (static_cast<int>(slab->idle.size()) == slab->total) empty.push_back(slab);
  }
  std::vector<Block*> result;
  for (Slab* slab : empty) result.push_back(remove(slab));
  return result;
}

int64_t Slabs::largest_idle() const {
  int64_t largest = 0;
  for (const auto& [stream, classes] : lists_) {
    for (size_t i = 0; i < classes.size(); ++i) {
      const bool is_idle = !classes[i].partial.empty() || !classes[i].strays.empty();
      if (is_idle) largest = std::max(largest, classes_.bytes(static_cast<int>(i)));
    }
  }
  return largest;
}

Slabs::Slab* Slabs::slab_of(const void* data) const {
  const auto entry = pages_.find(page_of(data));
  return entry == pages_.end() ? nullptr : entry->second;
}

Slabs::Lists& Slabs::lists(int size_class, void* stream) {
  auto& classes = lists_[stream];
  if (classes.empty()) classes.resize(static_cast<size_t>(classes_.count()));
  return classes[static_cast<size_t>(size_class)];
}

void Slabs::enlist(Slab* slab) {
  auto& partial = lists(slab->size_class, slab->block->stream).partial;
  slab->position = static_cast<int>(partial.size());
  partial.push_back(slab);
}

void Slabs::delist(Slab* slab) {
  auto& partial = lists(slab->size_class, slab->block->stream).partial;
  Slab* last = partial.back();
  partial[static_cast<size_t>(slab->position)] = last;
  last->position = slab->position;
  partial.pop_back();
  slab->position = -1;
}

Block* Slabs::remove(Slab* slab) {
  Block* block = slab->block;
  delist(slab);
  idle_bytes_ -= slab->total * classes_.bytes(slab->size_class);
  for (std::byte* page = block->address; page < block->end(); page += kPage) {
    pages_.erase(page_of(page));
  }
  slabs_.erase(slab);
  return block;
}

}  // namespace cuop::memory
