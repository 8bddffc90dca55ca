// Entry points about streams, events and the recording of graphs.
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "tests/simulator/address_space.h"
#include "tests/simulator/capture.h"
#include "tests/simulator/entry.h"
#include "tests/simulator/faults.h"

namespace cuop::simulator {

namespace {

/// Handles that were given out. Whoever uses another one is told.
template <class T>
class Handles {
 public:
  void* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    void* handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  std::shared_ptr<T> find(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  std::shared_ptr<T> take(const void* handle) {
    const std::lock_guard lock(mutex_);
    const auto node = objects_.extract(handle);
    return node.empty() ? nullptr : node.mapped();
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<T>> objects_;
};

Handles<Stream>& streams() {
  static auto* all = new Handles<Stream>;
  return *all;
}
Handles<Event>& events() {
  static auto* all = new Handles<Event>;
  return *all;
}
Handles<GraphExec>& execs() {
  static auto* all = new Handles<GraphExec>;
  return *all;
}

Stream& own_stream(int device) {
  static thread_local std::array<std::shared_ptr<Stream>, kMaxSimulated> mine;
  auto& stream = mine[static_cast<size_t>(device)];
  if (stream == nullptr) stream = Stream::make(device, true, 0);
  return *stream;
}

template <class Call>
Result on_event(EventHandle handle, Call&& call) {
  return answered([&] {
    const auto event = events().find(handle);
    if (event == nullptr) return kInvalidHandle;
    if (is_lost(event->device)) return error_of(event->device);
    return call(*event);
  });
}

CaptureStatus status_of(const Stream& stream) {
  if (stream.capture == nullptr) return CaptureStatus::kNone;
  return stream.capture->is_valid ? CaptureStatus::kActive : CaptureStatus::kInvalidated;
}

/// What a call that asks or waits for the work of a stream, or for an event, is answered before.
Result check_waiting(Stream& stream) {
  const Result allowed = check_not_capturing(stream);
  return allowed == Result::kSuccess ? answer_of(Asked::kWait, stream.device()) : allowed;
}
Result check_waiting(const Event& event) {
  if (event.capture != nullptr) return Result::kCaptureUnsupported;
  return answer_of(Asked::kWait, event.device);
}

/// Work of the stream on a number in page-locked memory of the host; no flags are known.
template <class Use>
Result on_flag(StreamHandle handle, DevicePointer address, unsigned flags, Use use) {
  return on_stream(handle, [&](Stream& stream) {
    auto* const number = reinterpret_cast<uint32_t*>(address);
    const auto is_there = [number] {
      return AddressSpace::instance().is_registered(number, sizeof *number);
    };
    if (flags != 0 || address % sizeof *number != 0 || !is_there()) return Result::kInvalidValue;
    const int device = stream.device();
    return submit(stream, reinterpret_cast<const void*>(address), [=] {
      return is_there() ? use(std::atomic_ref(*number), device) : Result::kIllegalAddress;
    });
  });
}

Graph* graph_of(GraphHandle handle) { return reinterpret_cast<Graph*>(handle); }

}  // namespace

std::shared_ptr<Stream> stream_of(StreamHandle handle, int device) {
  if (handle == nullptr || handle == kLegacyStream) {
    return legacy_stream(device).shared_from_this();
  }
  if (handle == kPerThreadStream) return own_stream(device).shared_from_this();
  return streams().find(handle);
}

CUOP_SIMULATOR_ENTRY Result cuStreamCreateWithPriority(StreamHandle* stream, unsigned flags,
                                                       int priority) {
  return in_context([&](int device) {
    if (flags > kStreamNonBlocking) return Result::kInvalidValue;
    const bool is_blocking = flags == kStreamDefault;
    *stream = static_cast<StreamHandle>(streams().add(Stream::make(device, is_blocking, priority)));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamDestroy(StreamHandle handle) {
  return answered([&] {
    const auto stream = streams().take(handle);
    if (stream == nullptr) return kInvalidHandle;
    stream->close();
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamSynchronize(StreamHandle handle) {
  return on_stream(handle, [](Stream& stream) {
    const Result allowed = check_waiting(stream);
    if (allowed != Result::kSuccess) return allowed;
    wait_for(stream.last());
    return error_of(stream.device());
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamQuery(StreamHandle handle) {
  return on_stream(handle, [](Stream& stream) {
    const Result allowed = check_waiting(stream);
    if (allowed != Result::kSuccess) return allowed;
    return is_done(stream.last()) ? error_of(stream.device()) : Result::kNotReady;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamWaitEvent(StreamHandle handle, EventHandle event,
                                              unsigned flags) {
  return on_stream(handle, [&](Stream& stream) {
    const auto mark = events().find(event);
    if (mark == nullptr) return kInvalidHandle;
    return flags > 1 ? Result::kInvalidValue : wait(stream, *mark);
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamWriteValue32(StreamHandle handle, DevicePointer address,
                                                 uint32_t value, unsigned flags) {
  return on_flag(handle, address, flags, [value](std::atomic_ref<uint32_t> flag, int) {
    flag.store(value, std::memory_order_seq_cst);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamWaitValue32(StreamHandle handle, DevicePointer address,
                                                uint32_t value, unsigned flags) {
  return on_flag(handle, address, flags, [value](std::atomic_ref<uint32_t> flag, int device) {
    while (static_cast<int32_t>(flag.load() - value) < 0 && !is_lost(device)) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamGetCtx(StreamHandle handle, ContextHandle* context) {
  return on_stream(handle, [&](Stream& stream) {
    *context = context_of(stream.device());
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamIsCapturing(StreamHandle handle, CaptureStatus* status) {
  return on_stream(handle, [&](Stream& stream) {
    const std::lock_guard lock(capture_mutex());
    *status = status_of(stream);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamGetCaptureInfo(StreamHandle handle, CaptureStatus* status,
                                                   uint64_t* id, GraphHandle* graph,
                                                   const GraphNodeHandle** nodes, size_t*) {
  return on_stream(handle, [&](Stream& stream) {
    if (graph != nullptr || nodes != nullptr) return Result::kNotSupported;
    const std::lock_guard lock(capture_mutex());
    *status = status_of(stream);
    if (id != nullptr) *id = stream.capture != nullptr ? stream.capture->id : 0;
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuStreamBeginCapture(StreamHandle handle, CaptureMode mode) {
  return on_stream(handle, [&](Stream& stream) { return begin_capture(stream, mode); });
}
CUOP_SIMULATOR_ENTRY Result cuStreamEndCapture(StreamHandle handle, GraphHandle* graph) {
  return on_stream(handle, [&](Stream& stream) {
    std::unique_ptr<Graph> made;
    const Result result = end_capture(stream, made);
    *graph = reinterpret_cast<GraphHandle>(made.release());
    return result;
  });
}
CUOP_SIMULATOR_ENTRY Result cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  *mode = exchange_mode(*mode);
  return Result::kSuccess;
}
CUOP_SIMULATOR_ENTRY Result cuLaunchHostFunc(StreamHandle handle, void (*function)(void*),
                                             void* data) {
  return on_stream(handle, [&](Stream& stream) {
    return submit(stream, reinterpret_cast<const void*>(function), [function, data] {
      function(data);
      return Result::kSuccess;
    });
  });
}

CUOP_SIMULATOR_ENTRY Result cuEventCreate(EventHandle* event, unsigned flags) {
  return in_context([&](int device) {
    *event = static_cast<EventHandle>(events().add(std::make_shared<Event>(device, flags)));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuEventDestroy(EventHandle handle) {
  return answered(
      [&] { return events().take(handle) != nullptr ? Result::kSuccess : kInvalidHandle; });
}
CUOP_SIMULATOR_ENTRY Result cuEventRecord(EventHandle handle, StreamHandle on) {
  return on_event(handle, [&](Event& event) {
    return on_stream(on, [&](Stream& stream) {
      return stream.device() == event.device ? record(event, stream) : kInvalidHandle;
    });
  });
}
CUOP_SIMULATOR_ENTRY Result cuEventQuery(EventHandle handle) {
  return on_event(handle, [](Event& event) {
    const Result allowed = check_waiting(event);
    if (allowed != Result::kSuccess) return allowed;
    return is_done(event.mark) ? error_of(event.device) : Result::kNotReady;
  });
}
CUOP_SIMULATOR_ENTRY Result cuEventSynchronize(EventHandle handle) {
  return on_event(handle, [](Event& event) {
    const Result allowed = check_waiting(event);
    if (allowed != Result::kSuccess) return allowed;
    wait_for(event.mark);
    return error_of(event.device);
  });
}
CUOP_SIMULATOR_ENTRY Result cuEventElapsedTime(float* ms, EventHandle start, EventHandle end) {
  return on_event(start, [&](Event& first) {
    return on_event(end, [&](Event& last) {
      for (const Event* each : {&first, &last}) {
        if (!each->is_recorded || (each->flags & kEventDisableTiming) != 0) return kInvalidHandle;
        if (!is_done(each->mark)) return Result::kNotReady;
      }
      *ms = static_cast<float>(static_cast<double>(*last.nanoseconds - *first.nanoseconds) * 1e-6);
      return Result::kSuccess;
    });
  });
}

CUOP_SIMULATOR_ENTRY Result cuGraphInstantiateWithFlags(GraphExecHandle* exec, GraphHandle graph,
                                                        uint64_t) {
  return in_context([&](int) {
    if (graph == nullptr) return Result::kInvalidValue;
    auto made = std::make_shared<GraphExec>();
    made->graph = *graph_of(graph);
    *exec = static_cast<GraphExecHandle>(execs().add(std::move(made)));
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuGraphExecUpdate(GraphExecHandle handle, GraphHandle graph,
                                              GraphUpdateResult* answer) {
  return in_context([&](int) {
    const auto exec = execs().find(handle);
    if (exec == nullptr || graph == nullptr) return Result::kInvalidValue;
    const std::lock_guard lock(exec->mutex);
    const auto& old = exec->graph.nodes;
    const auto& next = graph_of(graph)->nodes;
    bool is_alike = old.size() == next.size();
    for (size_t i = 0; is_alike && i < old.size(); ++i) {
      is_alike = old[i].after == next[i].after && old[i].kind == next[i].kind;
    }
    *answer = {};
    answer->result = is_alike ? 0 : 1;
    if (!is_alike) return Result::kGraphExecUpdateFailure;
    exec->graph = *graph_of(graph);
    return Result::kSuccess;
  });
}
CUOP_SIMULATOR_ENTRY Result cuGraphUpload(GraphExecHandle handle, StreamHandle) {
  return answered(
      [&] { return execs().find(handle) != nullptr ? Result::kSuccess : kInvalidHandle; });
}
CUOP_SIMULATOR_ENTRY Result cuGraphLaunch(GraphExecHandle handle, StreamHandle on) {
  return on_stream(on, [&](Stream& stream) {
    auto exec = execs().find(handle);
    if (exec == nullptr) return kInvalidHandle;
    if (exec->graph.device != stream.device()) return Result::kInvalidValue;
    return start(Asked::kLaunch, stream, nullptr,
                 [exec = std::move(exec)] { return run_graph(*exec); });
  });
}
CUOP_SIMULATOR_ENTRY Result cuGraphExecDestroy(GraphExecHandle handle) {
  return answered(
      [&] { return execs().take(handle) != nullptr ? Result::kSuccess : kInvalidHandle; });
}
CUOP_SIMULATOR_ENTRY Result cuGraphDestroy(GraphHandle graph) {
  delete graph_of(graph);
  return Result::kSuccess;
}
CUOP_SIMULATOR_ENTRY Result cuGraphGetNodes(GraphHandle graph, GraphNodeHandle* nodes,
                                            size_t* count) {
  return answered([&] {
    if (nodes != nullptr) return Result::kNotSupported;
    *count = graph_of(graph)->nodes.size();
    return Result::kSuccess;
  });
}

}  // namespace cuop::simulator
