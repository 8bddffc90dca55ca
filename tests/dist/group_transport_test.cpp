// Some of a hub's processes as the ranks of a transport.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>

#include "cuop/dist/comm/hub.h"

namespace cuop::dist {
namespace {

/// Process 2 of 6, at which the test lets notices arrive.
class NoticeHub final : public Hub {
 public:
  int rank() const override { return 2; }
  int size() const override { return 6; }
  std::string_view kind() const override { return "notices"; }
  int host_of(int) const override { return 0; }
  DeliveryPtr post_send(const void*, int64_t, int, const MessageKey&) override { return nullptr; }
  DeliveryPtr post_recv(void*, int64_t, int, const MessageKey&) override { return nullptr; }
  void send_control(int, uint64_t, const Control&) noexcept override {}
  std::optional<Control> poll_control(uint64_t) override {
    if (arrived.empty()) return std::nullopt;
    const Control message = arrived.front();
    arrived.pop_front();
    return message;
  }
  void flush() noexcept override {}
  void idle(int, uint64_t&) override {}
  void note_failure(bool) noexcept override {}
  bool is_lost(int) override { return false; }
  void note_gone(int) noexcept override {}

  std::deque<Control> arrived;
};

TEST(GroupTransport, NumbersItsRanksAnew) {
  const auto hub = std::make_shared<NoticeHub>();
  const auto group = make_group_transport(hub, {5, 2, 3}, 7);
  EXPECT_EQ(group->rank(), 1);
  hub->arrived.push_back({.src = 3, .kind = ControlKind::kMeet, .epoch = 1, .text = ""});
  EXPECT_EQ(group->poll_control()->src, 2);
}

/// Which could not be counted among them.
TEST(GroupTransport, TakesNoNoticeOfARankThatIsNotOfTheGroup) {
  const auto hub = std::make_shared<NoticeHub>();
  const auto group = make_group_transport(hub, {5, 2, 3}, 7);
  for (const int src : {0, 5, 4}) {
    hub->arrived.push_back({.src = src, .kind = ControlKind::kMeet, .epoch = 1, .text = ""});
  }
  EXPECT_EQ(group->poll_control()->src, 0);
  EXPECT_FALSE(group->poll_control().has_value());
}

}  // namespace
}  // namespace cuop::dist
