#include "cuop/executor/process_boxes.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "cuop/backend/cuda/imported_range.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/log.h"
#include "cuop/core/trace.h"
#include "cuop/dist/exec/exchange.h"
#include "cuop/memory/current.h"
#include "cuop/ops/create/empty.h"

namespace cuop::executor {
namespace {

using Clock = std::chrono::steady_clock;

/// Bytes as a box.
Tensor box_in(const Tensor& memory, const Box& box, DType dtype) {
  return from_memory(memory.data(), contiguous_layout(box.shape()), dtype, memory.device(),
                     memory.storage(), memory.storage()->is_read_only());
}

/// At the end of the stream's work so far.
std::shared_ptr<backend::Event> new_mark(Stream stream) {
  std::shared_ptr<backend::Event> event = backend::runtime(stream.device).create_event(false);
  event->record(stream);
  return event;
}

std::shared_ptr<memory::SharedMemory> new_memory(int64_t bytes) {
  try {
    return memory::SharedMemory::create(bytes);
  } catch (const MemoryError& error) {
    log(LogLevel::kInfo, "tile inputs are not shared: ", error.what());
    return nullptr;
  }
}

}  // namespace

class ProcessBoxes::Opened final : public SharedBox {
 public:
  Opened(ProcessBoxes& boxes, size_t input, size_t pieces, size_t slot, Part part)
      : SharedBox(std::move(part)),
        boxes_(boxes),
        input_(input),
        pieces_(pieces),
        slot_(slot),
        stream_(current_stream(part_.device)) {}
  ~Opened() override;

  void note_used() override {
    if (is_on_offer()) note_use_of(current_stream(part_.device));
  }

 protected:
  bool is_elsewhere(size_t piece) override {
    note_what_is_there();
    return find_other(piece).has_value();
  }
  bool claim(size_t piece) override {
    if (is_elsewhere(piece)) return false;
    set(piece, State::kComing);
    return true;
  }
  void note_brought(size_t piece) override {
    coming_.push_back({piece, new_mark(stream_)});
    note_what_is_there();
  }
  void await_brought() override {
    if (!coming_.empty()) coming_.back().there->synchronize();
    note_what_is_there();
  }
  bool take(size_t piece, const Box& box) override;
  void finish() override {
    if (is_on_offer()) await_brought();  // for those who wait for it
    is_whole_ = true;
  }

 private:
  struct Coming {
    size_t piece;
    std::shared_ptr<const backend::Event> there;
  };

  bool is_on_offer() const { return slot_ != kNone; }
  void set(size_t piece, State state) {
    if (is_on_offer()) boxes_.table_->set(boxes_.rank_, slot_, piece, state);
  }
  void note_use_of(Stream stream) {
    std::vector<Use>& used = boxes_.slots_[slot_].used;
    const auto known = std::ranges::find(used, stream, &Use::stream);
    if (known != used.end()) return known->end->record(stream);
    used.push_back({stream, new_mark(stream)});
  }
  std::optional<Place> find_other(size_t piece) const {
    return boxes_.find_other(input_, part_, pieces_, piece);
  }
  void note_what_is_there() {
    for (; !coming_.empty() && coming_.front().there->is_done(); coming_.pop_front()) {
      set(coming_.front().piece, State::kThere);
    }
  }
  /// False where the slot was filled anew meanwhile.
  bool copy(const Place& from, const Box& box);

  ProcessBoxes& boxes_;
  size_t input_, pieces_, slot_;
  Stream stream_;
  std::deque<Coming> coming_;  ///< of what this GPU brings
  bool is_whole_ = false;
};

/// A whole box stays on offer until its slot is filled anew.
ProcessBoxes::Opened::~Opened() {
  if (!is_on_offer()) return;
  if (!is_whole_) boxes_.table_->withdraw(boxes_.rank_, slot_);
  try {
    note_use_of(stream_);
    boxes_.slots_[slot_].is_open = false;
  } catch (const Error& error) {  // the GPU is lost: the slot is not used any more
    log(LogLevel::kInfo, "memory of a tile's input is given back: ", error.what());
  }
}

bool ProcessBoxes::Opened::take(size_t piece, const Box& box) {
  const trace::Span span("tile input of another GPU", "executor");
  Waiting waiting;
  while (const std::optional<Place> other = find_other(piece)) {
    if (other->found.state == State::kThere) {
      if (!copy(*other, box)) continue;
      set(piece, State::kThere);
      return true;
    }
    boxes_.wait_for(other->rank, waiting);
    note_what_is_there();
  }
  return false;
}

bool ProcessBoxes::Opened::copy(const Place& from, const Box& box) {
  const Tensor to = view_of(part_, box);
  const Tensor& memory = boxes_.mapped_[static_cast<size_t>(from.rank)][from.slot];
  const Part theirs{box_in(memory, part_.box, to.dtype()), part_.box, part_.device};
  // Of a box without gaps the rows of a piece have none.
  backend::cuda::copy_imported(to.data(), view_of(theirs, box).data(), to.nbytes(), stream_);
  new_mark(stream_)->synchronize();
  if (boxes_.table_->version(from.rank, from.slot) != from.found.version) return false;
  taken_ += to.nbytes();
  return true;
}

ProcessBoxes::ProcessBoxes(dist::Communicator& comm, Device device, std::span<const BoxRoom> rooms)
    : rank_(comm.rank()),
      slots_(rooms.size() * kSlots),
      is_awaited_(static_cast<size_t>(comm.size()), true) {
  const Stream stream = current_stream(device);
  comm.exchanges_tensors(stream);  // by which it is found out who reads whose memory
  if (!comm.maps_gpu_memory()) return;
  try {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const BoxRoom& room = rooms[i / kSlots];
      const bool is_wanted = room.bytes > 0 && (i % kSlots == 0 || room.is_changing);
      if (is_wanted) slots_[i].memory = empty({room.bytes}, DType::kUInt8, device);
    }
  } catch (const MemoryError& error) {
    log(LogLevel::kInfo, "tile inputs are not offered to others: ", error.what());
    slots_.assign(slots_.size(), {});
  }
  connect(comm);
}

