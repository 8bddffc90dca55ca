// libcuop_mpi.so: the PacketWire over MPI, the only file that knows MPI. Opened at run time by
// mpi.cpp, so libcuop itself needs no MPI. Collectives of MPI, which have no deadline, are called
// while the ranks start and end, never between.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/home_process.h"
#include "cuop/core/log.h"
#include "cuop/core/noncopyable.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/copy.h"
#include "cuop/dist/comm/packet_hub.h"

namespace cuop::dist {

namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError(cat(call, " failed: ", std::string_view(text, size_t(length))));
}

bool is_usable() {
  int is_initialized = 0;
  int is_finalized = 0;
  MPI_Initialized(&is_initialized);
  MPI_Finalized(&is_finalized);
  return is_initialized != 0 && is_finalized == 0;
}

void check_usable() {
  if (!is_usable()) throw CommunicationError("mpi: MPI has been finalised in this process");
}

/// A request with the memory that it is about.
struct InFlight {
  Buffer memory;
  MPI_Request request = MPI_REQUEST_NULL;

  bool test(MPI_Status* status = MPI_STATUS_IGNORE) {
    int is_done = 0;
    check(MPI_Test(&request, &is_done, status), "MPI_Test");
    return is_done != 0;
  }
};
using InFlightPtr = std::unique_ptr<InFlight>;

/// What was given up while MPI still had it: its memory is kept until MPI is done with it.
class GivenUp {
 public:
  void take(InFlightPtr each, bool is_receive) noexcept {
    if (each->request == MPI_REQUEST_NULL || !is_usable()) {
      // After MPI's end nobody says when the memory is free.
      if (each->request != MPI_REQUEST_NULL) each.release();
      return;
    }
    if (is_receive) MPI_Cancel(&each->request);
    kept_.push_back(std::move(each));
  }
  void sweep() {
    std::erase_if(kept_, [](const InFlightPtr& each) { return each->test(); });
  }

 private:
  std::vector<InFlightPtr> kept_;
};

class MpiParcel final : public Parcel, private NonCopyable {
 public:
  MpiParcel(GivenUp& given_up, InFlightPtr in_flight, bool is_receive)
      : given_up_(given_up), in_flight_(std::move(in_flight)), is_receive_(is_receive) {}
  ~MpiParcel() override {
    if (!is_done_) given_up_.take(std::move(in_flight_), is_receive_);
  }

  bool test() override {
    if (is_done_) return true;
    MPI_Status status;
    if (!in_flight_->test(&status)) return false;
    is_done_ = true;
    if (is_receive_) {
      int length = 0;
      MPI_Get_count(&status, MPI_BYTE, &length);
      in_flight_->memory.bytes = length;
    }
    return true;
  }
  Buffer take() override { return std::move(in_flight_->memory); }

 private:
  GivenUp& given_up_;
  InFlightPtr in_flight_;
  bool is_receive_;
  bool is_done_ = false;
};

/// Receives for packets of any rank, posted before they come and tested in the order of posting,
/// in which MPI fills them.
class Inbox {
 public:
  Inbox(MPI_Comm comm, int64_t packet_bytes) : comm_(comm) {
    for (InFlight& slot : slots_) {
      slot.memory = Buffer(packet_bytes);
      listen(slot);
    }
  }

  std::optional<Packet> poll() {
    InFlight& slot = slots_[next_];
    MPI_Status status;
    if (!slot.test(&status)) return std::nullopt;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    Packet packet{status.MPI_SOURCE, Buffer(length)};
    copy_bytes(packet.content.data.get(), slot.memory.data.get(), length);
    listen(slot);
    next_ = (next_ + 1) % kSlots;
    return packet;
  }

 private:
  void listen(InFlight& slot) {
    check(MPI_Irecv(slot.memory.data.get(), static_cast<int>(slot.memory.bytes), MPI_BYTE,
                    MPI_ANY_SOURCE, 0, comm_, &slot.request),
          "MPI_Irecv");
  }

  static constexpr size_t kSlots = 16;
  MPI_Comm comm_;
  std::array<InFlight, kSlots> slots_;
  size_t next_ = 0;
};

MPI_Comm duplicate_of_world() {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

/// The lowest rank on each rank's host.
std::vector<int> find_hosts(MPI_Comm comm, int rank, int size) {
  MPI_Comm machine = MPI_COMM_NULL, host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine),
        "MPI_Comm_split_type");
  const int name = static_cast<int>(hash_text(env().host_name.value) & 0x7fffffff);
  check(MPI_Comm_split(machine, name, rank, &host), "MPI_Comm_split");
  MPI_Comm_free(&machine);
  int lowest = rank;
  check(MPI_Bcast(&lowest, 1, MPI_INT, 0, host), "MPI_Bcast");
  MPI_Comm_free(&host);
  std::vector<int> hosts(static_cast<size_t>(size));
  check(MPI_Allgather(&lowest, 1, MPI_INT, hosts.data(), 1, MPI_INT, comm), "MPI_Allgather");
  return hosts;
}

