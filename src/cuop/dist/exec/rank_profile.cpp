#include "cuop/dist/exec/rank_profile.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "cuop/core/chrome_trace.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/exec/profile_message.h"
#include "cuop/dist/exec/report.h"

namespace cuop::dist {
namespace {

constexpr int kRounds = 16;
constexpr int kTag = 0;  // on a communicator of our own
constexpr int64_t kLatestTime = std::numeric_limits<int64_t>::max() / 4;

/// Reads the clock of `peer` so often and takes the quickest answer.
ClockOffset ask_clock(Communicator& comm, int peer) {
  ClockOffset best{0, std::numeric_limits<int64_t>::max()};
  for (int round = 0; round < kRounds; ++round) {
    int64_t theirs = 0;
    const int64_t begin = trace::now_ns();
    comm.send(&begin, sizeof begin, peer, kTag);
    comm.recv(&theirs, sizeof theirs, peer, kTag);
    const int64_t end = trace::now_ns();
    if (theirs < 0 || theirs > kLatestTime) {
      throw CommunicationError(cat("profile: rank ", peer, " says that its clock stands at ",
                                   theirs, " ns, possible are 0 to ", kLatestTime),
                               comm.in_world(peer));
    }
    const int64_t error = (end - begin + 1) / 2;  // it was read between the two
    if (error < best.error_ns) best = {begin + (end - begin) / 2 - theirs, error};
  }
  return best;
}

void tell_clock(Communicator& comm, int peer) {
  for (int round = 0; round < kRounds; ++round) {
    int64_t asked = 0;
    comm.recv(&asked, sizeof asked, peer, kTag);
    const int64_t mine = trace::now_ns();
    comm.send(&mine, sizeof mine, peer, kTag);
  }
}

/// Of each rank on the root; of none elsewhere.
std::vector<ClockOffset> compare_clocks(Communicator& comm, int root) {
  std::vector<ClockOffset> clocks(static_cast<size_t>(comm.size()));
  if (comm.size() == 1 || comm.kind() == "thread") return clocks;
  const auto own = comm.split(0, comm.rank());  // whose messages meet nobody else's
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank == root) continue;
    if (comm.rank() == root) clocks[static_cast<size_t>(rank)] = ask_clock(*own, rank);
    if (comm.rank() == rank) tell_clock(*own, root);
  }
  return clocks;
}

std::vector<trace::Event> events_of_this_rank() {
  std::vector<trace::Event> events = trace::events();
  std::erase_if(events, [mine = trace::thread_rank()](const trace::Event& event) {
    return event.rank != mine;
  });
  return events;
}

/// In rank order on the root. Lengths are looked at before there is room made for them.
std::vector<std::string> gather_on_root(Communicator& comm, const std::string& mine, int root,
                                        int64_t most) {
  const std::vector<int64_t> lengths = gather_values(comm, static_cast<int64_t>(mine.size()));
  for (size_t rank = 0; rank < lengths.size(); ++rank) {
    if (lengths[rank] >= 0 && lengths[rank] <= most) continue;
    throw CommunicationError(cat("profile: rank ", rank, " wants to send ", lengths[rank],
                                 " bytes, allowed are 0 to ", most),
                             comm.in_world(static_cast<int>(rank)));
  }
  const std::vector<Block> blocks = packed_blocks(lengths);
  const bool is_root = comm.rank() == root;
  std::string all(is_root ? static_cast<size_t>(total_bytes(blocks)) : 0, '\0');
  comm.gather(mine.data(), blocks, all.data(), root);
  std::vector<std::string> texts;
  if (!is_root) return texts;
  for (const Block& block : blocks) {
    texts.push_back(
        all.substr(static_cast<size_t>(block.offset), static_cast<size_t>(block.bytes)));
  }
  return texts;
}

/// Counts of other ranks may say anything.
void add_up(int64_t& sum, int64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = std::numeric_limits<int64_t>::max();
}

/// One rank's calls of one operation.
struct RankCost {
  int64_t calls = 0;
  double seconds = 0, moves = 0, predicted = 0, floor = 0, flops = 0;
  bool has_floor = true;

  void add(const trace::Event& event, double taken) {
    ++calls;
    seconds += taken;
    flops += event.flops;
    const auto* call = dynamic_cast<const CallFigures*>(event.detail.get());
    if (call == nullptr) {
      has_floor = false;
      return;
    }
    moves += call->measured.move_seconds;
    predicted += call->predicted;
    floor += call->floor;
    has_floor = has_floor && call->floor > 0;
  }
};

double seconds_of(const trace::Event& event) {
  const auto* call = dynamic_cast<const CallFigures*>(event.detail.get());
  // Where the host waits for its GPU its time says it all.
  const bool is_of_stream =
      event.gpu_ns > 0 && (call != nullptr ? call->measured.is_on_gpu : event.category == "op");
  return static_cast<double>(is_of_stream ? event.gpu_ns
                                          : std::max(event.gpu_ns, event.duration_ns)) *
         1e-9;
}