ProcessBoxes::~ProcessBoxes() { release_memory(); }

void ProcessBoxes::connect(dist::Communicator& comm) {
  const BoxTableSize size{comm.size(), slots_.size()};
  std::shared_ptr<memory::SharedMemory> shared;
  memory::SharedMemoryName name;
  if (rank_ == 0) shared = new_memory(BoxTable::bytes(size));
  if (shared) name = shared->name();
  comm.broadcast(&name, sizeof name, 0);
  const bool is_given = rank_ != 0 && name.bytes == BoxTable::bytes(size);
  if (is_given) shared = memory::SharedMemory::open(name);
  std::vector<Tensor> mine;
  for (const Slot& slot : slots_) mine.push_back(shared ? slot.memory : Tensor());
  mapped_ = comm.map_memory(mine);
  if (shared) table_ = std::make_unique<BoxTable>(std::move(shared), size);
}

void ProcessBoxes::release_memory() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (table_) table_->withdraw(rank_, i);
    slots_[i] = {};
  }
}

size_t ProcessBoxes::free_slot(size_t input, int64_t bytes) const {
  size_t found = kNone;
  for (size_t i = input * kSlots; table_ && i < (input + 1) * kSlots; ++i) {
    const Slot& slot = slots_[i];
    if (slot.is_open || !slot.memory.is_defined() || slot.memory.nbytes() < bytes) continue;
    if (found == kNone || slot.number < slots_[found].number) found = i;
  }
  return found;
}

std::shared_ptr<SharedBox> ProcessBoxes::open(size_t input, DType dtype, const Box& box,
                                              Device device, size_t pieces) {
  const size_t free = free_slot(input, box.size() * itemsize(dtype));
  if (free == kNone) {
    Part part{empty(box.shape(), dtype, device), box, device};
    return std::make_shared<Opened>(*this, input, pieces, free, std::move(part));
  }
  Slot& slot = slots_[free];
  const Stream stream = current_stream(device);
  memory::record_stream(*slot.memory.storage(), stream);
  for (const Use& use : slot.used) use.end->wait(stream);
  slot.used.clear();
  slot.is_open = true;
  slot.number = ++boxes_;
  table_->offer(rank_, free, box, pieces);
  Part part{box_in(slot.memory, box, dtype), box, device};
  return std::make_shared<Opened>(*this, input, pieces, free, std::move(part));
}

std::optional<ProcessBoxes::Place> ProcessBoxes::find_other(size_t input, const Part& part,
                                                            size_t pieces, size_t piece) const {
  std::optional<Place> coming;
  const auto ranks = static_cast<int>(mapped_.size());
  for (int step = 1; table_ && step < ranks; ++step) {  // each begins with another one
    const int rank = (rank_ + step) % ranks;
    for (size_t slot = input * kSlots; slot < (input + 1) * kSlots; ++slot) {
      const Tensor& memory = mapped_[static_cast<size_t>(rank)][slot];
      if (!memory.is_defined() || memory.nbytes() < part.local.nbytes()) continue;
      const auto found = table_->find(rank, slot, part.box, pieces, piece);
      if (!found) continue;
      if (found->state == State::kThere) return Place{rank, slot, *found};
      const bool is_coming = found->state == State::kComing;
      if (is_coming && is_awaited_[static_cast<size_t>(rank)]) coming = Place{rank, slot, *found};
    }
  }
  return coming;
}

void ProcessBoxes::wait_for(int rank, Waiting& waiting) {
  constexpr auto kLook = std::chrono::microseconds(50);
  constexpr auto kPatience = std::chrono::seconds(2);
  check_interrupt();
  const uint64_t moves = table_->moves(rank);
  const Clock::time_point now = Clock::now();
  if (waiting.rank != rank || waiting.moves != moves) waiting = {rank, moves, now};
  if (now - waiting.since > kPatience) {
    log(LogLevel::kInfo, "tile inputs: rank ", rank, " does not go on; what it was to bring, rank ",
        rank_, " brings");
    is_awaited_[static_cast<size_t>(rank)] = false;
  }
  std::this_thread::sleep_for(kLook);
}

}  // namespace cuop::executor