class MpiWire final : public PacketWire {
 public:
  MpiWire()
      : controls_(duplicate_of_world()),
        packets_(duplicate_of_world()),
        chunks_(duplicate_of_world()),
        control_inbox_(controls_, kControlPacket),
        packet_inbox_(packets_, kDataPacket) {
    MPI_Comm_rank(chunks_, &rank_);
    MPI_Comm_size(chunks_, &size_);
    hosts_ = find_hosts(chunks_, rank_, size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int host_of(int rank) const override { return hosts_[static_cast<size_t>(rank)]; }

  std::unique_ptr<Parcel> send_packet(int dst, Channel channel, Buffer content) override {
    return send(dst, 0, channel == Channel::kControl ? controls_ : packets_, std::move(content));
  }
  std::optional<Packet> poll_packet(Channel channel) override {
    check_usable();
    if (channel == Channel::kControl) given_up_.sweep();
    return (channel == Channel::kControl ? control_inbox_ : packet_inbox_).poll();
  }
  std::unique_ptr<Parcel> send_chunk(int dst, int tag, Buffer content) override {
    return send(dst, tag, chunks_, std::move(content));
  }
  std::unique_ptr<Parcel> receive_chunk(int src, int tag, Buffer space) override {
    check_usable();
    auto parcel = std::make_unique<InFlight>();
    parcel->memory = std::move(space);
    check(MPI_Irecv(parcel->memory.data.get(), static_cast<int>(parcel->memory.bytes), MPI_BYTE,
                    src, tag, chunks_, &parcel->request),
          "MPI_Irecv");
    return std::make_unique<MpiParcel>(given_up_, std::move(parcel), true);
  }

  void idle(int looks) override {
    constexpr int kSpins = 20;
    constexpr int kYields = 200;
    if (looks < kSpins) return;
    if (looks < kYields) {
      sched_yield();
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(100, looks - kYields)));
  }

 private:
  std::unique_ptr<Parcel> send(int dst, int tag, MPI_Comm comm, Buffer content) {
    check_usable();
    auto parcel = std::make_unique<InFlight>();
    parcel->memory = std::move(content);
    check(MPI_Isend(parcel->memory.data.get(), static_cast<int>(parcel->memory.bytes), MPI_BYTE,
                    dst, tag, comm, &parcel->request),
          "MPI_Isend");
    return std::make_unique<MpiParcel>(given_up_, std::move(parcel), false);
  }

  MPI_Comm controls_;
  MPI_Comm packets_;
  MPI_Comm chunks_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<int> hosts_;
  GivenUp given_up_;
  Inbox control_inbox_;
  Inbox packet_inbox_;
};

/// MPI's life in this process. MPI_Finalize waits for all ranks: after a failure that nobody
/// recovered from some rank may never come, so that the ranks say goodbye to each other first and
/// leave without it when one is missing. Where somebody else (mpi4py) started MPI they end it, and
/// the goodbye is said at the beginning of that.
class Session {
 public:
  static Session& instance() {
    static Session* session = new Session;  // outlives every static that may still communicate
    return *session;
  }

  const std::shared_ptr<PacketHub>& hub() const { return hub_; }
  uint64_t next_context() { return hash_text(cat("world ", ++worlds_)); }

 private:
  Session() {
    int is_initialized = 0;
    MPI_Initialized(&is_initialized);
    if (is_initialized != 0) {
      check_usable();
    } else {
      int provided = MPI_THREAD_SINGLE;
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      // MPICH lays a failed request that is done at their door, whatever communicator it was of.
      for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      }
      std::atexit([] { instance().finalize(); });
    }
    hub_ = std::make_shared<PacketHub>(std::make_unique<MpiWire>(), "mpi");
    // MPI_Finalize begins by deleting the attributes of this communicator.
    int key = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &at_finalize, &key, nullptr),
          "MPI_Comm_create_keyval");
    check(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
  }

  static int at_finalize(MPI_Comm, int, void*, void*) {
    instance().part();
    return MPI_SUCCESS;
  }

  bool part() noexcept {
    if (!has_parted_ && process_.is_here()) {
      has_parted_ = true;
      have_all_come_ = hub_->part();
    }
    return have_all_come_;
  }

  void finalize() noexcept {
    if (!process_.is_here() || !is_usable()) return;  // a fork's end is not this process's
    if (part()) {
      MPI_Finalize();
      return;
    }
    log(LogLevel::kWarn, "mpi: leaving without MPI_Finalize, not all ranks end after the failure");
  }

  const HomeProcess process_;
  std::shared_ptr<PacketHub> hub_;
  int64_t worlds_ = 0;
  bool has_parted_ = false;
  bool have_all_come_ = false;
};

}  // namespace

}  // namespace cuop::dist

extern "C" {

/// One transport a call, which all ranks make: its messages are its own.
void cuop_mpi_world(std::shared_ptr<cuop::dist::Transport>* out) {
  using namespace cuop::dist;
  Session& session = Session::instance();
  std::vector<int> everyone;
  for (int rank = 0; rank < session.hub()->size(); ++rank) everyone.push_back(rank);
  *out = make_group_transport(session.hub(), std::move(everyone), session.next_context());
}

void cuop_mpi_set_chunk_bytes(int64_t bytes) {
  cuop::dist::Session::instance().hub()->set_chunk_bytes(bytes);
}

void cuop_mpi_set_reads_memory(bool reads) {
  cuop::dist::Session::instance().hub()->set_reads_memory(reads);
}
}
