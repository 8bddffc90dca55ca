// An exchange of tensors between ranks that read each other's GPU memory:
//
//   sender    its stream says "ready"; where each tensor lies -> receiver
//   receiver  maps what is new of that memory; its stream waits for "ready", copies, says "read"
//   sender    its stream waits for "read"
//
// Where streams do not wait for each other (fabric_flags.h), the processes wait for them and say
// both by messages. What a receiver cannot read comes by NCCL, or as bytes behind the message.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "cuop/backend/cuda/imported_range.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/fabric.h"
#include "cuop/dist/comm/fabric_messages.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/memory/current.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/copy/copy_kernels.h"
#include "cuop/ops/create/empty.h"

namespace cuop::dist {

using fabric::ExchangeNote;
using fabric::TensorNote;
using fabric::Way;

namespace fabric {

/// An ExchangeNote and its TensorNotes, as bytes.
class ExchangeMessage {
 public:
  explicit ExchangeMessage(size_t tensors)
      : bytes_(sizeof(ExchangeNote) + tensors * sizeof(TensorNote)) {}
  char* data() { return bytes_.data(); }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }

  ExchangeNote head() const { return at<ExchangeNote>(0); }
  TensorNote tensor(size_t i) const { return at<TensorNote>(place(i)); }
  void set_head(const ExchangeNote& note) { put(0, note); }
  void set_tensor(size_t i, const TensorNote& note) { put(place(i), note); }

 private:
  static size_t place(size_t i) { return sizeof(ExchangeNote) + i * sizeof(TensorNote); }
  template <class Note>
  Note at(size_t offset) const {
    Note note;
    std::memcpy(&note, bytes_.data() + offset, sizeof note);
    return note;
  }
  template <class Note>
  void put(size_t offset, const Note& note) {
    std::memcpy(bytes_.data() + offset, &note, sizeof note);
  }

  std::vector<char> bytes_;
};

}  // namespace fabric

/// What one rank gets from this one, or this one from it.
struct Fabric::Side {
  Side(int peer, std::vector<Tensor> all)
      : rank(peer), tensors(std::move(all)), message(tensors.size()) {}

  static std::vector<Side> all(std::span<const Patch> patches, int rank, int size) {
    std::vector<Side> sides;
    for (int step = 1; step < size; ++step) {  // each rank begins with another one
      const int peer = (rank + step) % size;
      std::vector<Tensor> tensors = tensors_of(patches, peer);
      if (!tensors.empty()) sides.emplace_back(peer, std::move(tensors));
    }
    return sides;
  }

  bool goes_by(Way way) const { return message.head().way == way; }
  bool is_read_there() const { return goes_by(Way::kPulled) || goes_by(Way::kOrdered); }
  static bool any(const std::vector<Side>& sides, Way way) {
    return std::ranges::any_of(sides, [way](const Side& each) { return each.goes_by(way); });
  }
  /// Whether some are not of this way.
  static bool any_but(const std::vector<Side>& sides, Way way) {
    return !std::ranges::all_of(sides, [way](const Side& each) { return each.goes_by(way); });
  }

  int rank;
  std::vector<Tensor> tensors;
  fabric::ExchangeMessage message;
  std::optional<PackedTensors> packed;  ///< of what goes as bytes
  std::vector<Tensor> linked;           ///< by NCCL: without gaps on the fabric's device
};

Tensor Fabric::readable(const Tensor& tensor) const {
  if (fabric::Exports::can_describe(tensor)) return tensor;
  const memory::ResourceScope scope(memory::device_resource(device_));
  return clone(tensor);
}

/// Writes what the receiver is told, and packs what it cannot read.
void Fabric::prepare(Exchange& x, Side& to, Stream stream) {
  Peer& receiver = peer(to.rank);
  const bool is_here = stream.device == device_;
  const bool is_linked = is_here && links_ && links_->leads_to(to.rank);
  const bool is_ordered = flags_ && flags_->reach(to.rank);
  const Way way = is_here && receiver.reads_us ? (is_ordered ? Way::kOrdered : Way::kPulled)
                  : is_linked                  ? Way::kLinked
                                               : Way::kSent;
  if (way == Way::kSent) to.packed.emplace(to.tensors, stream);
  for (size_t i = 0; i < to.tensors.size(); ++i) {
    Tensor& tensor = to.tensors[i];
    if (way == Way::kPulled || way == Way::kOrdered) {
      tensor = readable(tensor);
      to.message.set_tensor(i, receiver.exports->describe(tensor));
      continue;
    }
    to.message.set_tensor(i, fabric::note_of(tensor));
    if (way == Way::kLinked) {
      to.linked.push_back(contiguous(tensor));
    } else {
      copy_across(to.packed->places()[i], tensor);
    }
  }
  fabric::ExchangeNote note{way, receiver.exports ? receiver.exports->count() : 0, 0};
  if (way == Way::kOrdered) {
    flags_->begin(stream, x.timeout());
    note.number = flags_->write_ready(to.rank);
  }
  to.message.set_head(note);
}

