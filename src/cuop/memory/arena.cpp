#include "cuop/memory/arena.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cuop::memory {

namespace {

bool alike(const Block& a, const Block& b) {
  if (a.state != b.state) return false;
  return a.state == BlockState::kUnmapped || (a.state == BlockState::kFree && a.stream == b.stream);
}

}  // namespace

void Arena::add_segment(void* range, int64_t bytes, void* stream) {
  const int64_t alignment = options_.can_map ? options_.granule : options_.plain_alignment;
  const auto start = static_cast<int64_t>(reinterpret_cast<uintptr_t>(range));
  const int64_t skipped = round_up(start, alignment) - start;
  const int64_t usable = round_down(bytes - skipped, options_.can_map ? alignment : options_.unit);

  auto record = std::make_unique<SegmentRecord>();
  record->segment = {range, bytes, usable, stream};
  Block like;
  like.address = static_cast<std::byte*>(range) + skipped;
  like.bytes = usable;
  like.state = options_.can_map ? BlockState::kUnmapped : BlockState::kFree;
  like.stream = options_.can_map ? nullptr : stream;
  like.segment = &record->segment;
  record->first = new_block(like);
  add_to_index(record->first);
  segments_.push_back(std::move(record));
}

Block* Arena::take(int64_t bytes, void* stream) {
  const auto list = free_.find(stream);
  if (list == free_.end()) return nullptr;
  Block wanted;
  wanted.bytes = bytes;
  const auto fit = list->second.lower_bound(&wanted);
  if (fit == list->second.end()) return nullptr;
  Block* block = *fit;
  remove_from_index(block);
  if (block->bytes > bytes) add_to_index(cut(block, bytes));
  block->state = BlockState::kLive;
  live_.emplace(block->address, block);
  return block;
}

void Arena::give(Block* block, void* stream) {
  live_.erase(block->address);
  block->state = BlockState::kFree;
  block->stream = stream;
  block->idle_tick = ++tick_;
  settle(block);
}

Block* Arena::find(const void* address) const {
  const auto entry = live_.find(address);
  return entry == live_.end() ? nullptr : entry->second;
}

Arena::Growth Arena::begin_growth(int64_t bytes, void* stream, bool any_segment) {
  Growth best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Block* hole : unmapped_) {
    if (!any_segment && hole->segment->stream != stream) continue;
    Block* before = hole->before;
    const bool extends =
        before != nullptr && before->state == BlockState::kFree && before->stream == stream;
    const int64_t missing = bytes - (extends ? before->bytes : 0);
    const int64_t mapped = round_up(std::max<int64_t>(missing, 1), options_.granule);
    // Smaller holes come first: of equal cost the tightest wins and long ranges stay whole.
    if (mapped > hole->bytes || mapped >= least) continue;
    least = mapped;
    best = {hole, extends ? before : nullptr};
  }
  if (best.range == nullptr) return best;

  remove_from_index(best.range);
  if (best.range->bytes > least) add_to_index(cut(best.range, least));
  best.range->state = BlockState::kInTransit;
  if (best.extended != nullptr) {
    remove_from_index(best.extended);
    best.extended->state = BlockState::kInTransit;
  }
  return best;
}

void Arena::finish_growth(const Growth& growth, bool is_mapped, void* stream) {
  if (growth.extended != nullptr) {
    growth.extended->state = BlockState::kFree;
    settle(growth.extended);
  }
  growth.range->state = is_mapped ? BlockState::kFree : BlockState::kUnmapped;
  growth.range->stream = is_mapped ? stream : nullptr;
  growth.range->idle_tick = ++tick_;
  settle(growth.range);
}

std::vector<Arena::Run> Arena::idle_runs(const StreamFilter& matches) const {
  std::vector<Run> runs;
  for (const auto& record : segments_) {
    bool is_open = false;
    for (Block* block = record->first; block != nullptr; block = block->behind) {
      if (block->state != BlockState::kFree || !matches(block->stream)) {
        is_open = false;
        continue;
      }
      if (!std::exchange(is_open, true)) runs.push_back({block, block, 0});
      runs.back().last = block;
      runs.back().tick = std::max(runs.back().tick, block->idle_tick);
    }
  }
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.tick < b.tick; });
  return runs;
}

