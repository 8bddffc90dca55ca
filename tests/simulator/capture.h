// Work that is recorded instead of done, and graphs: what was recorded, with its order.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/simulator/stream.h"

namespace cuop::simulator {

struct Node {
  Work work;
  std::vector<size_t> after;   ///< nodes before it in the graph
  const void* kind = nullptr;  ///< the same for nodes that an update may put in each other's place
};

struct Graph {
  int device = 0;
  std::vector<Node> nodes;
};

/// One recording, which begins on a stream and takes in others by events.
struct Capture {
  Graph graph;
  Stream* origin = nullptr;
  CaptureMode mode = CaptureMode::kGlobal;
  std::thread::id thread;
  bool is_valid = true;
  uint64_t id = 0;  ///< no other recording has it
  /// Behind which nodes the next of a stream comes.
  std::map<Stream*, std::vector<size_t>> ends;
};

/// Guards all recordings: they are made by few threads and quickly.
std::mutex& capture_mutex();

/// Adds the operation to the stream's recording, or starts it when there is none.
Result submit(Stream& stream, const void* kind, Work work);

Result begin_capture(Stream& stream, CaptureMode mode);
Result end_capture(Stream& stream, std::unique_ptr<Graph>& graph);
Result record(Event& event, Stream& stream);
Result wait(Stream& stream, Event& event);

/// The answer to a call that waits for the stream: kSuccess, or an error and the end of a
/// recording.
Result check_not_capturing(Stream& stream);
/// The same for a call that a recording in another mode than kRelaxed does not allow.
Result check_no_strict_capture();
CaptureMode exchange_mode(CaptureMode mode);  ///< of the calling thread

/// A graph that can be launched again and again; one launch at a time.
struct GraphExec {
  Graph graph;
  std::mutex mutex;
};
/// Runs the nodes in some order that their dependencies allow.
Result run_graph(GraphExec& exec);

}  // namespace cuop::simulator
