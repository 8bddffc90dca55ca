// Streams and events: which work waits for which.
#include <unordered_map>

#include "binders.h"
#include "cuop/backend/runtime.h"
#include "cuop/core/text.h"
#include "cuop/jit/fusion.h"
#include "cuop/memory/current.h"
#include "exchange.h"
#include "exchange_release.h"

namespace cuop::python {

namespace {

struct PyStream {
  Stream stream;
  std::shared_ptr<void> owner;  ///< of a stream that was made here
};

struct PyEvent {
  Device device;
  std::shared_ptr<backend::Event> event;
};

/// Streams that this thread was on before each `with stream:`, the innermost last.
thread_local std::vector<Stream> entered;

/// What is recorded for fusion was called before: it runs before its stream is looked at, waited
/// for or left.
void settle() { jit::flush_pending("streams are put in order"); }

/// The same before this thread waits; what other libraries get back is looked through afterwards.
template <class Wait>
void settle_and(Wait&& wait) {
  settle();
  wait();
  release_borrowed();
}

PyStream make_stream(const OptionalDevice& device, int priority) {
  const Device where = device_or_current(device);
  const auto own = std::make_shared<backend::OwnedStream>(where, priority);
  return {own->get(), own};
}

/// The stream behind an object of another library, or behind a number.
PyStream external_stream(nb::handle object, Arg<Device> device) {
  nb::object number = nb::borrow(object);
  if (has_attribute(object, "__cuda_stream__")) {
    number = object.attr("__cuda_stream__")()[nb::int_(1)];
  } else {
    for (const char* name : {"cuda_stream", "ptr", "handle"}) {  // PyTorch, CuPy, Numba
      if (nb::object found = attribute_of(object, name); found.is_valid()) number = found;
    }
  }
  Raised why;
  const int64_t handle = integer_in(number, why).value_or(-1);
  if (handle < 0) {
    refuse<DTypeError>(
        cat("external_stream: stream: needed is a stream of another library or its handle, a "
            "number of 0 or more in 64 bits, given ",
            describe(object)),
        why);
  }
  backend::runtime(device);
  // Who lends a stream that may end has it kept until the process ends, as streams of our own are:
  // memory that was freed on it is put in its order later.
  static auto* const lent = new std::unordered_map<int64_t, nb::object>;
  if (!number.is(object)) lent->try_emplace(handle, nb::borrow(object));
  return {stream_of_number(device, handle), nullptr};
}

void wait_for(const PyStream& later, nb::handle other) {
  settle();
  if (nb::isinstance<PyEvent>(other)) {
    nb::cast<PyEvent&>(other).event->wait(later.stream);
  } else if (nb::isinstance<PyStream>(other)) {
    const PyStream& earlier = nb::cast<PyStream&>(other);
    backend::runtime(later.stream.device).order(later.stream, earlier.stream);
  } else {
    throw DTypeError(
        cat("Stream.wait: other: needed is a Stream or an Event, given ", describe(other)));
  }
}

void leave() {
  if (entered.empty())
    throw ExecutionError("Stream: this thread left a stream that it never entered");
  set_current_stream(entered.back());
  entered.pop_back();
  settle();
}

Stream stream_or_current(const PyEvent& event, const PyStream* stream) {
  return stream != nullptr ? stream->stream : current_stream(event.device);
}

void bind_event(Module& m) {
  Class<PyEvent>(m, "Event",
                 "A point in a stream's work to wait for or, with timed=True, measure from.")
      .def(
          "__init__",
          [](PyEvent* self, const OptionalDevice& device, bool timed) {
            const Device where = device_or_current(device);
            new (self) PyEvent{where, backend::runtime(where).create_event(timed)};
          },
          "device"_a = nb::none(), "timed"_a = false)
      .def_prop_ro(
          "device", [](const PyEvent& e) { return PyDevice{e.device}; }, "The device it marks.")
      .def(
          "record",
          [](PyEvent& e, const PyStream* stream) {
            settle();
            e.event->record(stream_or_current(e, stream));
          },
          "stream"_a = nb::none(), "Marks the end of what the stream (default: the current) holds.")
      .def(
          "wait",
          [](const PyEvent& e, const PyStream* stream) {
            settle();
            e.event->wait(stream_or_current(e, stream));
          },
          "stream"_a = nb::none(),
          "Later work of the stream (default: the current) waits for the mark; the caller does "
          "not.")
      .def(
          "synchronize", [](const PyEvent& e) { settle_and([&] { e.event->synchronize(); }); },
          Released(), "Waits until the marked work is done.")
      .def(
          "is_done", [](const PyEvent& e) { return e.event->is_done(); },
          "Whether the marked work is done.")
      .def(
          "elapsed_ms",
          [](const PyEvent& e, const PyEvent& since) { return e.event->elapsed_ms(*since.event); },
          "since"_a, Released(),
          "Milliseconds from the mark of `since` to this one, waiting for this one. Raises "
          "ExecutionError when either was made without timed=True or never recorded, DeviceError "
          "when `since` marks another device.");
}

struct PyGraph {
  Device device;
  std::unique_ptr<backend::Graph> graph;
};

void bind_record_stream(Module& m) {
  m.def(
      "record_stream",
      [](Arg<Tensor> tensor, const PyStream& stream) {
        const Tensor& used = tensor;
        if (used.device() != stream.stream.device) {
          throw DeviceError(cat("record_stream: a tensor on ", used.device(), " and a stream of ",
                                stream.stream.device));
        }
        used.data();
        memory::record_stream(*used.storage(), stream.stream);
        note_use(used, stream.stream);
      },
      "tensor"_a, "stream"_a,
      "Tells that work of another stream than the tensor's own uses it: when the tensor is gone, "
      "its "
      "memory serves nobody else before what that stream then holds is done. Work of `stream` must "
      "be "
      "ordered behind the tensor's own.");
}

void bind_graph(Module& m) {
  Class<PyGraph>(m, "Graph",
                 "Work of a GPU recorded once, by `with graph:`, and started again by one "
                 "call, `replay`. What is recorded is not done then; new tensors lie in "
                 "memory that the graph keeps. Keep the tensors that it reads and writes.")
      .def(
          "__init__",
          [](PyGraph* self, const OptionalDevice& device) {
            const Device where = device_or_current(device);
            new (self) PyGraph{where, backend::runtime(where).create_graph()};
          },
          "device"_a = nb::none())
      .def(
          "__enter__",
          [](nb::object self) {
            settle();
            nb::cast<PyGraph&>(self).graph->begin();
            return self;
          },
          nb::sig("def __enter__(self) -> Graph"))
      .def(
          "__exit__",
          [](PyGraph& g, nb::handle type, nb::handle, nb::handle) {
            if (!type.is_none()) return g.graph->abandon();
            try {
              settle();  // what the graph's body recorded belongs to it
            } catch (...) {
              g.graph->abandon();
              throw;
            }
            g.graph->end();
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def(
          "replay",
          [](PyGraph& g, const PyStream* stream) {
            settle();
            g.graph->replay(stream != nullptr ? stream->stream : current_stream(g.device));
          },
          "stream"_a = nb::none(),
          "Does the recorded work on the stream (default: the current one). Raises ExecutionError "
          "when nothing was captured.")
      .def_prop_ro(
          "node_count", [](const PyGraph& g) { return g.graph->node_count(); },
          "Kernels, copies and fills that were recorded.");
}

}  // namespace

void bind_stream(Module& m) {
  bind_event(m);
  bind_record_stream(m);
  Class<PyStream>(m, "Stream",
                  "An ordered queue of a device's work. `with stream:` makes it the current "
                  "one of the thread.")
      .def(
          "__init__",
          [](PyStream* self, const OptionalDevice& device, int priority) {
            new (self) PyStream(make_stream(device, priority));
          },
          "device"_a = nb::none(), "priority"_a = 0)
      .def_prop_ro(
          "device", [](const PyStream& s) { return PyDevice{s.stream.device}; },
          "Whose work it is.")
      .def_prop_ro(
          "handle", [](const PyStream& s) { return reinterpret_cast<uintptr_t>(s.stream.handle); },
          "The driver's handle; 0 is the default stream.")
      .def(
          "synchronize",
          [](const PyStream& s) {
            settle_and([&] { backend::runtime(s.stream.device).synchronize(s.stream); });
          },
          Released(), "Waits until its work is done.")
      .def(
          "is_idle",
          [](const PyStream& s) {
            settle();
            return backend::runtime(s.stream.device).is_idle(s.stream);
          },
          "Whether it has no work left.")
      .def("wait", &wait_for, "other"_a,
           "Later work waits for what another stream holds now, or for an event.")
      .def(
          "__enter__",
          [](nb::object self) {
            const Stream stream = nb::cast<PyStream&>(self).stream;
            settle();
            entered.push_back(current_stream(stream.device));
            set_current_stream(stream);
            return self;
          },
          nb::sig("def __enter__(self) -> Stream"))
      .def(
          "__exit__", [](const PyStream&, nb::handle, nb::handle, nb::handle) { leave(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def("__cuda_stream__",
           [](const PyStream& s) {
             return std::pair{0, reinterpret_cast<uintptr_t>(s.stream.handle)};
           })
      .def(
          "__eq__",
          [](const PyStream& s, nb::handle other) {
            return nb::isinstance<PyStream>(other) && nb::cast<PyStream&>(other).stream == s.stream;
          },
          nb::arg().none())
      .def("__hash__",
           [](const PyStream& s) { return reinterpret_cast<uintptr_t>(s.stream.handle) >> 3; })
      .def("__repr__", [](const PyStream& s) {
        return cat("cuop.Stream(device='", s.stream.device,
                   "', handle=", reinterpret_cast<uintptr_t>(s.stream.handle), ")");
      });
  bind_graph(m);
  m.def("external_stream", &external_stream, "stream"_a, "device"_a = "cuda",
        "The stream of another library (PyTorch, CuPy, anything with __cuda_stream__, or a handle, "
        "which must stay valid). The object is kept until the process ends.");
  m.def(
      "current_stream",
      [](const OptionalDevice& device) {
        return PyStream{current_stream(device_or_current(device)), nullptr};
      },
      "device"_a = nb::none(), "The stream on which this thread's work on the device runs.");
}

}  // namespace cuop::python
