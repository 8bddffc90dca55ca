#include "cuop/dist/comm/self.h"

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/dist/comm/p2p_communicator.h"

namespace cuop::dist {

namespace {

/// A network of one: there is nobody to send to, and P2pCommunicator keeps messages to oneself.
class SelfTransport final : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool is_near(int) const override { return true; }
  std::string_view kind() const override { return "self"; }
  uint64_t context() const override { return 0; }
  DeliveryPtr post_send(const void*, int64_t, const Envelope&) override {
    throw CommunicationError("self: one rank has no other rank to send to");
  }
  DeliveryPtr post_recv(void*, int64_t, const Envelope&) override {
    throw CommunicationError("self: one rank has no other rank to receive from");
  }
  void send_control(int, const Control&) noexcept override {}
  std::optional<Control> poll_control() override { return std::nullopt; }
  void idle(int) override {}
  std::shared_ptr<Transport> split(int color, const SplitGroup&) override {
    return color < 0 ? nullptr : std::make_shared<SelfTransport>();
  }
  std::shared_ptr<Transport> shrink(const SplitGroup&) override {
    return std::make_shared<SelfTransport>();
  }
  void note_failure(bool) noexcept override {}
  bool is_lost(int) override { return false; }
  void note_gone(int) noexcept override {}
};

}  // namespace

std::shared_ptr<Communicator> make_self_communicator() {
  return std::make_shared<P2pCommunicator>(std::make_shared<SelfTransport>(), nullptr,
                                           env().comm_timeout.value);
}

}  // namespace cuop::dist
