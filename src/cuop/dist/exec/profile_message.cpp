#include "cuop/dist/exec/profile_message.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

#include "cuop/dist/exec/report.h"
#include "cuop/dist/packed.h"

namespace cuop::dist {
namespace {

/// Centuries in nanoseconds: sums of a few times do not overflow.
constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() / 4;

void put_text(Packer& bytes, std::string_view text) { bytes.put(text.substr(0, kLongestText)); }

void put_call(Packer& bytes, const CallFigures& call) {
  put_text(bytes, call.plan);
  bytes.put(call.predicted);
  bytes.put(call.floor);
  const Measured& measured = call.measured;
  bytes.put(int{measured.is_on_gpu});
  bytes.put(measured.seconds);
  bytes.put(measured.work_seconds);
  bytes.put(measured.move_seconds);
  bytes.put(measured.bytes_sent);
  bytes.put(static_cast<int64_t>(call.sent_to.size()));
  for (const auto& [rank, count] : call.sent_to) {
    bytes.put(rank);
    bytes.put(count);
  }
}

void put_event(Packer& bytes, const trace::Event& event) {
  put_text(bytes, event.name);
  put_text(bytes, event.category);
  put_text(bytes, event.stream);
  bytes.put(event.thread);
  bytes.put(event.start_ns);
  bytes.put(event.duration_ns);
  bytes.put(event.gpu_ns);
  bytes.put(event.bytes);
  bytes.put(event.flops);
  bytes.put(int{event.is_outermost});
  const auto* record = dynamic_cast<const CallDetail*>(event.detail.get());
  bytes.put(int{record != nullptr});
  if (record != nullptr) put_call(bytes, record->figures());
}

double finite(Unpacker& bytes) {
  const auto value = bytes.number<double>();
  if (!std::isfinite(value) || value < 0.0) bytes.fail("a figure is not finite or below 0");
  return value;
}

std::string text(Unpacker& bytes) {
  return std::string(bytes.text(static_cast<int64_t>(kLongestText)));
}

std::shared_ptr<const CallFigures> read_call(Unpacker& bytes) {
  auto call = std::make_shared<CallFigures>();
  call->plan = text(bytes);
  call->predicted = finite(bytes);
  call->floor = finite(bytes);
  Measured& measured = call->measured;
  measured.is_on_gpu = bytes.number_to(1) == 1;
  measured.seconds = finite(bytes);
  measured.work_seconds = finite(bytes);
  measured.move_seconds = finite(bytes);
  measured.bytes_sent = bytes.number_to(kLatest);
  constexpr int64_t kMostRanks = std::numeric_limits<int>::max();
  for (int64_t left = bytes.number_to(kMostRanks); left > 0; --left) {
    const auto rank = static_cast<int>(bytes.number_to(kMostRanks));
    call->sent_to.emplace_back(rank, bytes.number_to(kLatest));
  }
  return call;
}

trace::Event read_event(Unpacker& bytes) {
  trace::Event event;
  event.name = text(bytes);
  event.category = text(bytes);
  event.stream = text(bytes);
  event.thread = static_cast<int>(bytes.number_to(std::numeric_limits<int>::max()));
  event.start_ns = bytes.number_to(kLatest);
  event.duration_ns = bytes.number_to(kLatest);
  event.gpu_ns = bytes.number_to(kLatest);
  event.bytes = bytes.number_to(kLatest);
  event.flops = finite(bytes);
  event.is_outermost = bytes.number_to(1) == 1;
  if (bytes.number_to(1) == 1) event.detail = read_call(bytes);
  return event;
}

bool is_call(const trace::Event& event) { return event.category == "dist"; }

}  // namespace

std::string write_events(const std::vector<trace::Event>& events, int64_t most_events,
                         int64_t most_bytes) {
  std::vector<size_t> order(events.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const trace::Event &x = events[a], &y = events[b];
    return is_call(x) != is_call(y) ? is_call(x) : x.duration_ns > y.duration_ns;
  });
  std::map<size_t, std::string> kept;
  int64_t size = 2 * sizeof(int64_t);
  for (const size_t number : order) {
    Packer event;
    put_event(event, events[number]);
    size += static_cast<int64_t>(event.bytes().size());
    if (static_cast<int64_t>(kept.size()) == most_events || size > most_bytes) break;
    kept[number] = event.take();
  }
  Packer all;
  all.put(static_cast<int64_t>(events.size() - kept.size()));
  all.put(static_cast<int64_t>(kept.size()));
  for (const auto& [number, event] : kept) all.append(event);
  return all.take();
}

SentEvents read_events(std::string_view bytes, int64_t most_events) {
  Unpacker packed("profile", bytes);
  SentEvents sent;
  sent.left_out = packed.number_to(kLatest);
  for (int64_t left = packed.number_to(most_events); left > 0; --left) {
    sent.events.push_back(read_event(packed));
  }
  if (!packed.rest().empty()) packed.fail("a message is too long");
  return sent;
}

}  // namespace cuop::dist
