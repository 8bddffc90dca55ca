// One exchange, through rings and in messages.
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuop/backend/runtime.h"
#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/patches.h"
#include "cuop/dist/comm/shared_exchange.h"
#include "cuop/ops/copy/copy.h"
#include "cuop/ops/create/empty.h"
#include "cuop/ops/index/view.h"

namespace cuop::dist {

namespace {

/// Adds the tensor's blocks of at most so many bytes, halved along their longest axes: near
/// squares, as transposes want them. Both ends cut the same shape alike.
void cut(const Tensor& tensor, int64_t most, std::vector<Tensor>& pieces) {
  if (tensor.nbytes() <= most) {
    if (tensor.size() > 0) pieces.push_back(tensor);
    return;
  }
  int longest = 0;
  for (int axis = 1; axis < tensor.ndim(); ++axis) {
    if (tensor.shape(axis) > tensor.shape(longest)) longest = axis;
  }
  const int64_t half = tensor.shape(longest) / 2;
  cut(slice(tensor, longest, 0, half), most, pieces);
  cut(slice(tensor, longest, half, tensor.shape(longest)), most, pieces);
}

uint64_t digest_of(const std::vector<Tensor>& tensors) {
  std::vector<int64_t> told;
  for (const Tensor& tensor : tensors) {
    told.push_back(static_cast<int64_t>(tensor.dtype()));
    told.push_back(tensor.ndim());
    told.insert(told.end(), tensor.shape().begin(), tensor.shape().end());
  }
  return hash_text({reinterpret_cast<const char*>(told.data()), told.size() * sizeof(int64_t)});
}

int64_t bytes_of(const std::vector<Tensor>& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

/// What goes one way between two ranks in this call.
class RingWay {
 public:
  RingWay(SharedRing& ring, bool is_out, const std::vector<Tensor>& tensors, int64_t call)
      : ring_(ring), is_out_(is_out), note_{call, bytes_of(tensors), digest_of(tensors)} {
    for (const Tensor& tensor : tensors) cut(tensor, ring.slot_bytes(), pieces_);
  }

  bool is_done() const { return next_ == pieces_.size(); }
  int64_t moved() const { return moved_; }

  /// Fills or empties a slot, if there is one; the bytes that were moved.
  int64_t advance() {
    if (is_done()) return 0;
    std::byte* const slot = is_out_ ? ring_.free_slot() : ring_.filled_slot();
    if (slot == nullptr) return 0;
    if (!is_out_) check(ring_.note());
    int64_t bytes = 0;
    for (; !is_done(); ++next_) {
      const Tensor& piece = pieces_[next_];
      if (bytes + piece.nbytes() > ring_.slot_bytes()) break;
      const Tensor in_slot =
          from_memory(slot + bytes, contiguous_layout(piece.shape()), piece.dtype(), kCpu, nullptr);
      is_out_ ? copy_into(in_slot, piece) : copy_into(piece, in_slot);
      bytes += piece.nbytes();
    }
    is_out_ ? ring_.fill(note_) : ring_.empty();
    moved_ += bytes;
    return bytes;
  }

 private:
  void check(const SlotNote& sent) const {
    if (sent.bytes != note_.bytes) {
      throw CommunicationError(
          cat("expects ", note_.bytes, " bytes, the message has ", sent.bytes, " bytes"));
    }
    if (sent.content != note_.content || sent.call != note_.call) {
      throw CommunicationError(cat("expects tensors of other shapes or dtypes in these ",
                                   note_.bytes, " bytes, or those of another call"));
    }
  }

  SharedRing& ring_;
  bool is_out_;
  SlotNote note_;
  std::vector<Tensor> pieces_;
  size_t next_ = 0;
  int64_t moved_ = 0;
};
using RingWays = std::vector<RingWay>;

/// Whoever looks after one way looks after all of them.
class WayDelivery final : public Delivery {
 public:
  WayDelivery(std::shared_ptr<RingWays> all, size_t own) : all_(std::move(all)), own_(own) {}

  bool test() override {
    constexpr int64_t kMost = 4 << 20;  // then the caller looks after failures and interrupts
    int64_t moved = 0, before = -1;
    while (!way().is_done() && moved < kMost && moved != before) {
      before = moved;
      for (RingWay& each : *all_) moved += each.advance();
    }
    return way().is_done();
  }
  int64_t moved() const override { return way().moved(); }

 private:
  RingWay& way() const { return (*all_)[own_]; }

  std::shared_ptr<RingWays> all_;
  size_t own_;
};

/// What one rank gets from this one, or this one from it; in packed memory of the host where it
/// cannot go between a ring and where it lies.
struct RingSide {
  RingSide(int peer, std::vector<Tensor> all, bool is_packed, Stream stream)
      : rank(peer), tensors(std::move(all)) {
    if (is_packed && bytes_of(tensors) > 0) packed.emplace(tensors, stream);
  }
  const std::vector<Tensor>& on_host() const { return packed ? packed->places() : tensors; }

  int rank;
  std::vector<Tensor> tensors;
  std::optional<PackedTensors> packed;
};

}  // namespace

void SharedExchange::exchange(Exchange& x, const Collective& call) {
  const Stream stream = call.stream;
  const StreamScope scope(stream);
  const bool is_on_gpu = !stream.device.is_cpu();
  const int64_t number = ++calls_;
  copy_own_patches(x, call);
  std::vector<RingSide> out, in;
  for (int step = 1; step < x.size(); ++step) {  // each rank begins with another one
    const int to = (x.rank() + step) % x.size(), from = (x.rank() - step + x.size()) % x.size();
    out.emplace_back(to, tensors_of(call.sends, to), is_on_gpu || !peer(to).to, stream);
    in.emplace_back(from, tensors_of(call.receives, from), is_on_gpu || !peer(from).from, stream);
    if (!out.back().packed) continue;
    for (size_t i = 0; i < out.back().tensors.size(); ++i) {
      copy_across(out.back().packed->places()[i], out.back().tensors[i]);
    }
  }
  if (is_on_gpu) {
    x.post_condition([stream] { return backend::runtime(stream.device).is_idle(stream); },
                     x.rank());
    x.wait_all();
  }
  const auto ways = std::make_shared<RingWays>();
  std::vector<int> peers;
  for (RingSide& to : out) {
    if (!peer(to.rank).to) {
      if (to.packed) x.post_send(to.packed->data(), to.packed->bytes(), to.rank);
      continue;
    }
    ways->emplace_back(*peer(to.rank).to, true, to.on_host(), number);
    peers.push_back(to.rank);
  }
  for (RingSide& from : in) {
    if (!peer(from.rank).from) {
      if (from.packed) x.post_recv(from.packed->data(), from.packed->bytes(), from.rank);
      continue;
    }
    ways->emplace_back(*peer(from.rank).from, false, from.on_host(), number);
    peers.push_back(from.rank);
  }
  for (size_t i = 0; i < ways->size(); ++i) {
    x.post_delivery(std::make_unique<WayDelivery>(ways, i), peers[i]);
  }
  x.wait_all();
  for (const RingSide& from : in) {
    if (!from.packed) continue;
    for (size_t i = 0; i < from.tensors.size(); ++i) {
      copy_across(from.tensors[i], from.packed->places()[i]);
    }
  }
}

}  // namespace cuop::dist
