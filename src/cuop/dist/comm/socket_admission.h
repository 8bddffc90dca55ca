// The two ends of a new connection, each as something that never waits: the side that listens and
// lets in who proves to be a rank of the job (Admission), and the side that connects (Visit).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cuop/dist/comm/socket_greeting.h"
#include "cuop/dist/comm/socket_link.h"

namespace cuop::dist {

/// A visitor that has not said what it should after so long is sent away.
inline constexpr double kGreetingSeconds = 1.0;
/// One that was let in goes on with another connection then.
inline constexpr double kArrivalSeconds = 5.0;
/// Visitors that have not come in yet; one more takes the place of the one that is there longest
/// and has not greeted.
inline constexpr size_t kMostVisitors = 256;

class Admission {
 public:
  Admission(Job job, int rank, std::vector<Socket> listeners)
      : job_(std::move(job)), rank_(rank), listeners_(std::move(listeners)) {}

  void add_interests(std::vector<Interest>& interests) const;
  /// Hears all that have something to say and calls `admit` with those that have proven who they
  /// are and go on with this connection.
  void advance(const std::function<void(const Introduction&, Socket)>& admit);
  /// How many spoke and did not prove it.
  int refused() const { return refused_; }

 private:
  struct Visitor {
    Socket link;
    Door door;
    std::string challenge;
    std::string heard;
    double deadline;
    std::optional<Introduction> who = {};  // once it has proven it
  };

  void accept_all(const Socket& listener);
  void make_room();
  bool is_gone(Visitor& visitor, const std::function<void(const Introduction&, Socket)>& admit);

  Job job_;
  int rank_;
  std::vector<Socket> listeners_;
  std::deque<Visitor> visitors_;  // in the order in which they came
  int refused_ = 0;
};

/// An address, a number, and a port.
struct Place {
  std::string address;
  int port = 0;
};

/// Tries to be let in by the rank `wanted` at `place`, over and over.
class Visit {
 public:
  /// With `listens`, the rank listens for others at the address that it has on this connection.
  Visit(Job job, Introduction self, int wanted, Place place, bool listens);

  void add_interests(std::vector<Interest>& interests) const;
  /// True once it has been let in: both sides have proven themselves.
  bool advance();
  /// Seconds of the steady clock at which something is to be done though nothing comes.
  double next_time() const { return time_; }
  int wanted() const { return wanted_; }
  const Place& place() const { return place_; }
  /// A rank listened there and did not know the job's secret, or not this job.
  bool was_refused() const { return was_refused_; }
  Socket take_link() { return std::move(link_); }
  Socket take_listener() { return std::move(listener_); }

 private:
  enum class State { kIdle, kConnecting, kHearsChallenge, kHearsWelcome };

  void begin();
  bool step();
  void greet();
  void fail();
  void enter(State state, double seconds);

  Job job_;
  Introduction self_;
  int wanted_;
  Place place_;
  bool listens_;
  State state_ = State::kIdle;
  double time_ = 0.0;  // of the next try, or at which this one fails
  Socket link_;
  Socket listener_;
  std::string heard_;
  std::string challenge_;
  std::string greeting_;
  bool was_refused_ = false;
};

}  // namespace cuop::dist
