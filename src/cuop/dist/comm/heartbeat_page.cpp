#include "cuop/dist/comm/heartbeat_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/hash.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

[[noreturn]] void throw_errno(const char* what) {
  throw CommunicationError(cat("heartbeat: ", what, ": ", std::generic_category().message(errno)));
}

/// Two processes have the same when the number of one is good for the other.
uint64_t this_host() {
  std::string boot(36, '\0');
  const Descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char numbering[64] = "";
  const bool is_known = file.is_open() && read_all(file.get(), boot) &&
                        readlink("/proc/self/ns/pid", numbering, sizeof(numbering) - 1) > 0;
  if (!is_known) throw_errno("this host cannot be told from others");
  return hash_text(cat(boot, numbering));
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

void HeartbeatPage::map(int protection) {
  void* const memory = mmap(nullptr, sizeof(Content), protection, MAP_SHARED, file_.get(), 0);
  if (memory != MAP_FAILED) content_ = static_cast<Content*>(memory);
}

void HeartbeatPage::unmap() noexcept {
  if (content_ != nullptr) munmap(content_, sizeof(Content));
  content_ = nullptr;
}

HeartbeatPage HeartbeatPage::make() {
  static_assert(std::atomic<int64_t>::is_always_lock_free);
  HeartbeatPage page;
  page.file_ = Descriptor(memfd_create("cuop-heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page.file_.is_open()) throw_errno("no page can be made");
  const int file = page.file_.get();
  if (fchmod(file, 0600) != 0 || ftruncate(file, sizeof(Content)) != 0) {
    throw_errno("the page cannot be sized");
  }
  page.map(PROT_READ | PROT_WRITE);
  if (!page.is_open()) throw_errno("the page cannot be mapped");
  new (page.content_) Content{};
  const std::string random = random_bytes(sizeof(page.place_.token));
  std::memcpy(page.place_.token, random.data(), random.size());
  for (size_t i = 0; i < 2; ++i) page.content_->token[i] = page.place_.token[i];
  // Its length stays, so that no reader is cut off, and nobody maps it for writing any more. A
  // system that knows no such seals has the page all the same.
  if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    throw_errno("it cannot be sealed");
  fcntl(file, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  page.place_.host = this_host();
  page.place_.process = getpid();
  page.place_.descriptor = file;
  return page;
}

HeartbeatPage HeartbeatPage::open(const PagePlace& place) {
  HeartbeatPage page;
  if (place.process <= 0 || place.descriptor < 0 || place.host != this_host()) return page;
  const std::string path = cat("/proc/", place.process, "/fd/", place.descriptor);
  page.file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!page.file_.is_open()) return page;
  struct stat status {};
  const int seals = fcntl(page.file_.get(), F_GET_SEALS);
  const bool is_page = fstat(page.file_.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                       status.st_uid == geteuid() && seals >= 0 && (seals & F_SEAL_SHRINK) != 0 &&
                       status.st_size == static_cast<off_t>(sizeof(Content));
  if (!is_page) return page;
  page.map(PROT_READ);
  if (!page.is_open()) return page;
  page.place_ = place;
  for (size_t i = 0; i < 2; ++i) {
    if (page.content_->token[i].load() == place.token[i]) continue;
    page.unmap();
    break;
  }
  return page;
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
                              int64_t number, bool is_collective) {
  int place = 0;
  while (content_->calls[place].is_taken.exchange(1, memory_order_acquire) != 0) {
    if (++place == kCalls) return -1;
  }
  Call& call = content_->calls[place];
  uint64_t name[2] = {};
  std::memcpy(name, operation.data(), std::min(operation.size(), sizeof(name)));
  call.change([&] {
    for (size_t i = 0; i < 2; ++i) call.name[i].store(name[i], memory_order_release);
    call.context.store(context, memory_order_release);
    call.epoch.store(epoch, memory_order_release);
    call.number.store(number, memory_order_release);
    call.is_collective.store(is_collective ? 1 : 0, memory_order_release);
    call.awaited.store(-1, memory_order_release);
    call.since.store(beats(), memory_order_release);
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
  noted.change([&] {
    for (auto& part : noted.name) part.store(0, memory_order_release);
  });
  noted.is_taken.store(0, memory_order_release);
}

}  // namespace cuop::dist
