// What a rank says of itself to the other processes of its host: one page of memory that it alone
// writes and they read. It has no name in any directory; another process of the same user reaches
// it through /proc, where the system lets nobody else in, and can map it for reading only.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/descriptor.h"

namespace cuop::dist {

/// Where the page of a process is found, on the same host. Sent as it is.
struct PagePlace {
  uint64_t host = 0;    ///< the running system and its numbering of processes
  int64_t process = 0;  ///< 0 for a rank without a page
  int64_t descriptor = -1;
  uint64_t token[2] = {};  ///< stands in the page: another one at this place is not the rank's
};

/// What a collective call was given that must be the same on all ranks.
struct CallShape {
  int32_t root = 0;
  uint8_t dtype = 0;
  uint8_t op = 0;
  int64_t count = 0;
  bool operator==(const CallShape&) const = default;
};

/// A call of one rank: which one, since when, and whom it waits for.
struct CallNote {
  std::string operation;  ///< "all_reduce", at most 16 characters
  uint64_t context = 0;   ///< of the communicator, the same on all its ranks
  int64_t epoch = 0;      ///< of the communicator
  int64_t number = 0;     ///< of the collective call; of a message, of the one before it
  bool is_collective = false;
  int64_t since = 0;  ///< the rank's heartbeat when it began or made progress last
  int awaited = -1;   ///< the rank among all that it waits for, -1 while it does not wait
  CallShape shape = {};
};

/// All that a page says at one moment.
struct PageState {
  int64_t beats = 0;
  int64_t shown = 0;  ///< signs of life beside the beats
  int64_t last_number = 0;
  bool has_left = false;
  std::vector<CallNote> calls;
};

class HeartbeatPage {
 public:
  /// Calls that a process notes at the same time, one for each thread that drives a communicator.
  static constexpr int kCalls = 8;

  HeartbeatPage() = default;
  /// This process's own; CommunicationError saying why when the system gives none.
  static HeartbeatPage make();
  /// Another rank's, for reading; closed when there is none at that place, or it is on another
  /// host.
  static HeartbeatPage open(const PagePlace& place);
  /// What was told of a page of another host: memory of this process that show() fills.
  static HeartbeatPage mirror(const PagePlace& place);
  HeartbeatPage(HeartbeatPage&& other) noexcept;
  HeartbeatPage& operator=(HeartbeatPage&& other) noexcept;
  ~HeartbeatPage() { unmap(); }

  bool is_open() const { return content_ != nullptr; }
  const PagePlace& place() const { return place_; }

  int64_t beats() const;
  /// Grows while the rank lives: with its heartbeat and with what it has done by itself.
  int64_t signs_of_life() const;
  bool has_left() const;
  /// The calls that are under way; those whose note was being written just then are left out.
  std::vector<CallNote> calls() const;
  /// The number of the collective call that was begun last, on whatever communicator.
  int64_t last_number() const;
  PageState state() const;
  /// Of a mirror.
  void show(const PageState& state);

  // Of one's own page.
  void beat();
  /// Says without waiting for the next heartbeat that this rank runs again.
  void show_life();
  void set_left();
  /// Notes a call and returns its place, -1 when all are taken; `since` is filled in.
  int begin_call(std::string_view operation, uint64_t context, int64_t epoch, int64_t number,
                 bool is_collective, const CallShape& shape = {});
  /// The call has made progress and waits for this rank from now on, -1 for none.
  void set_awaited(int call, int rank);
  void end_call(int call);

 private:
  struct Call;
  struct Content;

  void map(int protection, int kind);
  void unmap() noexcept;
  std::optional<CallNote> read(const Call& call) const;

  Descriptor file_;
  PagePlace place_;
  Content* content_ = nullptr;
};

}  // namespace cuop::dist
