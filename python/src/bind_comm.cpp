// Ranks: the communicator, objects between ranks, and how ranks come to be.
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "binders.h"
#include "callback.h"
#include "cuop/core/text.h"
#include "cuop/dist/agree.h"
#include "cuop/dist/comm/blocks.h"
#include "cuop/dist/comm/bootstrap.h"
#include "cuop/dist/comm/checks.h"
#include "cuop/dist/comm/launch.h"
#include "cuop/dist/comm/mpi.h"
#include "cuop/dist/comm/rank_limit.h"
#include "cuop/dist/comm/run_ranks.h"

namespace cuop::python {

namespace {

using dist::Communicator;
using CommPtr = std::shared_ptr<Communicator>;

/// What pickle raises for objects that have no such form; an object's own exceptions go through.
bool is_refusal_of_pickle(const nb::python_error& error, const nb::module_& pickle) {
  return error.matches(PyExc_TypeError) || error.matches(PyExc_AttributeError) ||
         error.matches(PyExc_ValueError) || error.matches(PyExc_RecursionError) ||
         error.matches(pickle.attr("PicklingError"));
}

std::string pickle(const std::string& call, nb::handle object) {
  nb::module_ module = nb::module_::import_("pickle");
  try {
    const nb::bytes bytes(module.attr("dumps")(object, module.attr("HIGHEST_PROTOCOL")));
    return {bytes.c_str(), bytes.size()};
  } catch (nb::python_error& error) {
    if (!is_refusal_of_pickle(error, module)) throw;
    const std::string why = message_of(error.value());
    nb::raise_from(error, nb::module_::import_("cuop.errors").attr("DTypeError").ptr(),
                   "%s: an object of class %s cannot be pickled: %s", call.c_str(),
                   class_name(object).c_str(), why.c_str());
  }
}

nb::object unpickle(const std::string& text) {
  return nb::module_::import_("pickle").attr("loads")(nb::bytes(text.data(), text.size()));
}

/// The same at the end of a collective call: where it fails on this rank alone, the others hear of
/// it in their next call.
nb::object unpickle(Communicator& comm, const char* call, const std::string& text) {
  try {
    return unpickle(text);
  } catch (const nb::python_error& error) {
    const std::string why =
        cat(call, ": an object that came cannot be read: ", class_name(error.value()), ": ",
            message_of_raised(error.value()));
    without_gil([&] { comm.refuse_call(why); });
    throw;
  }
}

/// The rank that an exception names as the one that failed, as CommunicationError and MPIError do.
/// What its own code raises then does not take its place.
std::optional<int> rank_of(nb::handle error) noexcept {
  try {
    Raised why;
    const nb::object rank = attribute_of(error, "rank");
    const auto number = rank.is_valid() ? integer_in(rank, why) : std::nullopt;
    const bool names_one = number && std::in_range<int>(*number);
    return names_one ? std::optional(static_cast<int>(*number)) : std::nullopt;
  } catch (nb::python_error& raised) {
    if (!raised.matches(PyExc_Exception)) keep_interrupt(std::move(raised));
    return std::nullopt;
  }
}

/// An exception of Python on its way through C++ threads, with a short text for the other ranks.
class PythonFailure : public dist::RankFailure {
 public:
  explicit PythonFailure(nb::python_error&& error)
      : error_(std::make_shared<nb::python_error>(std::move(error))),
        text_(cat(class_name(error_->value()), ": ", message_of_raised(error_->value()))),
        rank_(rank_of(error_->value())) {}
  const char* what() const noexcept override { return text_.c_str(); }
  std::optional<int> rank() const noexcept override { return rank_; }
  /// Makes it Python's current exception again.
  void restore() const { nb::python_error(*error_).restore(); }

