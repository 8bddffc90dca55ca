#include "tests/simulator/capture.h"

#include <algorithm>
#include <random>
#include <utility>

namespace cuop::simulator {

namespace {

constexpr auto kUnjoined = Result{904}, kIsolation = Result{905}, kUnmatched = Result{903},
               kWrongThread = Result{908}, kIllegalState = Result{401};

/// Recordings that forbid calls, in all threads or in their own.
std::vector<std::shared_ptr<Capture>>& strict_captures() {
  static auto* all = new std::vector<std::shared_ptr<Capture>>;
  return *all;
}

thread_local CaptureMode thread_mode = CaptureMode::kGlobal;

void add(std::vector<size_t>& to, const std::vector<size_t>& nodes) {
  for (const size_t node : nodes) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

}  // namespace

std::mutex& capture_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

Result submit(Stream& stream, const void* kind, Work work) {
  {
    const std::lock_guard lock(capture_mutex());
    if (stream.capture != nullptr) {
      Capture& capture = *stream.capture;
      if (!capture.is_valid) return Result::kCaptureInvalidated;
      std::vector<size_t>& ends = capture.ends[&stream];
      capture.graph.nodes.push_back({std::move(work), ends, kind});
      ends = {capture.graph.nodes.size() - 1};
      return Result::kSuccess;
    }
  }
  stream.submit(std::move(work));
  return Result::kSuccess;
}

Result begin_capture(Stream& stream, CaptureMode mode) {
  const std::lock_guard lock(capture_mutex());
  if (stream.capture != nullptr) return kIllegalState;
  if (&stream == &legacy_stream(stream.device())) return Result::kCaptureUnsupported;
  auto capture = std::make_shared<Capture>();
  static uint64_t serial = 0;
  capture->id = ++serial;
  capture->graph.device = stream.device();
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->ends[&stream];
  stream.capture = capture;
  if (mode != CaptureMode::kRelaxed) strict_captures().push_back(std::move(capture));
  return Result::kSuccess;
}

Result end_capture(Stream& stream, std::unique_ptr<Graph>& graph) {
  const std::lock_guard lock(capture_mutex());
  const auto capture = stream.capture;
  if (capture == nullptr) return kIllegalState;
  if (capture->origin != &stream) return kUnmatched;
  if (capture->mode != CaptureMode::kRelaxed && capture->thread != std::this_thread::get_id()) {
    return kWrongThread;
  }
  std::erase(strict_captures(), capture);
  std::vector<bool> is_followed(capture->graph.nodes.size());
  for (const Node& node : capture->graph.nodes) {
    for (const size_t before : node.after) is_followed[before] = true;
  }
  const auto& joined = capture->ends[&stream];
  bool is_joined = true;
  for (const auto& [other, ends] : capture->ends) {
    other->capture = nullptr;
    for (const size_t end : ends) {
      const bool is_here = std::find(joined.begin(), joined.end(), end) != joined.end();
      is_joined = is_joined && (is_here || is_followed[end]);
    }
  }
  if (!capture->is_valid) return Result::kCaptureInvalidated;
  if (!is_joined) return kUnjoined;
  graph = std::make_unique<Graph>(std::move(capture->graph));
  return Result::kSuccess;
}

Result record(Event& event, Stream& stream) {
  {
    const std::lock_guard lock(capture_mutex());
    event.capture = stream.capture;
    if (event.capture != nullptr) {
      if (!event.capture->is_valid) return Result::kCaptureInvalidated;
      event.nodes = event.capture->ends[&stream];
      return Result::kSuccess;
    }
  }
  auto reached = std::make_shared<std::atomic<int64_t>>(0);
  event.mark = stream.submit([reached] {
    *reached = now_ns();
    return Result::kSuccess;
  });
  event.nanoseconds = std::move(reached);
  event.is_recorded = true;
  return Result::kSuccess;
}

Result wait(Stream& stream, Event& event) {
  {
    const std::lock_guard lock(capture_mutex());
    if (event.capture != nullptr) {
      if (stream.capture != nullptr && stream.capture != event.capture) return kIsolation;
      stream.capture = event.capture;
      add(stream.capture->ends[&stream], event.nodes);
      return Result::kSuccess;
    }
    if (stream.capture != nullptr) {
      if (!event.is_recorded) return Result::kSuccess;
      stream.capture->is_valid = false;
      return kIsolation;
    }
  }
  if (!event.is_recorded) return Result::kSuccess;
  stream.submit([] { return Result::kSuccess; }, {event.mark});
  return Result::kSuccess;
}

Result check_not_capturing(Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  if (stream.capture == nullptr) return Result::kSuccess;
  stream.capture->is_valid = false;
  return Result::kCaptureUnsupported;
}

Result check_no_strict_capture() {
  const std::lock_guard lock(capture_mutex());
  if (thread_mode == CaptureMode::kRelaxed) return Result::kSuccess;
  for (const auto& capture : strict_captures()) {
    const bool is_ours = capture->thread == std::this_thread::get_id();
    const bool is_all =
        capture->mode == CaptureMode::kGlobal && thread_mode == CaptureMode::kGlobal;
    if (!is_ours && !is_all) continue;
    capture->is_valid = false;
    return Result::kCaptureUnsupported;
  }
  return Result::kSuccess;
}

CaptureMode exchange_mode(CaptureMode mode) { return std::exchange(thread_mode, mode); }

Result run_graph(GraphExec& exec) {
  const std::lock_guard lock(exec.mutex);
  static thread_local std::minstd_rand random(static_cast<unsigned>(now_ns()));
  const std::vector<Node>& nodes = exec.graph.nodes;
  std::vector<size_t> missing(nodes.size()), ready;
  std::vector<std::vector<size_t>> followers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].after.size();
    if (missing[i] == 0) ready.push_back(i);
    for (const size_t before : nodes[i].after) followers[before].push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready.back(), ready[random() % ready.size()]);
    const size_t next = ready.back();
    ready.pop_back();
    const Result result = nodes[next].work();
    if (result != Result::kSuccess) return result;
    for (const size_t follower : followers[next]) {
      if (--missing[follower] == 0) ready.push_back(follower);
    }
  }
  return Result::kSuccess;
}

}  // namespace cuop::simulator
