#include "cuop/executor/box_table.h"

#include <utility>

namespace cuop::executor {

int64_t BoxTable::bytes(BoxTableSize size) {
  const auto rows = static_cast<int64_t>(size.slots) * size.ranks;
  return size.ranks * static_cast<int64_t>(sizeof(Rank)) + rows * static_cast<int64_t>(sizeof(Row));
}

BoxTable::BoxTable(std::shared_ptr<memory::SharedMemory> memory, BoxTableSize size)
    : memory_(std::move(memory)), size_(size) {}

BoxTable::Rank& BoxTable::of(int rank) const { return static_cast<Rank*>(memory_->data())[rank]; }

BoxTable::Row& BoxTable::row(int rank, size_t slot) const {
  auto* const rows = reinterpret_cast<Row*>(&of(size_.ranks));
  return rows[static_cast<size_t>(rank) * size_.slots + slot];
}

void BoxTable::offer(int rank, size_t slot, const Box& box, size_t pieces) {
  withdraw(rank, slot);
  Row& mine = row(rank, slot);
  mine.dims.store(box.ndim());
  mine.pieces.store(static_cast<int64_t>(pieces));
  for (int dim = 0; dim < box.ndim(); ++dim) {
    mine.low[static_cast<size_t>(dim)].store(box.low[dim]);
    mine.high[static_cast<size_t>(dim)].store(box.high[dim]);
  }
  for (size_t i = 0; i < pieces; ++i) mine.states[i].store(State::kAbsent);
  mine.version.fetch_add(1);
  of(rank).moves.fetch_add(1);
}

void BoxTable::withdraw(int rank, size_t slot) {
  Row& mine = row(rank, slot);
  if (mine.version.load() % 2 == 0) return;
  mine.version.fetch_add(1);
}

void BoxTable::set(int rank, size_t slot, size_t piece, State state) {
  row(rank, slot).states[piece].store(state);
  of(rank).moves.fetch_add(1);
}

std::optional<BoxTable::Found> BoxTable::find(int rank, size_t slot, const Box& box, size_t pieces,
                                              size_t piece) const {
  const Row& its = row(rank, slot);
  const uint64_t version = its.version.load();
  if (version % 2 == 0 || its.dims.load() != box.ndim()) return std::nullopt;
  if (its.pieces.load() != static_cast<int64_t>(pieces)) return std::nullopt;
  for (int dim = 0; dim < box.ndim(); ++dim) {
    const auto i = static_cast<size_t>(dim);
    const Interval interval{its.low[i].load(), its.high[i].load()};
    if (interval != box.interval(dim)) return std::nullopt;
  }
  const State state = its.states[piece].load();
  if (its.version.load() != version) return std::nullopt;
  return Found{state, version};
}

uint64_t BoxTable::version(int rank, size_t slot) const { return row(rank, slot).version.load(); }

}  // namespace cuop::executor