 private:
  std::shared_ptr<nb::python_error> error_;
  std::string text_;
  std::optional<int> rank_;
};

/// Calls `work` with the GIL, so that what it raises can travel.
template <class Work>
void with_gil(Work&& work) {
  nb::gil_scoped_acquire gil;
  try {
    work();
  } catch (nb::python_error& error) {
    throw PythonFailure(std::move(error));
  }
}

/// Pickles on this rank; an object that cannot be pickled raises on all ranks. Holds no GIL while
/// it waits.
std::string pickle_together(Communicator& comm, const std::string& call, nb::handle object,
                            int64_t root = 0) {
  std::string text;
  nb::gil_scoped_release release;
  dist::prepare_together(comm, call, [&] {
    dist::check_rank(call, root, comm.size());
    with_gil([&] { text = pickle(call, object); });
  });
  return text;
}

/// A rank or a tag that has been checked.
int checked(int64_t number) { return static_cast<int>(number); }

nb::object broadcast(Communicator& comm, nb::object object, int64_t root) {
  const Communicator::Use use(comm, "broadcast");
  const std::string text = pickle_together(comm, cat("broadcast from rank ", root),
                                           comm.rank() == root ? object : nb::none(), root);
  const std::string told =
      without_gil([&] { return dist::broadcast_text(comm, text, checked(root)); });
  return comm.rank() == root ? object : unpickle(comm, "broadcast", told);
}

nb::typed<nb::list, nb::any> all_gather(Communicator& comm, nb::handle object) {
  const Communicator::Use use(comm, "all_gather");
  const std::string text = pickle_together(comm, "all_gather", object);
  const auto texts = without_gil([&] { return dist::gather_texts(comm, text); });
  nb::typed<nb::list, nb::any> result;
  for (const std::string& each : texts) result.append(unpickle(comm, "all_gather", each));
  return result;
}

nb::object gather(Communicator& comm, nb::handle object, int64_t root) {
  const Communicator::Use use(comm, "gather");
  const std::string text = pickle_together(comm, cat("gather to rank ", root), object, root);
  std::vector<dist::Block> blocks;
  std::string all;
  {
    nb::gil_scoped_release release;
    const auto length = static_cast<int64_t>(text.size());
    blocks = dist::packed_blocks(dist::gather_values(comm, length));
    if (comm.rank() == root) all.resize(static_cast<size_t>(dist::total_bytes(blocks)));
    comm.gather(text.data(), blocks, all.data(), checked(root));
  }
  if (comm.rank() != root) return nb::none();
  nb::list result;
  for (const dist::Block& block : blocks) {
    const std::string each =
        all.substr(static_cast<size_t>(block.offset), static_cast<size_t>(block.bytes));
    result.append(unpickle(comm, "gather", each));
  }
  return result;
}

nb::object scatter(Communicator& comm, nb::handle objects, int64_t root) {
  const Communicator::Use use(comm, "scatter");
  std::string all;
  std::vector<int64_t> lengths(static_cast<size_t>(comm.size()));
  const std::string call = cat("scatter from rank ", root);
  const auto prepare = [&] {
    dist::check_rank(call, root, comm.size());
    if (comm.rank() != root) return;
    with_gil([&] {
      const nb::object items = items_of(objects);
      if (!items.is_valid()) {
        const Raised why = PyErr_Occurred() != nullptr ? wrong_kind() : nullptr;
        refuse<DTypeError>(
            cat("scatter: objects: needed is a sequence of one object a rank, given ",
                describe(objects)),
            why);
      }
      if (static_cast<int>(nb::len(items)) != comm.size()) {
        throw ShapeError(
            cat("scatter: ", nb::len(items), " objects were given for ", comm.size(), " ranks"));
      }
      for (size_t rank = 0; rank < nb::len(items); ++rank) {
        const std::string text = pickle(call, items[rank]);
        lengths[rank] = static_cast<int64_t>(text.size());
        all += text;
      }
    });
  };
  std::string mine;
  {
    nb::gil_scoped_release release;
    dist::prepare_together(comm, call, prepare);
    const int from = checked(root);
    comm.broadcast(lengths.data(), static_cast<int64_t>(lengths.size() * sizeof(int64_t)), from);
    const auto blocks = dist::packed_blocks(lengths);
    mine.resize(static_cast<size_t>(lengths[static_cast<size_t>(comm.rank())]));
    comm.scatter(all.data(), blocks, mine.data(), from);
  }
  return unpickle(comm, "scatter", mine);
}

void send(Communicator& comm, nb::handle object, int64_t to, int64_t with_tag) {
  const Communicator::Use use(comm, "send");
  dist::check_address("send", to, with_tag, comm.size());
  const int dst = checked(to), tag = checked(with_tag);
  const std::string text = pickle("send", object);
  nb::gil_scoped_release release;
  const auto length = static_cast<int64_t>(text.size());
  comm.send(&length, sizeof(length), dst, tag);
  comm.send(text.data(), length, dst, tag);
}

nb::object recv(Communicator& comm, int64_t from, int64_t with_tag) {
  const Communicator::Use use(comm, "recv");
  dist::check_address("recv", from, with_tag, comm.size());
  const int src = checked(from), tag = checked(with_tag);
  std::string text;
  {
    nb::gil_scoped_release release;
    int64_t length = 0;
    comm.recv(&length, sizeof(length), src, tag);
    text.resize(static_cast<size_t>(length));
    comm.recv(text.data(), length, src, tag);
  }
  return unpickle(text);
}

nb::object sendrecv(Communicator& comm, nb::handle object, int64_t to, int64_t from,
                    int64_t with_tag) {
  const Communicator::Use use(comm, "sendrecv");
  dist::check_address("sendrecv", to, with_tag, comm.size());
  dist::check_address("sendrecv", from, with_tag, comm.size());
  const int dst = checked(to), src = checked(from), tag = checked(with_tag);
  const std::string out = pickle("sendrecv", object);
  std::string in;
  {
    nb::gil_scoped_release release;
    const auto out_length = static_cast<int64_t>(out.size());
    int64_t in_length = 0;
    comm.sendrecv(&out_length, sizeof(out_length), dst, &in_length, sizeof(in_length), src, tag);
    in.resize(static_cast<size_t>(in_length));
    comm.sendrecv(out.data(), out_length, dst, in.data(), in_length, src, tag);
  }
  return unpickle(in);
}

/// What ranks in Python share. One that is left to itself keeps it.
class PythonRanks {
 public:
  PythonRanks(nb::object work, int ranks)
      : work_(std::move(work)), results_(static_cast<size_t>(ranks), nb::none()) {}

