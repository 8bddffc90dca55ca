// Ranks as an interface: a communicator moves bytes between ranks, and elements of tensors as they
// lie (`exchange`), but knows nothing of how tensors are distributed.
// Counts are int64; every wait has a deadline; every failure names its rank. Each call is
// collective unless it says otherwise: all ranks call the same operations in the same order. One
// thread a rank uses a communicator at a time; a second one fails it (`Use`).
//
// Failure is one rule everywhere: a CommunicationError raised by an operation (a deadline, a lost
// peer, a wrong length, an abort) leaves the communicator failed on all its ranks, also on those
// that come later; they raise too, until all of them have met in `recover`. A failed communicator
// fails those that were split from it, and its recovery recovers them. The other way round only
// when a rank is gone (it has died, has ended, or does not answer at a deadline): it is gone for
// all, so that the communicator fails that all of them were split from.
// What goes wrong with a rank's own GPU or memory in a call (ExecutionError, MemoryError, ...) that
// rank raises as it is, once it notices: work on GPUs goes on behind a call. The others raise a
// CommunicationError that names it, with the text.
// Wrong arguments (IndexError, ExecutionError, DTypeError) are refused before anything is sent.
// When all ranks refuse a collective call nothing has happened. When some do, the others raise a
// CommunicationError with the text, in that call or the next; a refused message is raised by ranks
// that wait for it.
//
// The rank that a CommunicationError names is counted in the communicator that the called one was
// split from in the end, whose ranks are processes or threads (`in_world`).
//
// A rank that is a process and has died, or has stopped for longer than CUOP_HEARTBEAT_TIMEOUT, or
// of whose host nothing was heard for so long, ends the waits that need it at once: those for its
// messages, and those of collective calls of communicators that it belongs to.
//
// Implementations: self (one rank), thread (N ranks as threads of one process), mpi, socket. They
// pass one conformance suite (tests/conformance/communicator_suite.h).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cuop/core/dtype.h"
#include "cuop/core/home_process.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/reduce_kind.h"
#include "cuop/core/stream.h"
#include "cuop/core/tensor.h"

namespace cuop::dist {

struct Machine;

/// A piece of a buffer in bytes: rank r's part in the uneven ("v") collectives.
struct Block {
  int64_t offset = 0;
  int64_t bytes = 0;
};

/// A tensor, any view of its memory, whose elements one rank sends and another receives.
struct Patch {
  int peer = 0;
  Tensor elements;
};

/// A collective call of one rank, with what it was given; the rest as it stands here.
struct Collective {
  enum class Kind : uint8_t {
    kBarrier,
    kBroadcast,
    kScatter,
    kGather,
    kAllGather,
    kAllToAll,
    kExchange,
    kReduce,
    kAllReduce,
    kReduceScatter,
    kSplit,
  };
  Kind kind = Kind::kBarrier;
  int root = 0;
  const void* send = nullptr;
  void* recv = nullptr;
  std::span<const Block> blocks = {};       ///< of all_to_all those that are sent
  std::span<const Block> recv_blocks = {};  ///< of all_to_all
  int64_t count = 0;                        ///< bytes of a broadcast, elements of a reduction
  std::span<const int64_t> counts = {};     ///< of reduce_scatter
  std::span<const Patch> sends = {};        ///< of exchange
  std::span<const Patch> receives = {};
  DType dtype = DType::kBool;
  ReduceKind op = ReduceKind::kSum;
  Stream stream = {};                   ///< of the device on which `send` and `recv` lie
  const Collective* step_of = nullptr;  ///< the call of which this is a step