OperationCost cost_of(const std::pair<std::string, std::string>& key,
                      const std::map<int, RankCost>& ranks) {
  OperationCost cost;
  cost.category = key.first;
  cost.name = key.second;
  bool is_first = true;
  for (const auto& [rank, part] : ranks) {
    cost.calls = std::max(cost.calls, part.calls);
    cost.flops = std::max(cost.flops, part.flops);
    cost.least_seconds = is_first ? part.seconds : std::min(cost.least_seconds, part.seconds);
    if (is_first || part.seconds > cost.seconds) {
      cost.seconds = part.seconds;
      cost.slowest = rank;
      cost.move_seconds = part.moves;
      cost.predicted = part.predicted;
      cost.floor = part.has_floor ? part.floor : 0.0;
    }
    is_first = false;
  }
  return cost;
}

int place_of(const std::string& category) {
  constexpr const char* kOrder[] = {"dist", "comm", "op"};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), category) -
                          std::begin(kOrder));
}

}  // namespace

std::vector<RankProfile> gather_profiles(const CommunicatorPtr& comm, int root,
                                         const ProfileLimits& limits) {
  constexpr int64_t kMostOnRoot = int64_t{1} << 30;
  ProfileLimits each = limits;
  each.bytes = std::min(limits.bytes, kMostOnRoot / comm->size());
  std::string mine;
  std::vector<RankProfile> profiles;
  run_together(
      *comm,
      cat("profile, root ", root, ", at most ", each.events, " events in ", each.bytes, " bytes"),
      [&] {
        check_rank("profile", root, comm->size());
        if (each.events < 0 || each.bytes < 16) {
          throw ExecutionError(cat("profile: limits are ", each.events, " events in ", each.bytes,
                                   " bytes; allowed are 0 or more in 16 or more"));
        }
        if (!trace::is_recording()) {
          throw ExecutionError(
              cat("profile_report: nothing is recorded on rank ", comm->rank(),
                  "; call it while a trace is recorded, in Python inside cuop.profile()"));
        }
        mine = write_events(events_of_this_rank(), each.events, each.bytes);
      },
      [&] {
        const std::vector<ClockOffset> clocks = compare_clocks(*comm, root);
        for (const std::string& text : gather_on_root(*comm, mine, root, each.bytes)) {
          SentEvents sent = read_events(text, each.events);
          RankProfile profile;
          profile.events = std::move(sent.events);
          profile.left_out = sent.left_out;
          profile.rank = comm->in_world(static_cast<int>(profiles.size()));
          profile.clock = clocks[profiles.size()];
          for (trace::Event& event : profile.events) {
            event.rank = profile.rank;
            event.start_ns += profile.clock.offset_ns;
          }
          profiles.push_back(std::move(profile));
        }
      });
  return profiles;
}

std::vector<OperationCost> operation_costs(const std::vector<RankProfile>& profiles) {
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::map<int, RankCost>> parts;
  std::map<Key, int64_t> bytes;
  std::map<Key, std::map<std::pair<int, int>, int64_t>> links;
  for (const RankProfile& profile : profiles) {
    for (const trace::Event& event : profile.events) {
      if (!event.is_outermost || !event.stream.empty()) continue;  // streams: in the host's spans
      const Key key{event.category, event.name};
      parts[key][profile.rank].add(event, seconds_of(event));
      add_up(bytes[key], event.bytes);
      const auto* call = dynamic_cast<const CallFigures*>(event.detail.get());
      if (call == nullptr) continue;
      for (const auto& [to, count] : call->sent_to) {
        add_up(links[key][{profile.rank, to}], count);
      }
    }
  }
  std::vector<OperationCost> costs;
  for (const auto& [key, ranks] : parts) {
    costs.push_back(cost_of(key, ranks));
    costs.back().bytes = bytes[key];
    costs.back().links = links[key];
  }
  std::stable_sort(costs.begin(), costs.end(), [](const OperationCost& a, const OperationCost& b) {
    const int first = place_of(a.category), second = place_of(b.category);
    if (first != second) return first < second;
    return a.category != b.category ? a.category < b.category : a.seconds > b.seconds;
  });
  return costs;
}

std::string to_chrome_json(const std::vector<RankProfile>& profiles) {
  std::vector<trace::Event> all;
  std::map<int, std::string> labels;
  for (const RankProfile& profile : profiles) {
    all.insert(all.end(), profile.events.begin(), profile.events.end());
    std::string& label = labels[profile.rank];
    if (profile.clock.error_ns > 0) {
      label = cat("clock +- ", format_seconds(static_cast<double>(profile.clock.error_ns) * 1e-9));
    }
    if (profile.left_out > 0) {
      label += cat(label.empty() ? "" : ", ", profile.left_out, " short events left out");
    }
    if (label.empty()) labels.erase(profile.rank);
  }
  std::stable_sort(all.begin(), all.end(), [](const trace::Event& a, const trace::Event& b) {
    return a.start_ns < b.start_ns;
  });
  return trace::to_chrome_json(all, labels);
}

}  // namespace cuop::dist
