#include "tests/simulator/faults.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/simulator/capture.h"
#include "tests/simulator/device.h"

namespace cuop::simulator {

namespace {

constexpr std::string_view kNames[] = {"launch", "copy", "fill", "alloc", "pin", "map", "wait"};
/// All but waits, of which nobody knows how often a program asks.
constexpr int kEveryKind = -1;
constexpr int kEveryDevice = -1;

struct Order {
  int what = kEveryKind;  // an Asked
  int64_t left = 0;       // operations up to the one that fails
  bool goes_on = false;   // all behind it fail as well
  int device = kEveryDevice;
  Fault fault;
};

/// The part of `text` up to `end`, which is taken off it.
std::string_view take(std::string_view& text, char end) {
  const size_t length = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(text.size(), length + 1));
  return part;
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0;
}

/// "launch:17:700", "alloc:1+:2:3"; nothing for another text.
std::optional<Order> parse(std::string_view text) {
  const std::string_view what = take(text, ':');
  std::string_view count = take(text, ':');
  const std::string_view end = take(text, ':');
  Order order;
  const auto* const name = std::find(std::begin(kNames), std::end(kNames), what);
  if (name != std::end(kNames)) {
    order.what = static_cast<int>(name - std::begin(kNames));
  } else if (what != "any") {
    return std::nullopt;
  }
  order.goes_on = count.ends_with('+');
  if (order.goes_on) count.remove_suffix(1);
  if (!read(count, order.left) || order.left == 0) return std::nullopt;
  int result = 0;
  if (end == "kill") {
    order.fault.signal = SIGKILL;
  } else if (end == "stop") {
    order.fault.signal = SIGSTOP;
  } else if (!read(end, result) || result == 0) {
    return std::nullopt;
  }
  order.fault.result = static_cast<Result>(result);
  if (!text.empty() && (!read(text, order.device) || !is_device(order.device))) return std::nullopt;
  return order;
}

std::optional<std::vector<Order>> parse_all(std::string_view text) {
  std::vector<Order> orders;
  while (!text.empty()) {
    const auto order = parse(take(text, ','));
    if (!order) return std::nullopt;
    orders.push_back(*order);
  }
  return orders;
}

struct Orders {
  std::mutex mutex;
  std::vector<Order> all;
};

/// Leaked: streams may still work while the process ends.
Orders& orders() {
  static auto* made = [] {
    auto* first = new Orders;
    const char* const text = std::getenv("SIM_FAULTS");
    const auto given = parse_all(text == nullptr ? "" : text);
    if (!given) {
      std::fprintf(stderr, "simulated GPU: SIM_FAULTS=%s is no row of faults\n", text);
      std::abort();
    }
    first->all = *given;
    return first;
  }();
  return *made;
}

}  // namespace

bool Fault::ends_device() const {
  constexpr int kEnding[] = {214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719};
  return std::count(std::begin(kEnding), std::end(kEnding), static_cast<int>(result)) > 0;
}

Fault next_fault(Asked what, int device) {
  Orders& known = orders();
  const std::lock_guard lock(known.mutex);
  Fault fault;
  for (Order& order : known.all) {
    const bool is_meant =
        order.what == kEveryKind ? what != Asked::kWait : order.what == static_cast<int>(what);
    if (!is_meant) continue;
    if (order.device != kEveryDevice && order.device != device) continue;
    if (order.left > 0) --order.left;
    if (order.left == 0 && fault.is_none()) fault = order.fault;
  }
  std::erase_if(known.all, [](const Order& each) { return each.left == 0 && !each.goes_on; });
  return fault;
}

Result answer_of(Asked what, int device) {
  if (device < 0) return Result::kSuccess;  // the call answers that itself
  const Fault fault = next_fault(what, device);
  if (fault.signal != 0) std::raise(fault.signal);
  if (fault.ends_device()) lose(device, fault.result);
  return fault.result;
}

Result start(Asked what, Stream& stream, const void* kind, Work work) {
  const Fault fault = next_fault(what, stream.device());
  if (fault.is_none()) return submit(stream, kind, std::move(work));
  if (fault.ends_device()) return submit(stream, kind, [fault] { return fault.result; });
  if (fault.signal == 0) return fault.result;
  return submit(stream, kind, [fault, work = std::move(work)] {
    std::raise(fault.signal);
    return work();
  });
}

}  // namespace cuop::simulator

CUOP_SIMULATOR_ENTRY int simOrderFaults(const char* text) {
  using namespace cuop::simulator;
  const auto given = parse_all(text);
  if (!given) return 1;
  Orders& known = orders();
  const std::lock_guard lock(known.mutex);
  if (given->empty()) known.all.clear();
  known.all.insert(known.all.end(), given->begin(), given->end());
  return 0;
}
