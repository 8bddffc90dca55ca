#include <algorithm>

#include "cuop/core/hash.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/hub.h"

namespace cuop::dist {

namespace {

/// A number for the communicator that a split makes: all its ranks compute the same one.
uint64_t child_context(uint64_t parent, int64_t split, int color) {
  return hash_text(cat(parent, "/", split, "/", color));
}
uint64_t shrunk_context(uint64_t parent, int64_t shrink) {
  return hash_text(cat(parent, "/shrink ", shrink));
}

class GroupTransport final : public Transport {
 public:
  GroupTransport(std::shared_ptr<Hub> hub, std::vector<int> ranks, uint64_t context)
      : hub_(std::move(hub)), ranks_(std::move(ranks)), context_(context) {
    rank_ = rank_of(hub_->rank());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  bool is_near(int rank) const override {
    return hub_->host_of(in_hub(rank)) == hub_->host_of(hub_->rank());
  }
  std::string_view kind() const override { return hub_->kind(); }
  uint64_t context() const override { return context_; }

  DeliveryPtr post_send(const void* data, int64_t bytes, const Envelope& envelope) override {
    return hub_->post_send(data, bytes, in_hub(envelope.peer), key_of(envelope));
  }
  DeliveryPtr post_recv(void* data, int64_t bytes, const Envelope& envelope) override {
    return hub_->post_recv(data, bytes, in_hub(envelope.peer), key_of(envelope));
  }

  void send_control(int dst, const Control& message) noexcept override {
    hub_->send_control(in_hub(dst), context_, message);
  }
  std::optional<Control> poll_control() override {
    while (std::optional<Control> message = hub_->poll_control(context_)) {
      message->src = rank_of(message->src);
      if (message->src < size()) return message;  // else of a rank that is not of the group
    }
    return std::nullopt;
  }
  void flush() noexcept override { hub_->flush(); }
  void idle(int looks) override { hub_->idle(looks, seen_); }

  std::shared_ptr<Transport> split(int color, const SplitGroup& group) override {
    if (group.members.empty()) return nullptr;
    return of_group(group, child_context(context_, group.number, color));
  }
  std::shared_ptr<Transport> shrink(const SplitGroup& group) override {
    return of_group(group, shrunk_context(context_, group.number));
  }

  void note_failure(bool is_failed) noexcept override { hub_->note_failure(is_failed); }
  bool is_lost(int rank) override { return hub_->is_lost(in_hub(rank)); }
  void note_gone(int rank) noexcept override { hub_->note_gone(in_hub(rank)); }

 private:
  std::shared_ptr<Transport> of_group(const SplitGroup& group, uint64_t context) const {
    std::vector<int> ranks;
    for (int member : group.members) ranks.push_back(in_hub(member));
    return make_group_transport(hub_, std::move(ranks), context);
  }
  MessageKey key_of(const Envelope& envelope) const {
    return {context_, envelope.epoch, envelope.tag};
  }
  int in_hub(int member) const { return ranks_[static_cast<size_t>(member)]; }
  int rank_of(int in_hub) const {
    return static_cast<int>(std::find(ranks_.begin(), ranks_.end(), in_hub) - ranks_.begin());
  }

  std::shared_ptr<Hub> hub_;
  std::vector<int> ranks_;  // in the hub
  uint64_t context_;
  int rank_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace

std::shared_ptr<Transport> make_group_transport(std::shared_ptr<Hub> hub, std::vector<int> ranks,
                                                uint64_t context) {
  return std::make_shared<GroupTransport>(std::move(hub), std::move(ranks), context);
}

}  // namespace cuop::dist
