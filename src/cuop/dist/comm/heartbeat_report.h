// What ranks of one host tell those of others of their heartbeats: datagrams, each with what the
// pages of some ranks say. Nothing of one is read before its proof holds: an HMAC-SHA-256 over all
// of it, with a key that the job's ranks alone know. A report comes once: its number is greater
// than that of any before it from the same rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/dist/comm/heartbeat_page.h"

namespace cuop::dist {

/// A rank as another one of its host sees it.
struct RankReport {
  int rank = 0;
  bool is_dead = false;
  PageState page;
};

struct HeartbeatReport {
  int sender = 0;
  uint64_t number = 0;
  std::vector<RankReport> ranks;
};

/// The longest datagram, which no network cuts into pieces.
inline constexpr size_t kReportBytes = 1200;

/// In as many datagrams as they need, with numbers from `number` on, which is left behind the last.
std::vector<std::string> write_reports(const std::string& key, int sender, uint64_t& number,
                                       const std::vector<RankReport>& ranks);
/// Nothing where it is not proven, or makes no sense among `size` ranks.
std::optional<HeartbeatReport> read_report(const std::string& key, std::string_view bytes,
                                           int size);

}  // namespace cuop::dist