std::vector<Arena::Release> Arena::begin_release(const StreamFilter& matches, int64_t most) {
  std::vector<Release> result;
  for (const Run& run : idle_runs(matches)) {
    if (most <= 0) break;
    std::byte* start = run.first->address;
    std::byte* end = run.last->end();
    if (options_.can_map) {
      const auto from = static_cast<int64_t>(reinterpret_cast<uintptr_t>(start));
      const auto to = static_cast<int64_t>(reinterpret_cast<uintptr_t>(end));
      end -= to - round_down(to, options_.granule);
      start += round_up(from, options_.granule) - from;
      if (end - start > most) start = end - round_up(most, options_.granule);
    } else if (end - start != run.first->segment->bytes) {
      continue;
    }
    if (end <= start) continue;
    result.push_back(take_out(run, start, end));
    most -= end - start;
  }
  return result;
}

Arena::Release Arena::take_out(const Run& run, std::byte* start, std::byte* end) {
  Release release;
  for (Block* block = run.first; block != nullptr && block->address < end; block = block->behind) {
    if (block->end() <= start) continue;
    remove_from_index(block);
    if (block->address < start) {
      Block* rest = cut(block, start - block->address);
      add_to_index(block);
      block = rest;
    }
    if (block->end() > end) add_to_index(cut(block, end - block->address));
    block->state = BlockState::kInTransit;
    release.streams.push_back(block->stream);
    if (release.range == nullptr) {
      release.range = block;
    } else {
      block = absorb(release.range, block);
    }
  }
  return release;
}

void Arena::finish_release(Block* block) {
  block->state = BlockState::kUnmapped;
  block->stream = nullptr;
  settle(block);
}

Segment Arena::drop_segment(Block* block) {
  const Segment segment = *block->segment;
  std::erase_if(segments_, [&](const auto& record) { return &record->segment == block->segment; });
  forget(block);
  return segment;
}

Block* Arena::begin_transfer(int64_t bytes, void* stream) {
  Block wanted;
  wanted.bytes = bytes;
  Block* best = nullptr;
  for (const auto& [owner, list] : free_) {
    if (owner == stream) continue;
    const auto fit = list.lower_bound(&wanted);
    if (fit != list.end() && (best == nullptr || BySize{}(*fit, best))) best = *fit;
  }
  if (best == nullptr) return nullptr;
  remove_from_index(best);
  if (best->bytes > bytes) add_to_index(cut(best, bytes));
  best->state = BlockState::kInTransit;
  return best;
}

void Arena::hand_over(Block* block, void* stream) {
  block->state = BlockState::kFree;
  block->stream = stream;
  settle(block);
}

int64_t Arena::largest_free() const {
  int64_t largest = 0;
  for (const auto& [stream, list] : free_) {
    if (!list.empty()) largest = std::max(largest, (*list.rbegin())->bytes);
  }
  return largest;
}

void Arena::for_each(const std::function<void(const Block&)>& visit) const {
  for (const auto& record : segments_) {
    for (const Block* block = record->first; block != nullptr; block = block->behind) visit(*block);
  }
}

std::vector<Segment> Arena::segments() const {
  std::vector<Segment> result;
  for (const auto& record : segments_) result.push_back(record->segment);
  return result;
}

Block* Arena::new_block(const Block& like) {
  if (spare_.empty()) return &blocks_.emplace_back(like);
  Block* block = spare_.back();
  spare_.pop_back();
  *block = like;
  return block;
}

void Arena::forget(Block* block) { spare_.push_back(block); }

Block* Arena::cut(Block* block, int64_t bytes) {
  Block rest = *block;
  rest.address += bytes;
  rest.bytes -= bytes;
  rest.before = block;
  Block* result = new_block(rest);
  if (result->behind != nullptr) result->behind->before = result;
  block->behind = result;
  block->bytes = bytes;
  return result;
}

void Arena::add_to_index(Block* block) {
  if (block->state == BlockState::kUnmapped) {
    unmapped_.insert(block);
    return;
  }
  free_[block->stream].insert(block);
  free_bytes_ += block->bytes;
}

void Arena::remove_from_index(Block* block) {
  if (block->state == BlockState::kUnmapped) {
    unmapped_.erase(block);
    return;
  }
  free_[block->stream].erase(block);
  free_bytes_ -= block->bytes;
}

void Arena::settle(Block* block) {
  if (block->before != nullptr && alike(*block->before, *block)) {
    remove_from_index(block->before);
    block = absorb(block->before, block);
  }
  if (block->behind != nullptr && alike(*block, *block->behind)) {
    remove_from_index(block->behind);
    absorb(block, block->behind);
  }
  add_to_index(block);
}

Block* Arena::absorb(Block* left, Block* right) {
  left->bytes += right->bytes;
  left->idle_tick = std::max(left->idle_tick, right->idle_tick);
  left->behind = right->behind;
  if (right->behind != nullptr) right->behind->before = left;
  forget(right);
  return left;
}

}  // namespace cuop::memory
