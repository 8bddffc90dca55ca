#include "cuop/dist/comm/heartbeat_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"
#include "cuop/memory/sealed_file.h"

namespace cuop::dist {

namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

[[noreturn]] void throw_heartbeat_errno(const char* what) {
  throw CommunicationError(cat("heartbeat: ", what, ": ", errno_text()));
}

/// Two processes have the same when the number of one is good for the other.
uint64_t this_host() {
  std::string boot(36, '\0');
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char numbering[64] = "";
  const bool is_known = file.is_open() && read_all(file.get(), boot) &&
                        readlink("/proc/self/ns/pid", numbering, sizeof(numbering) - 1) > 0;
  if (!is_known) throw_heartbeat_errno("this host cannot be told from others");
  return hash_text(cat(boot, numbering, env().host_name.value));
}

}  // namespace

/// Written by one thread of the owner; readers see by `version` (odd while it is written, another
/// one afterwards) whether what they have read belongs together.
struct HeartbeatPage::Call {
  std::atomic<uint32_t> is_taken;
  std::atomic<uint32_t> version;
  std::atomic<uint64_t> name[2];  // of the operation; zeros while there is none
  std::atomic<uint64_t> context;
  std::atomic<int64_t> epoch;
  std::atomic<int64_t> number;
  std::atomic<int32_t> is_collective;
  std::atomic<int32_t> awaited;
  std::atomic<int64_t> since;
  std::atomic<int32_t> root;
  std::atomic<int32_t> kinds;  // dtype, and op behind it
  std::atomic<int64_t> count;

  void set_name(std::string_view operation) {
    uint64_t words[2] = {};
    std::memcpy(words, operation.data(), std::min(operation.size(), sizeof(words)));
    for (size_t i = 0; i < 2; ++i) name[i].store(words[i], memory_order_release);
  }
  void set(const CallNote& note) {
    set_name(note.operation);
    context.store(note.context, memory_order_release);
    epoch.store(note.epoch, memory_order_release);
    number.store(note.number, memory_order_release);
    is_collective.store(note.is_collective ? 1 : 0, memory_order_release);
    awaited.store(note.awaited, memory_order_release);
    since.store(note.since, memory_order_release);
    root.store(note.shape.root, memory_order_release);
    kinds.store(note.shape.dtype | note.shape.op << 8, memory_order_release);
    count.store(note.shape.count, memory_order_release);
  }

  /// Runs `write` so that no reader takes half of it for the whole.
  template <class Write>
  void change(Write&& write) {
    const uint32_t before = version.load(memory_order_relaxed);
    version.store(before + 1, memory_order_relaxed);
    write();  // stores with release: who reads one of them sees the odd version too
    version.store(before + 2, memory_order_release);
  }
};

struct HeartbeatPage::Content {
  std::atomic<uint64_t> token[2];
  std::atomic<int64_t> beats;
  std::atomic<int64_t> shown;  // signs of life beside them
  std::atomic<int64_t> last_number;
  std::atomic<uint32_t> has_left;
  Call calls[kCalls];
};

HeartbeatPage::HeartbeatPage(HeartbeatPage&& other) noexcept
    : file_(std::move(other.file_)),
      place_(other.place_),
      content_(std::exchange(other.content_, nullptr)) {}

HeartbeatPage& HeartbeatPage::operator=(HeartbeatPage&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  file_ = std::move(other.file_);
  place_ = other.place_;
  content_ = std::exchange(other.content_, nullptr);
  return *this;
}

void HeartbeatPage::map(int protection, int kind) {
  const int file = file_.is_open() ? file_.get() : -1;
  void* const memory = mmap(nullptr, sizeof(Content), protection, kind, file, 0);
  if (memory != MAP_FAILED) content_ = static_cast<Content*>(memory);
}

void HeartbeatPage::unmap() noexcept {
  if (content_ != nullptr) munmap(content_, sizeof(Content));
  content_ = nullptr;
}

HeartbeatPage HeartbeatPage::make() {
  static_assert(std::atomic<int64_t>::is_always_lock_free);
  HeartbeatPage page;
  page.file_ = memory::make_sealed_file("cuop-heartbeat", sizeof(Content));
  if (!page.file_.is_open()) throw_heartbeat_errno("no page can be made");
  const int file = page.file_.get();
  page.map(PROT_READ | PROT_WRITE, MAP_SHARED);
  if (!page.is_open()) throw_heartbeat_errno("the page cannot be mapped");
  new (page.content_) Content{};
  const std::string random = random_bytes(sizeof(page.place_.token));
  std::memcpy(page.place_.token, random.data(), random.size());
  for (size_t i = 0; i < 2; ++i) page.content_->token[i] = page.place_.token[i];
  // Nobody maps it for writing any more. A system that knows no such seal has the page all the
  // same.
  fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  page.place_.host = this_host();
  page.place_.process = getpid();
  page.place_.descriptor = file;
  return page;
}