  /// The call that was made: what its steps are named and told apart by.
  const Collective& whole() const { return step_of != nullptr ? *step_of : *this; }
  /// "all_to_all", also of its steps.
  const char* name() const;
  /// "root 0, count 12 of float32, sum": what must be the same on all ranks.
  std::string words() const;
};

/// What is known of a rank without asking it.
struct RankHealth {
  enum class State : uint8_t {
    kAlive,  ///< in a call or outside of one
    kStuck,  ///< in a call without progress for longer than the limit, and for no rank's sake that
             ///< could still come
    kStopped,    ///< alive, but its process does not run (SIGSTOP, a debugger)
    kLeft,       ///< has ended as it should
    kDead,       ///< has been killed or has crashed
    kUnwatched,  ///< on another host of which no heartbeat has come: known by its connection alone,
                 ///< and that is there
    kLost  ///< on another host, and its connection has ended, or nothing is heard of that host
  };
  State state = State::kAlive;
  double silence = 0.0;        ///< seconds since its last heartbeat, as far as this process ran
  std::string operation = {};  ///< that it is in: "all_reduce"; "" outside of calls
  int64_t number = 0;          ///< of the collective call that it is in or has made last
  double seconds = 0.0;        ///< in the operation, without progress
  int waits_for = -1;          ///< the rank of this communicator that it waits for

  /// "alive", "stuck", "stopped", "left", "dead", "unwatched" or "lost".
  const char* name() const;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// No other communicator of this process has it, or has had it.
  uint64_t number() const { return number_; }
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "self", "thread", "mpi" or "socket".
  virtual std::string_view kind() const = 0;
  /// Ranks that share this host (they divide its cores).
  virtual int local_size() const = 0;
  /// The number of a rank of this communicator in the one that it was split from in the end; the
  /// same where there is none.
  virtual int in_world(int rank) const = 0;

  // Point to point. `send` may return before the receiver has the data, but the buffer is free
  // again; messages of one (source, tag) pair arrive in order; tags
  // are 0 to 65535. A receive whose length differs from
  // the message's is a CommunicationError on the receiver.
  virtual void send(const void* data, int64_t bytes, int dst, int tag) = 0;
  virtual void recv(void* data, int64_t bytes, int src, int tag) = 0;
  /// Both at once, without deadlock, to and from any ranks (also oneself).
  virtual void sendrecv(const void* send_data, int64_t send_bytes, int dst, void* recv_data,
                        int64_t recv_bytes, int src, int tag) = 0;

  // Buffers of collectives lie in host memory or, with a stream of that device, on a GPU; ranks may
  // differ in that. A call on a GPU is work of its stream, as a kernel is: it sees what was
  // launched there before, and the buffers are free and filled for what is launched there later.
  // Only a communicator that moves the host's memory alone (`reaches`) waits for the stream.
  void barrier();
  /// Before: root holds `data`. After: all ranks hold it.
  void broadcast(void* data, int64_t bytes, int root, Stream stream = {});
  /// Before: root holds every block of `send`. After: rank r holds blocks[r] in `recv`.
  /// All ranks pass the same blocks.
  void scatter(const void* send, std::span<const Block> blocks, void* recv, int root,
               Stream stream = {});
  /// The inverse: rank r's `send` becomes blocks[r] of root's `recv`.
  void gather(const void* send, std::span<const Block> blocks, void* recv, int root,
              Stream stream = {});
  /// Rank r's `send` becomes blocks[r] of everybody's `recv`.
  void all_gather(const void* send, std::span<const Block> blocks, void* recv, Stream stream = {});
  /// send_blocks[r] of `send` goes to rank r; what rank r sent lands in recv_blocks[r] of `recv`.
  void all_to_all(const void* send, std::span<const Block> send_blocks, void* recv,
                  std::span<const Block> recv_blocks, Stream stream = {});
  /// The elements of each tensor that is sent to a peer land in the tensor that the peer receives:
  /// between two ranks the first in the first, and so on, each of one dtype and shape. Tensors are
  /// views of any layout on the stream's device; what is received overlaps nothing that is sent.
  void exchange(std::span<const Patch> sends, std::span<const Patch> receives, Stream stream = {});
  /// Element-wise over ranks, in rank order (the same bits on every rank and every run). `send` and
  /// `recv` may be the same buffer. Root alone gets the result.
  void reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op, int root,
              Stream stream = {});
  void all_reduce(const void* send, void* recv, int64_t count, DType dtype, ReduceKind op,
                  Stream stream = {});
  /// Reduces all, keeps counts[rank] elements on each rank, in rank order.
  void reduce_scatter(const void* send, void* recv, std::span<const int64_t> counts, DType dtype,
                      ReduceKind op, Stream stream = {});

