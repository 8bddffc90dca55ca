#include "cuop/dist/comm/socket_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "cuop/core/error.h"
#include "tests/error_of.h"

namespace cuop::dist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two ends of one connection.
struct Pair {
  Pair() {
    wait_for_any({{listener.descriptor(), false}}, 60.0);
    bool is_exhausted = false;
    accepted = accept_one(listener, is_exhausted);
  }
  Socket listener = listen_at("127.0.0.1", 0);
  Socket connected = start_connect("127.0.0.1", port_of(listener));
  Socket accepted;
};

/// Names are resolved beforehand, with a deadline: these two never ask a name server.
TEST(SocketLink, ListensAtNumbersAndConnectsToThemOnly) {
  const Socket listener = listen_at("127.0.0.1", 0);
  EXPECT_TRUE(start_connect("127.0.0.1", port_of(listener)).is_open());
  for (const char* name : {"localhost", "", "127.0.0.1.", "host.invalid"}) {
    EXPECT_THROW(listen_at(name, 0), CommunicationError) << name;
    EXPECT_THROW(start_connect(name, port_of(listener)), CommunicationError) << name;
  }
}

TEST(SocketLink, ANumberNeedsNoAnswerOfANameServer) {
  EXPECT_THAT(resolve("127.0.0.1", steady_seconds() - 1.0), ElementsAre("127.0.0.1"));
  EXPECT_THAT(resolve("::1", steady_seconds() - 1.0), ElementsAre("::1"));
}

TEST(SocketLink, ThereMayBeNothingToRead) {
  Pair pair;
  ASSERT_TRUE(pair.accepted.is_open());
  char byte = 0;
  EXPECT_EQ(pair.accepted.read_some(&byte, 1), 0);
  pair.connected.write_all("x", 1, steady_seconds() + 60.0);
  pair.accepted.read_all(&byte, 1, steady_seconds() + 60.0);
  EXPECT_EQ(byte, 'x');
}

TEST(SocketLink, AConnectionThatIsCutOffIsToldAtTheFirstRead) {
  Pair pair;
  ASSERT_TRUE(pair.accepted.is_open());
  const linger at_once{.l_onoff = 1, .l_linger = 0};  // a reset, not an end
  ASSERT_EQ(
      setsockopt(pair.connected.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
  pair.connected.close();
  wait_for_any({{pair.accepted.descriptor(), false}}, 60.0);
  char byte = 0;
  EXPECT_THAT(test::error_of<CommunicationError>([&] { pair.accepted.read_some(&byte, 1); }),
              HasSubstr("the other side has closed the connection"));
}

/// To have closed it is the same to the other side whether all had been read or not.
TEST(SocketLink, AConnectionThatIsClosedBeforeAllIsReadIsToldAsClosed) {
  for (const bool is_read : {true, false}) {
    Pair pair;
    ASSERT_TRUE(pair.accepted.is_open());
    pair.accepted.write_all("x", 1, steady_seconds() + 60.0);
    char byte = 0;
    if (is_read) {
      pair.connected.read_all(&byte, 1, steady_seconds() + 60.0);
    } else {
      wait_for_any({{pair.connected.descriptor(), false}}, 60.0);
    }
    pair.connected.close();
    wait_for_any({{pair.accepted.descriptor(), false}}, 60.0);
    EXPECT_THAT(test::error_of<CommunicationError>([&] { pair.accepted.read_some(&byte, 1); }),
                HasSubstr("the other side has closed the connection"));
  }
}

}  // namespace
}  // namespace cuop::dist
