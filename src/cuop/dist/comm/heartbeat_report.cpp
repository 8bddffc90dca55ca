#include "cuop/dist/comm/heartbeat_report.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "cuop/core/sha256.h"

namespace cuop::dist {

namespace {

constexpr uint32_t kMark = 0x62684f63;
constexpr size_t kNameBytes = 16;

// As they are on the wire, in the order of bytes of the hosts, which must be the same.
struct Head {
  uint32_t mark;
  int32_t sender;
  uint64_t number;
};
struct RankWords {
  int32_t rank;
  int32_t calls;
  int64_t beats;
  int64_t shown;
  int64_t last_number;
  int32_t has_left;
  int32_t is_dead;
};
struct CallWords {
  char operation[kNameBytes];
  uint64_t context;
  int64_t epoch;
  int64_t number;
  int64_t since;
  int32_t awaited;
  int32_t is_collective;
  int64_t count;
  int32_t root;
  uint8_t dtype;
  uint8_t op;
  uint16_t unused;
};
template <class... Words>
constexpr bool kAreBytes = (std::has_unique_object_representations_v<Words> && ...);
static_assert(kAreBytes<Head, RankWords, CallWords>);
constexpr size_t kMostOfRank = sizeof(RankWords) + HeartbeatPage::kCalls * sizeof(CallWords);
static_assert(sizeof(Head) + kMostOfRank + kProofBytes <= kReportBytes);

template <class Words>
void append(std::string& to, const Words& words) {
  to.append(reinterpret_cast<const char*>(&words), sizeof words);
}

/// The next words; false when there are none.
template <class Words>
bool take(std::string_view& from, Words& words) {
  if (from.size() < sizeof words) return false;
  std::memcpy(&words, from.data(), sizeof words);
  from.remove_prefix(sizeof words);
  return true;
}

std::string words_of(const RankReport& report) {
  const PageState& page = report.page;
  const size_t calls = std::min<size_t>(page.calls.size(), HeartbeatPage::kCalls);
  std::string text;
  append(text, RankWords{report.rank, static_cast<int32_t>(calls), page.beats, page.shown,
                         page.last_number, page.has_left ? 1 : 0, report.is_dead ? 1 : 0});
  for (size_t i = 0; i < calls; ++i) {
    const CallNote& note = page.calls[i];
    CallWords words{{},
                    note.context,
                    note.epoch,
                    note.number,
                    note.since,
                    note.awaited,
                    note.is_collective ? 1 : 0,
                    note.shape.count,
                    note.shape.root,
                    note.shape.dtype,
                    note.shape.op,
                    0};
    note.operation.copy(words.operation, kNameBytes);
    append(text, words);
  }
  return text;
}

bool is_rank(int32_t rank, int size) { return rank >= 0 && rank < size; }

bool take_rank(std::string_view& from, int size, RankReport& report) {
  RankWords words{};
  if (!take(from, words) || !is_rank(words.rank, size)) return false;
  if (words.calls < 0 || words.calls > HeartbeatPage::kCalls) return false;
  report.rank = words.rank;
  report.is_dead = words.is_dead != 0;
  report.page = {words.beats, words.shown, words.last_number, words.has_left != 0, {}};
  for (int32_t i = 0; i < words.calls; ++i) {
    CallWords call{};
    if (!take(from, call) || (call.awaited != -1 && !is_rank(call.awaited, size))) return false;
    const size_t length = strnlen(call.operation, kNameBytes);
    if (length == 0) return false;
    report.page.calls.push_back({std::string(call.operation, length),
                                 call.context,
                                 call.epoch,
                                 call.number,
                                 call.is_collective != 0,
                                 call.since,
                                 call.awaited,
                                 {call.root, call.dtype, call.op, call.count}});
  }
  return true;
}

}  // namespace

std::vector<std::string> write_reports(const std::string& key, int sender, uint64_t& number,
                                       const std::vector<RankReport>& ranks) {
  std::vector<std::string> datagrams;
  std::string text;
  const auto end = [&] {
    if (text.empty()) return;
    datagrams.push_back(text + hmac_sha256(key, text));
    text.clear();
  };
  for (const RankReport& each : ranks) {
    const std::string words = words_of(each);
    if (text.size() + words.size() + kProofBytes > kReportBytes) end();
    if (text.empty()) append(text, Head{kMark, sender, number++});
    text += words;
  }
  end();
  return datagrams;
}

std::optional<HeartbeatReport> read_report(const std::string& key, std::string_view bytes,
                                           int size) {
  if (bytes.size() < sizeof(Head) + kProofBytes || bytes.size() > kReportBytes) return std::nullopt;
  std::string_view words = bytes.substr(0, bytes.size() - kProofBytes);
  const std::string proof = hmac_sha256(key, std::string(words));
  if (!equal_in_constant_time(proof, bytes.substr(words.size()))) return std::nullopt;
  Head head{};
  take(words, head);
  if (head.mark != kMark || !is_rank(head.sender, size)) return std::nullopt;
  HeartbeatReport report{head.sender, head.number, {}};
  while (!words.empty()) {
    if (!take_rank(words, size, report.ranks.emplace_back())) return std::nullopt;
  }
  return report;
}

}  // namespace cuop::dist