  /// Whether collectives take buffers of the device as they are; else they are copied to
  /// page-locked host memory, and what arrives there to the device.
  virtual bool reaches(Device device) const { return device.is_cpu(); }
  /// Whether `run` takes exchanges as they are, the same on all ranks; else they are packed, and
  /// travel in an all_to_all. Collective when it is asked for the first time, with the stream of
  /// the call.
  virtual bool exchanges_tensors(Stream /*stream*/) { return false; }
  /// This rank's GPU, whose memory it reads in exchanges, and why not the others'; for people. ""
  /// before the first exchange, and where nothing is to be found out.
  virtual std::string exchange_ways() const { return ""; }
  /// Whether exchanges read GPU memory of other ranks, the same on all of them; false before the
  /// first exchange. Then collective calls with a buffer on some rank's GPU do so as well when they
  /// are of `mapped_from` bytes or more; shorter ones go through page-locked host memory, which
  /// takes less time.
  virtual bool maps_gpu_memory() const { return false; }
  /// The tensor, or a copy where others cannot read its memory: exchanges that send a part of it
  /// each would copy their parts, beside whatever the GPU does then.
  virtual Tensor readable_by_others(const Tensor& tensor) const { return tensor; }
  /// Collective, behind an exchange: each rank's tensors as this rank's GPU reads them where they
  /// lie, by rank and place, as bytes; undefined those that it does not read, and its own. All give
  /// as many, lines of bytes or undefined ones. What stands in them is up to their owners, who may
  /// let go of them.
  virtual std::vector<std::vector<Tensor>> map_memory(std::span<const Tensor> mine);
  /// The same on all ranks.
  void set_mapped_from(int64_t bytes) { mapped_from_ = bytes; }
  /// Whether every rank has a GPU that it can use. Collective when it is asked for the first time.
  bool have_gpus();

  /// What planning knows about these ranks (exec/calibration.h), of root's calls on host memory and
  /// on GPUs, of calls on parts and of copies between GPUs: the same on all of them, null before
  /// they have agreed on it.
  enum class Figures : uint8_t { kHost, kGpu, kParts, kPeers };
  std::shared_ptr<const Machine>& figures(Figures of) { return figures_[static_cast<size_t>(of)]; }

  /// A communicator of the ranks that pass the same colour, ordered by key then rank; null for a
  /// negative colour.
  virtual std::shared_ptr<Communicator> split(int color, int key) = 0;

  /// Seconds a wait lasts before it raises; initially CUOP_COMM_TIMEOUT. ExecutionError unless 0 or
  /// more.
  double timeout() const { return timeout_; }
  void set_timeout(double seconds);

  /// For callers that find a wrong argument before they can make the call. This rank refuses the
  /// next collective call: the others raise with the text unless they refuse it too. Not
  /// collective.
  virtual void refuse_call(const std::string& text) noexcept = 0;
  /// It refuses to send or receive a message: ranks that wait for it to do so raise.
  virtual void refuse_message(const std::string& text) noexcept = 0;

  /// Not collective: wakes every rank that waits here or will wait here; they raise
  /// CommunicationError naming this rank and the reason, until all ranks have called `recover`.
  void abort(const std::string& reason) noexcept { abort_for(-1, reason); }
  /// The same because of another rank, counted among all that were started together, whom the
  /// errors name then; -1: of this one.
  virtual void abort_for(int failed, const std::string& reason) noexcept = 0;
  /// "" while usable, else why not. Not collective.
  virtual std::string failure() const = 0;
  /// Whether this rank knows of the present failure already: it caused it or an operation raised
  /// it here. A rank that does not know yet must raise before it recovers, else its next call would
  /// meet the others' call after. Not collective.
  virtual bool is_failure_reported() const = 0;
  /// Collective; all ranks meet after a failure and may go on. Throws CommunicationError when some
  /// rank does not come within the deadline, has ended, or has called `shrink`.
  virtual void recover() = 0;