/// Checks what the sender has told and makes room for what it sends.
void Fabric::take_notes(Exchange& x, Side& from, Stream stream) {
  try {
    for (size_t i = 0; i < from.tensors.size(); ++i) {
      const Tensor& tensor = from.tensors[i];
      fabric::check_fits(from.message.tensor(i), tensor.dtype(), tensor.shape());
    }
    if (from.is_read_there() && !peer(from.rank).imports) {
      throw CommunicationError("was told of memory that it does not read");
    }
    if (from.goes_by(Way::kOrdered) && !(flags_ && flags_->reach(from.rank))) {
      throw CommunicationError("was told of a stream that it does not wait for");
    }
    if (from.goes_by(Way::kOrdered) && from.message.head().number != flags_->next_from(from.rank)) {
      throw CommunicationError(cat("waits for number ", flags_->next_from(from.rank),
                                   " of a stream, and was told of ", from.message.head().number));
    }
    if (from.goes_by(Way::kLinked) && !(links_ && links_->leads_from(from.rank))) {
      throw CommunicationError("was told of copies by NCCL, which it does not use");
    }
  } catch (const CommunicationError& error) {
    x.fail(from.rank, cat(error.what(), " (from rank ", from.rank, ")"));
  }
  if (from.goes_by(Way::kSent)) from.packed.emplace(from.tensors, stream);
  if (!from.goes_by(Way::kLinked)) return;
  for (const Tensor& tensor : from.tensors) {
    const bool is_taken_there = tensor.device() == device_ && tensor.is_contiguous();
    from.linked.push_back(is_taken_there ? tensor : empty(tensor.shape(), tensor.dtype(), device_));
  }
}

/// What goes by NCCL, in one piece of work of the fabric's device.
void Fabric::copy_linked(Exchange& x, const std::vector<Side>& out, const std::vector<Side>& in) {
  const auto copies_of = [](const std::vector<Side>& sides) {
    std::vector<NcclLinks::Copy> copies;
    for (const Side& side : sides) {
      for (const Tensor& tensor : side.linked) copies.push_back({side.rank, tensor});
    }
    return copies;
  };
  const auto sends = copies_of(out), receives = copies_of(in);
  if (!sends.empty() || !receives.empty()) links_->copy(x, sends, receives, *busy_);
}

/// Copies what has come to where it belongs.
void Fabric::land(Exchange& x, const Side& from, Stream stream) const {
  for (size_t i = 0; i < from.tensors.size(); ++i) {
    const Tensor& to = from.tensors[i];
    if (from.packed) {
      copy_across(to, from.packed->places()[i]);
      continue;
    }
    if (!from.linked.empty()) {
      if (from.linked[i].storage() != to.storage()) copy_across(to, from.linked[i]);
      continue;
    }
    try {
      const auto& imports = *peers_[static_cast<size_t>(from.rank)].imports;
      pull(to, imports.view(from.message.tensor(i), to.dtype(), to.shape()), stream);
    } catch (const CommunicationError& error) {
      if (error.rank() >= 0) throw;  // not of this place
      x.fail(from.rank, cat(error.what(), " (from rank ", from.rank, ")"));
    }
  }
}

/// `from` is another process's memory that this rank's device reads.
void Fabric::pull(const Tensor& to, const Tensor& from, Stream stream) const {
  if (from.size() == 0) return;
  if (to.device() != device_) {  // another device of this rank, or the host
    const Stream own = current_stream(device_);
    const Tensor here = empty(from.shape(), from.dtype(), device_);
    pull(here, from, own);
    copy_across(to, here);
    return backend::runtime(device_).synchronize(own);  // which the caller does not wait for
  }
  if (to.is_contiguous() && from.is_contiguous()) {
    if (kernels::copy_few_from_peer_cuda(to, from)) return;
    return backend::cuda::copy_imported(to.data(), from.data(), from.nbytes(), stream);
  }
  kernels::copy_beside_work_cuda(to, from);
}