  /// Calls the work as rank `comm`, with the GIL.
  void run(const CommPtr& comm) {
    const auto rank = static_cast<size_t>(comm->rank());
    const unsigned long thread = PyThread_get_thread_ident();
    struct Running {
      std::set<unsigned long>& threads;
      unsigned long thread;
      Running(std::set<unsigned long>& all, unsigned long one) : threads(all), thread(one) {
        threads.insert(thread);
      }
      ~Running() { threads.erase(thread); }
    } const running(threads_, thread);
    results_[rank] = work_(comm);
  }

  /// Raises KeyboardInterrupt in the Python code of all ranks that run.
  void interrupt() {
    const nb::gil_scoped_acquire gil;
    for (const unsigned long thread : threads_) {
      PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
    }
  }

  nb::typed<nb::list, nb::any> take_results() {
    nb::typed<nb::list, nb::any> list;
    for (nb::object& each : results_) list.append(std::move(each));
    return list;
  }

 private:
  nb::object work_;
  std::vector<nb::object> results_;
  std::set<unsigned long> threads_;  // used with the GIL
};

/// The last one to let go may be a rank that does not hold the GIL, or comes when Python is gone.
void release(PythonRanks* ranks) {
  if (Py_IsInitialized() == 0) return;
  const nb::gil_scoped_acquire gil;
  delete ranks;
}

nb::typed<nb::list, nb::any> run_ranks(const nb::typed<nb::callable, nb::any(CommPtr)>& work,
                                       int64_t given) {
  check_python_goes_on("run_ranks");
  const int ranks = dist::checked_ranks(given, "run_ranks");
  const std::shared_ptr<PythonRanks> shared(new PythonRanks(work, ranks), release);
  {
    nb::gil_scoped_release release_gil;
    dist::run_ranks(
        ranks, [shared](const CommPtr& comm) { with_gil([&] { shared->run(comm); }); },
        [shared] { shared->interrupt(); });
  }
  return shared->take_results();
}

Record launcher() {
  const dist::Launch launch = dist::detect_launch();
  return record_of("launcher", launch.launcher, "rank", launch.rank, "size", launch.size,
                   "local_rank", launch.local_rank, "local_size", launch.local_size);
}

nb::typed<nb::list, dist::RankHealth> health(const Communicator& comm) {
  nb::typed<nb::list, dist::RankHealth> list;
  for (dist::RankHealth& each : without_gil([&] { return comm.health(); })) {
    list.append(nb::cast(std::move(each)));
  }
  return list;
}

void bind_health(Module& m) {
  using dist::RankHealth;
  Class<RankHealth>(m, "RankHealth", "What is known of one rank, as Communicator.health found it.")
      .def_prop_ro(
          "state", [](const RankHealth& health) { return std::string(health.name()); },
          "'alive' (in a call or outside of one); 'stuck' (in a call without progress for longer "
          "than "
          "CUOP_HEARTBEAT_TIMEOUT, where no rank that it waits for can still come); 'stopped' (its "
          "process has not run for so long); 'left' (has ended as it should); 'dead'; of a rank on "
          "another host, which is known by its connection alone, 'unwatched', or 'lost' when that "
          "has ended.")
      .def_ro("silence", &RankHealth::silence,
              "Seconds since its last heartbeat, as far as this process was running.")
      .def_ro("operation", &RankHealth::operation,
              "The call that it is in, as 'all_reduce'; '' outside of calls.")
      .def_ro("sequence", &RankHealth::number,
              "The number of the collective call that it is in or has made last.")
      .def_ro("seconds", &RankHealth::seconds, "Seconds in that call without progress.")
      .def_ro("waits_for", &RankHealth::waits_for,
              "The rank of this communicator that it waits for, or -1.")
      .def("__repr__", [](const RankHealth& health) {
        const std::string in = health.operation.empty()
                                   ? ""
                                   : cat(" in ", health.operation, " (call ", health.number, ")");
        return cat("<cuop.dist.RankHealth ", health.name(), in, ">");
      });
}

void bind_state(Class<Communicator>& type) {
  type.def_prop_ro("rank", &Communicator::rank, "This rank, 0 to size - 1.")
      .def_prop_ro("size", &Communicator::size, "The number of ranks.")
      .def_prop_ro("local_size", &Communicator::local_size, "Ranks on this host.")
      .def_prop_ro("exchange_ways", &Communicator::exchange_ways,
                   "Between processes: this rank's GPU, the ranks whose GPU memory it reads in "
                   "exchanges, those that NCCL brings it the elements of, and why the others' come "
                   "through the host. '' before the first exchange, and for threads, which read "
                   "all.")
      .def(
          "in_world",
          [](const Communicator& comm, int64_t rank) {
            dist::check_rank("in_world", rank, comm.size());
            return comm.in_world(checked(rank));
          },
          "rank"_a,
          "The number of a rank of this communicator in the one that it was split from in the end, "
          "by which CommunicationError names ranks.")
      .def_prop_ro(
          "kind", [](const Communicator& comm) { return std::string(comm.kind()); },
          "'self', 'thread', 'mpi' or 'socket'.")
      .def_prop_rw("timeout", &Communicator::timeout, &Communicator::set_timeout,
                   "Seconds that a wait lasts before it raises CommunicationError, 0 or more; inf "
                   "waits for ever.")
      .def_prop_ro("bytes_sent", &Communicator::bytes_sent,
                   "Bytes that this rank has sent to other ranks so far.")
      .def_prop_ro("failure", &Communicator::failure, nb::call_guard<nb::gil_scoped_release>(),
                   "Why the communicator is unusable until all ranks recover, or ''.")
      .def("abort", &Communicator::abort, "reason"_a, Released(),
           "Wakes all ranks that wait; they raise CommunicationError with the reason. Not "
           "collective.")
      .def("recover", &Communicator::recover, Released(),
           "All ranks meet after a failure and may go on. Collective; CommunicationError when one "
           "does not come within the timeout.")
      .def("health", &health,
           "What is known of every rank, in rank order: a list of RankHealth. Not collective; "
           "returns "
           "at once.")
      .def("shrink", &Communicator::shrink, Released(),
           "The communicator of the ranks that are left after a failure, in order and numbered "
           "anew. "
           "Collective over those; who is dead, has left, is stopped or does not come within the "
           "timeout is left out, and raises CommunicationError should it come all the same.")
      .def("barrier", &Communicator::barrier, Released(), "Returns when all ranks are here.")
      .def("split", &Communicator::split, "color"_a, "key"_a = 0, Released(),
           "The communicator of the ranks with the same color, ordered by key, then rank; None for "
           "a negative color. Collective.")
      .def("__repr__", [](const Communicator& comm) {
        return cat("<cuop.dist.Communicator ", comm.kind(), " rank ", comm.rank(), " of ",
                   comm.size(), ">");
      });
}

void bind_objects(Class<Communicator>& type) {
  type.def("broadcast", &broadcast, "object"_a.none(), "root"_a = 0,
           "Root's object on every rank: on root the object itself, elsewhere a copy. Objects "
           "travel "
           "pickled; one that cannot be pickled raises on all ranks. One that cannot be unpickled "
           "raises there, and on the others in their next call. So in the calls below.")
      .def("scatter", &scatter, "objects"_a.none() = nb::none(), "root"_a = 0,
           "The r-th of root's objects on rank r.")
      .def("gather", &gather, "object"_a.none(), "root"_a = 0,
           "The list of all ranks' objects on root, None elsewhere.")
      .def("all_gather", &all_gather, "object"_a.none(),
           "The list of all ranks' objects on every rank.")
      .def("send", &send, "object"_a.none(), "dst"_a, "tag"_a = 0,
           "Sends an object to rank `dst`, which calls recv with the same tag (0 to 65535).")
      .def("recv", &recv, "src"_a, "tag"_a = 0,
           "The next object that rank `src` sent with the tag.")
      .def("sendrecv", &sendrecv, "object"_a.none(), "dst"_a, "src"_a, "tag"_a = 0,
           "Sends to `dst` and receives from `src` at once; returns what came.");
}

}  // namespace

void bind_comm(Module& m) {
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const PythonFailure& failure) {
      failure.restore();
    }
  });
  bind_health(m);
  Class<Communicator> type(
      m, "Communicator",
      "Ranks that work together. All ranks call the same operations in the same order. A failure "
      "of one (an expired wait, an abort, its death) raises CommunicationError on all, until all "
      "have called `recover`; those that are left go on by `shrink`. One thread at a time uses a "
      "communicator of several ranks: a second one raises ExecutionError, the other ranks "
      "CommunicationError; `split` makes one for each.");
  bind_state(type);
  bind_objects(type);
  m.def("world", &dist::world, Released(),
        "The communicator of everybody who was started together: the thread's inside run_ranks, "
        "MPI under mpirun, TCP under torchrun, one rank alone otherwise.");
  m.def("run_ranks", &run_ranks, "work"_a, "ranks"_a,
        "Calls work(comm) on `ranks` threads, each a rank with its own communicator (also world() "
        "there); the list of what they returned. The first exception that a rank raised itself is "
        "raised here after it has ended the waits of the other ranks. Ctrl-C raises "
        "KeyboardInterrupt on all ranks; one that does not end within half a second is left to "
        "itself.");
  m.def("launcher", &launcher,
        "How this process was started: launcher ('openmpi', 'hydra', 'pmix', 'srun', 'torchrun' or "
        "'none'), rank, size, local_rank, local_size.");
  m.def("mpi_unavailable_reason", &dist::mpi_unavailable_reason,
        "'' when MPI can be used, else why not.");
}

}  // namespace cuop::python