  /// What is known of every rank here. Not collective, sends nothing and returns at once. Ranks
  /// that are processes watch each other by a heartbeat (heartbeat.h), on several hosts too.
  virtual std::vector<RankHealth> health() const = 0;
  /// Collective over the ranks that are left after a failure: a communicator of them, in order and
  /// numbered anew, by which its errors name ranks. Ranks that are dead, have left or do not run,
  /// or that do not come within the deadline, are left out; all who go on agree on that, whoever
  /// dies meanwhile. A rank that was left out and comes all the same raises CommunicationError; so
  /// do all when some have called `recover`, unless this rank has done so in vain before.
  /// What was split from this communicator stays failed with it.
  virtual std::shared_ptr<Communicator> shrink() = 0;

  /// The calls of this thread, which are one inside another, while it lives; first of all
  /// `check_process`. Where another thread is in a call, the communicator fails on all ranks and
  /// this thread raises ExecutionError. A rank alone waits for nobody: it may be used by several.
  class Use : NonCopyable {
   public:
    Use(Communicator& comm, std::string_view who);
    ~Use();

   private:
    Communicator* entered_ = nullptr;  // null inside another call
  };

  /// CommunicationError in a child of fork, whose calls would be taken for those of the rank that
  /// it was forked from; of a rank alone there is nobody to take them.
  void check_process(std::string_view who) const;
  /// Whether this is the process of the rank.
  bool is_at_home() const;

  /// Raises what the GPU that this rank's calls have used last has come to its end by, where it
  /// has.
  void check_gpu() const;
  /// What an error that this rank has met in a call comes from: itself, or a CommunicationError of
  /// which the others are told too, when it was the GPU of another rank that has failed.
  virtual std::exception_ptr cause_of(std::exception_ptr error) { return error; }

  /// Bytes this rank has sent to other ranks so far.
  int64_t bytes_sent() const { return bytes_sent_; }
  /// The same to each rank; empty before the first.
  const std::vector<int64_t>& bytes_sent_to() const { return bytes_sent_to_; }
  /// Seconds that this rank has been in collective calls so far, waiting for others included. On
  /// GPUs a call returns before its work is done, unless this rank had to wait for it.
  double seconds_in_calls() const { return seconds_in_calls_; }

 protected:
  explicit Communicator(double timeout);
  void note_sent(int dst, int64_t bytes);
  /// Counts begin with these.
  void set_sent(int64_t bytes, std::vector<int64_t> to);
  /// While it lives nothing is noted: what ranks tell each other to do what callers asked for.
  class Uncounted : NonCopyable {
   public:
    explicit Uncounted(Communicator& comm) : comm_(comm), before_(comm.is_counting_) {
      comm_.is_counting_ = false;
    }
    ~Uncounted() { comm_.is_counting_ = before_; }

   private:
    Communicator& comm_;
    bool before_;
  };
  /// A collective call but split, whose arguments have been checked.
  virtual void run(const Collective& call) = 0;

  double timeout_;

 private:
  class CallTime;

  void check_and_run(const Collective& call);
  /// Whether the call goes by exchanges of tensors (by_exchange.h); all ranks have made the same.
  bool goes_by_exchange(const Collective& call);
  void note_gpu(Stream stream);

  int64_t bytes_sent_ = 0;
  std::vector<int64_t> bytes_sent_to_;
  double seconds_in_calls_ = 0.0;
  bool is_timed_ = false;    // within a call
  bool is_counting_ = true;  // bytes
  std::optional<bool> have_gpus_;
  int64_t mapped_from_ = int64_t{64} << 10;
  Device gpu_ = kCpu;  // that calls have used last; the host before they have used any
  std::atomic<std::thread::id> user_ = {};  // whose calls these are now
  static uint64_t next_number();
  const uint64_t number_ = next_number();
  std::array<std::shared_ptr<const Machine>, 4> figures_;
  const HomeProcess process_;  // the rank's
};

}  // namespace cuop::dist
