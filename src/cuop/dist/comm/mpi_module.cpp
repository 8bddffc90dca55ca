// libcuop_mpi.so: the Transport over MPI, the only file that knows MPI. Opened at run time by
// mpi.cpp, so libcuop itself needs no MPI.
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/dist/comm/transport.h"

namespace cuop::dist {

namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int64_t> chunk_bytes = int64_t{1} << 30;

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

void pause_for(int looks) {
  constexpr int kSpins = 20;
  constexpr int kYields = 200;
  if (looks < kSpins) return;
  if (looks < kYields) {
    sched_yield();
    return;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(std::min(100, looks - kYields)));
}

/// MPI's life in this process. It ends with MPI_Finalize, which waits for all ranks: after a
/// failure that nobody recovered from, some rank may never come, so the ranks first look for each
/// other for a while and leave without it when one is missing.
class Session {
 public:
  static Session& instance() {
    static Session* session = new Session;  // outlives every static that may still communicate
    return *session;
  }

  void set_failed(bool is_failed) noexcept { is_failed_ = is_failed; }

 private:
  Session() {
    int is_initialized = 0;
    MPI_Initialized(&is_initialized);
    if (is_initialized != 0) {
      if (!is_usable()) throw CommunicationError("mpi: MPI has been finalised in this process");
    } else {
      int provided = MPI_THREAD_SINGLE;
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      // MPICH lays a failed request that is done at their door, whatever communicator it was of.
      for (MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      }
      std::atexit([] { instance().finalize(); });
    }
    check(MPI_Comm_dup(MPI_COMM_WORLD, &farewell_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(farewell_, MPI_ERRORS_RETURN);
  }

  void finalize() noexcept {
    if (!is_usable()) return;
    if (!is_failed_ || all_have_come()) {
      MPI_Finalize();
      return;
    }
    log(LogLevel::kWarn, "mpi: leaving without MPI_Finalize, not all ranks end after the failure");
  }

  bool all_have_come() const noexcept {
    constexpr auto kPatience = std::chrono::seconds(5);
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Ibarrier(farewell_, &request) != MPI_SUCCESS) return false;
    const auto start = Clock::now();
    for (int looks = 0; Clock::now() - start < kPatience; ++looks) {
      int is_done = 0;
      if (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
      if (is_done != 0) return true;
      pause_for(looks);
    }
    return false;
  }

  MPI_Comm farewell_ = MPI_COMM_NULL;
  std::atomic<bool> is_failed_ = false;
};

/// Withdraws a request so that MPI leaves the buffer alone. A receive that has been matched cannot
/// be withdrawn but ends soon, as its sender is in the library too; a send that nobody ever takes
/// is let go: its epoch is over, so no receive will match it.
void give_up(MPI_Request& request, bool is_receive) noexcept {
  if (request == MPI_REQUEST_NULL || !is_usable()) return;
  constexpr auto kPatience = std::chrono::milliseconds(500);
  if (is_receive) MPI_Cancel(&request);
  const auto start = Clock::now();
  for (int looks = 0; request != MPI_REQUEST_NULL; ++looks) {
    int is_done = 0;
    if (MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
    if (is_done != 0) return;
    if (!is_receive && looks > 0) break;
    if (Clock::now() - start > kPatience) break;
    pause_for(looks);
  }
  MPI_Request_free(&request);
}

/// A message in chunks. All but the last are exactly the limit and the last is shorter (maybe
/// empty), so a receiver that expects another length sees a wrong chunk. Limit 8: 20 bytes travel
/// as 8 8 4, 16 bytes as 8 8 0.
class MpiRequest final : public Request {
 public:
  MpiRequest(bool is_receive, int64_t bytes) : is_receive_(is_receive), bytes_(bytes) {}
  ~MpiRequest() override {
    for (Chunk& chunk : chunks_) give_up(chunk.request, is_receive_);
  }
  MpiRequest(const MpiRequest&) = delete;
  MpiRequest& operator=(const MpiRequest&) = delete;

  template <class Post>
  void post(Post&& post_chunk) {
    const int64_t limit = chunk_bytes;
    chunks_.reserve(static_cast<size_t>(bytes_ / limit + 1));
    for (int64_t offset = 0; offset <= bytes_; offset += limit) {
      const int length = static_cast<int>(std::min(limit, bytes_ - offset));
      chunks_.push_back({MPI_REQUEST_NULL, length});
      post_chunk(offset, length, &chunks_.back().request);
    }
  }

  bool test() override {
    for (; done_ < chunks_.size(); ++done_) {
      Chunk& chunk = chunks_[done_];
      int is_done = 0;
      MPI_Status status;
      const int code = MPI_Test(&chunk.request, &is_done, &status);
      if (code != MPI_SUCCESS) {
        chunk.request = MPI_REQUEST_NULL;
        check_length(code);
        check(code, "MPI_Test");
      }
      if (is_done == 0) return false;
      if (is_receive_) {
        int length = 0;
        MPI_Get_count(&status, MPI_BYTE, &length);
        if (length != chunk.length) throw_length(cat("ends after ", moved() + length, " bytes"));
      }
    }
    return true;
  }

  int64_t moved() const override {
    return std::min(bytes_, static_cast<int64_t>(done_) * chunk_bytes.load());
  }

 private:
  struct Chunk {
    MPI_Request request;
    int length;
  };

  void check_length(int code) const {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(code, &error_class);
    if (is_receive_ && error_class == MPI_ERR_TRUNCATE) throw_length("is longer");
  }
  [[noreturn]] void throw_length(const std::string& what) const {
    throw CommunicationError(cat("expects ", bytes_, " bytes, the message ", what));
  }

  bool is_receive_;
  int64_t bytes_;
  std::vector<Chunk> chunks_;
  size_t done_ = 0;
};

/// A Control as it travels.
struct ControlWire {
  int32_t kind;
  int32_t blamed;
  int64_t epoch;
  char text[kControlText];
};
constexpr size_t kControlHead = offsetof(ControlWire, text);

class MpiTransport final : public Transport {
 public:
  /// Takes both communicators over.
  MpiTransport(MPI_Comm work, MPI_Comm control) : work_(work), control_(control) {
    for (MPI_Comm comm : {work_, control_}) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(work_, &rank_);
    MPI_Comm_size(work_, &size_);
    MPI_Comm host = MPI_COMM_NULL;
    check(MPI_Comm_split_type(work_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host),
          "MPI_Comm_split_type");
    MPI_Comm_size(host, &local_size_);
    MPI_Comm_free(&host);
    int* tag_limit = nullptr;
    int is_set = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &is_set);
    epochs_ = (static_cast<int64_t>(is_set != 0 ? *tag_limit : 32767) + 1) / kTagLimit;
    listen();
  }
  ~MpiTransport() override {
    if (!is_usable()) return;
    give_up(listening_, true);
    MPI_Comm_free(&control_);
    MPI_Comm_free(&work_);
  }
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }
  std::string_view kind() const override { return "mpi"; }

  std::unique_ptr<Request> post_send(const void* data, int64_t bytes,
                                     const Envelope& envelope) override {
    const int tag = mpi_tag(envelope);
    auto request = std::make_unique<MpiRequest>(false, bytes);
    request->post([&](int64_t offset, int length, MPI_Request* out) {
      check(MPI_Isend(static_cast<const char*>(data) + offset, length, MPI_BYTE, envelope.peer, tag,
                      work_, out),
            "MPI_Isend");
    });
    return request;
  }

  std::unique_ptr<Request> post_recv(void* data, int64_t bytes, const Envelope& envelope) override {
    const int tag = mpi_tag(envelope);
    auto request = std::make_unique<MpiRequest>(true, bytes);
    request->post([&](int64_t offset, int length, MPI_Request* out) {
      check(MPI_Irecv(static_cast<char*>(data) + offset, length, MPI_BYTE, envelope.peer, tag,
                      work_, out),
            "MPI_Irecv");
    });
    return request;
  }

  void send_control(int dst, const Control& message) noexcept override {
    // Short enough that MPI buffers it; the copy is kept until MPI says that it has.
    auto sent = std::make_unique<Sent>();
    sent->wire.kind = static_cast<int32_t>(message.kind);
    sent->wire.blamed = message.blamed;
    sent->wire.epoch = message.epoch;
    const size_t length = std::min(message.text.size(), kControlText);
    std::memcpy(sent->wire.text, message.text.data(), length);
    if (MPI_Isend(&sent->wire, static_cast<int>(kControlHead + length), MPI_BYTE, dst, 0, control_,
                  &sent->request) != MPI_SUCCESS) {
      return;
    }
    sent_.push_back(std::move(sent));
    std::erase_if(sent_, [](const auto& each) {
      int is_done = 0;
      MPI_Test(&each->request, &is_done, MPI_STATUS_IGNORE);
      return is_done != 0;
    });
  }

  std::optional<Control> poll_control() override {
    int is_done = 0;
    MPI_Status status;
    check(MPI_Test(&listening_, &is_done, &status), "MPI_Test");
    if (is_done == 0) return std::nullopt;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    Control message{status.MPI_SOURCE, static_cast<ControlKind>(heard_.kind), heard_.epoch,
                    heard_.blamed,
                    std::string(heard_.text, static_cast<size_t>(length) - kControlHead)};
    listen();
    return message;
  }

  void idle(int looks) override { pause_for(looks); }

  std::shared_ptr<Transport> split(int color, const SplitGroup& group) override {
    // All ranks have just met, so these collectives of MPI, which have no deadline, are short.
    const bool is_member = !group.members.empty();
    MPI_Comm work = MPI_COMM_NULL;
    check(MPI_Comm_split(work_, is_member ? color : MPI_UNDEFINED, group.rank, &work),
          "MPI_Comm_split");
    if (!is_member) return nullptr;
    MPI_Comm control = MPI_COMM_NULL;
    check(MPI_Comm_dup(work, &control), "MPI_Comm_dup");
    return std::make_shared<MpiTransport>(work, control);
  }

  void note_failure(bool is_failed) noexcept override { Session::instance().set_failed(is_failed); }

 private:
  struct Sent {
    ControlWire wire;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void listen() {
    check(MPI_Irecv(&heard_, sizeof(heard_), MPI_BYTE, MPI_ANY_SOURCE, 0, control_, &listening_),
          "MPI_Irecv");
  }

  int mpi_tag(const Envelope& envelope) const {
    if (envelope.epoch >= epochs_) {
      throw CommunicationError(cat("mpi: ", envelope.epoch, " recoveries used up this MPI's tags"));
    }
    return static_cast<int>(envelope.epoch * kTagLimit + envelope.tag);
  }

  MPI_Comm work_;
  MPI_Comm control_;
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
  int64_t epochs_ = 1;
  ControlWire heard_{};
  MPI_Request listening_ = MPI_REQUEST_NULL;
  std::vector<std::unique_ptr<Sent>> sent_;
};

}  // namespace

}  // namespace cuop::dist

extern "C" {

/// One transport a call: its communicators are its own.
void cuop_mpi_world(std::shared_ptr<cuop::dist::Transport>* out) {
  using namespace cuop::dist;
  Session::instance();
  MPI_Comm work = MPI_COMM_NULL;
  MPI_Comm control = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &work), "MPI_Comm_dup");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &control), "MPI_Comm_dup");
  *out = std::make_shared<MpiTransport>(work, control);
}

void cuop_mpi_set_chunk_bytes(int64_t bytes) {
  cuop::dist::chunk_bytes = std::min(bytes, int64_t{1} << 30);
}
}