HeartbeatPage HeartbeatPage::open(const PagePlace& place) {
  HeartbeatPage page;
  if (place.process <= 0 || place.host != this_host()) return page;
  page.file_ = memory::open_sealed_file(place.process, place.descriptor, sizeof(Content),
                                        /*for_writing=*/false);
  if (!page.file_.is_open()) return page;
  page.map(PROT_READ, MAP_SHARED);
  if (!page.is_open()) return page;
  page.place_ = place;
  for (size_t i = 0; i < 2; ++i) {
    if (page.content_->token[i].load() == place.token[i]) continue;
    page.unmap();
    break;
  }
  return page;
}

HeartbeatPage HeartbeatPage::mirror(const PagePlace& place) {
  HeartbeatPage page;
  page.map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (!page.is_open()) throw_heartbeat_errno("another host's page cannot be kept");
  new (page.content_) Content{};
  page.place_ = place;
  return page;
}

PageState HeartbeatPage::state() const {
  return {beats(), content_->shown.load(memory_order_acquire), last_number(), has_left(), calls()};
}

void HeartbeatPage::show(const PageState& state) {
  for (size_t i = 0; i < kCalls; ++i) {
    Call& call = content_->calls[i];
    const bool is_there = i < state.calls.size();
    call.change([&] {
      if (is_there) call.set(state.calls[i]);
      if (!is_there) call.set_name("");
    });
  }
  content_->last_number.store(state.last_number, memory_order_relaxed);
  content_->shown.store(state.shown, memory_order_release);
  content_->beats.store(state.beats, memory_order_release);
  if (state.has_left) set_left();
}

int64_t HeartbeatPage::beats() const { return content_->beats.load(memory_order_acquire); }
bool HeartbeatPage::has_left() const { return content_->has_left.load(memory_order_acquire) != 0; }
int64_t HeartbeatPage::last_number() const {
  return content_->last_number.load(memory_order_relaxed);
}
void HeartbeatPage::beat() { content_->beats.fetch_add(1, memory_order_release); }
int64_t HeartbeatPage::signs_of_life() const {
  return beats() + content_->shown.load(memory_order_acquire);
}
void HeartbeatPage::show_life() { content_->shown.fetch_add(1, memory_order_release); }
void HeartbeatPage::set_left() { content_->has_left.store(1, memory_order_release); }

std::optional<CallNote> HeartbeatPage::read(const Call& call) const {
  const uint32_t before = call.version.load(memory_order_acquire);
  std::array<char, sizeof(call.name)> name{};
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t part = call.name[i].load(memory_order_acquire);
    std::memcpy(name.data() + i * sizeof(part), &part, sizeof(part));
  }
  CallNote note;
  note.context = call.context.load(memory_order_acquire);
  note.epoch = call.epoch.load(memory_order_acquire);
  note.number = call.number.load(memory_order_acquire);
  note.is_collective = call.is_collective.load(memory_order_acquire) != 0;
  note.awaited = call.awaited.load(memory_order_acquire);
  note.since = call.since.load(memory_order_acquire);
  const int32_t kinds = call.kinds.load(memory_order_acquire);
  note.shape = {call.root.load(memory_order_acquire), static_cast<uint8_t>(kinds & 0xff),
                static_cast<uint8_t>(kinds >> 8), call.count.load(memory_order_acquire)};
  const bool is_whole = before % 2 == 0 && call.version.load(memory_order_relaxed) == before;
  note.operation.assign(name.data(), strnlen(name.data(), name.size()));
  if (!is_whole || note.operation.empty()) return std::nullopt;
  return note;
}

std::vector<CallNote> HeartbeatPage::calls() const {
  std::vector<CallNote> notes;
  for (const Call& call : content_->calls) {
    if (auto note = read(call)) notes.push_back(std::move(*note));
  }
  return notes;
}

int HeartbeatPage::begin_call(std::string_view operation, uint64_t context, int64_t epoch,
                              int64_t number, bool is_collective, const CallShape& shape) {
  int place = 0;
  while (content_->calls[place].is_taken.exchange(1, memory_order_acquire) != 0) {
    if (++place == kCalls) return -1;
  }
  Call& call = content_->calls[place];
  call.change([&] {
    call.set({std::string(operation), context, epoch, number, is_collective, beats(), -1, shape});
  });
  content_->last_number.store(number, memory_order_relaxed);
  return place;
}

void HeartbeatPage::set_awaited(int call, int rank) {
  Call& noted = content_->calls[call];
  noted.change([&] {
    noted.awaited.store(rank, memory_order_release);
    noted.since.store(beats(), memory_order_release);
  });
}

void HeartbeatPage::end_call(int call) {
  Call& noted = content_->calls[call];
  noted.change([&] { noted.set_name(""); });
  noted.is_taken.store(0, memory_order_release);
}

}  // namespace cuop::dist