/// Also of a stream that has gone on without what it waited for: that is told elsewhere.
bool Fabric::is_idle(Stream stream) {
  try {
    return backend::runtime(stream.device).is_idle(stream);
  } catch (const CommunicationError&) {
    return true;
  }
}

void Fabric::wait_for(Exchange& x, Stream stream) const {
  if (stream.device.is_cpu()) return;
  x.post_condition([stream] { return is_idle(stream); }, rank_);
  x.wait_all();
}

void Fabric::exchange(Exchange& x, const Collective& call) {
  // The call has failed on all ranks; nothing on the GPU waits for them any more, and what they
  // receive of it means nothing.
  const auto give_up = [this](int blamed, const char* text) {
    links_.reset();
    if (flags_) flags_->give_up_call(blamed >= 0 ? blamed : flags_->own_number(), text);
  };
  try {
    carry(x, call);
  } catch (const CommunicationError& error) {
    give_up(error.rank(), error.what());
    throw;
  } catch (const std::exception& error) {
    give_up(-1, error.what());
    throw;
  }
}

/// Ranks tell each other where what they send lies; what is new there is mapped.
void Fabric::await_places(Exchange& x, std::vector<Side>& out, std::vector<Side>& in,
                          Stream stream) {
  for (Side& to : out) x.post_send(to.message.data(), to.message.bytes(), to.rank);
  for (Side& from : in) x.post_recv(from.message.data(), from.message.bytes(), from.rank);
  x.wait_all();

  for (Side& from : in) take_notes(x, from, stream);
  for (Side& to : out) {
    if (to.packed) x.post_send(to.packed->data(), to.packed->bytes(), to.rank);
  }
  for (Side& from : in) {
    if (from.packed) x.post_recv(from.packed->data(), from.packed->bytes(), from.rank);
    if (from.is_read_there()) post_arrival(x, from.rank, from.message.head().pieces);
  }
  for (const Side& to : out) {
    if (to.is_read_there()) post_departure(x, to.rank);
  }
  x.wait_all();
}

/// What does not go in the order of streams.
void Fabric::receive_waiting(Exchange& x, const std::vector<Side>& out, const std::vector<Side>& in,
                             Stream stream) {
  for (const Side& from : in) {
    if (!from.goes_by(Way::kOrdered)) land(x, from, stream);
  }
  if (Side::any_but(in, Way::kOrdered)) wait_for(x, stream);
  for (const Side& from : in) {
    if (from.goes_by(Way::kPulled)) x.post_signal(from.rank);
  }
  for (const Side& to : out) {
    if (to.goes_by(Way::kPulled)) x.post_await(to.rank);
  }
  x.wait_all();
}

void Fabric::receive_in_order(Exchange& x, const std::vector<Side>& out,
                              const std::vector<Side>& in, Stream stream) {
  for (const Side& from : in) {
    if (!from.goes_by(Way::kOrdered)) continue;
    flags_->begin(*busy_, x.timeout());
    flags_->await_ready(from.rank);
    if (stream.device != device_) {  // the copies to there wait for the GPU in the driver
      x.post_condition([this, &from] { return flags_->is_ready(from.rank); }, from.rank);
      x.wait_all();
    }
    land(x, from, stream);
    flags_->write_read(from.rank);
  }
  for (const Side& to : out) {
    if (to.goes_by(Way::kOrdered)) flags_->await_read(to.rank);
  }
  if (flags_) flags_->end();
}

void Fabric::carry(Exchange& x, const Collective& call) {
  const Stream stream = call.stream;
  const StreamScope scope(stream);
  busy_ = stream.device == device_ ? stream : current_stream(device_);  // which pulls
  std::vector<Side> out = Side::all(call.sends, rank_, x.size());
  std::vector<Side> in = Side::all(call.receives, rank_, x.size());
  copy_own_patches(x, call);

  tidy();
  for (Side& to : out) {
    prepare(x, to, stream);
    for (const Tensor& tensor : to.tensors) kept_.push_back(tensor);
  }
  const bool has_waited = Side::any_but(out, Way::kOrdered);
  if (has_waited) wait_for(x, stream);  // what is told now is there
  advance();
  await_places(x, out, in, stream);

  const bool is_linked = Side::any(out, Way::kLinked) || Side::any(in, Way::kLinked);
  if (is_linked && !has_waited) wait_for(x, stream);
  copy_linked(x, out, in);
  receive_waiting(x, out, in, stream);
  receive_in_order(x, out, in, stream);
  kept_.clear();
  busy_.reset();
}

}  // namespace cuop::dist
