#include "cuop/memory/mapped_file.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <utility>

#include "cuop/core/divide_up.h"
#include "cuop/core/error.h"
#include "cuop/core/fork_mutex.h"
#include "cuop/core/text.h"

namespace cuop::memory {

/// One of a list that grows and is reused but never freed: the handler walks it at any moment.
struct MappedRange {
  std::atomic<uintptr_t> begin = 0;  ///< of the pages; 0 while the entry is not in use
  std::atomic<uintptr_t> end = 0;
  std::atomic<bool> is_lost = false;
  MappedRange* next = nullptr;
  // Below: under the mutex, not for the handler.
  int descriptor = -1;
  int64_t file_end = 0;  ///< the file is whole while it is at least so long
  std::string name;
};

namespace {

constinit ForkMutex mutex;
std::atomic<MappedRange*> first = nullptr;
std::atomic<uint64_t> lost_pages = 0;
struct sigaction handler_before {};
/// The thread whose signal the handler before ours has: it may hand it back.
std::atomic<pid_t> passing_thread = 0;

uintptr_t page_size() {
  static const auto size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

MappedRange* find(uintptr_t address) {
  for (MappedRange* range = first; range != nullptr; range = range->next) {
    const uintptr_t begin = range->begin;
    if (begin != 0 && address >= begin && address < range->end) return range;
  }
  return nullptr;
}

/// The file ends before this page: zeros take its place and that of all behind it. By the system's
/// own call: what a sanitizer puts in front of mmap would take other threads' reads for a race with
/// it.
bool replace_lost_pages(MappedRange& range, uintptr_t address) {
  const uintptr_t page = address / page_size() * page_size();
  const long made = syscall(SYS_mmap, page, range.end - page, PROT_READ,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, off_t{0});
  if (made == -1) return false;
  range.is_lost = true;
  ++lost_pages;
  return true;
}

/// To the handler before ours, or the system where there is none, or where that one, which may have
/// come between two mappings and keep ours as the one before it, hands the signal back.
void pass_on(int signal, siginfo_t* info, void* context) {
  const bool has_information = (handler_before.sa_flags & SA_SIGINFO) != 0;
  const bool is_default = !has_information && (handler_before.sa_handler == SIG_DFL ||
                                               handler_before.sa_handler == SIG_IGN);
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  if (is_default || passing_thread == self) {
    ::signal(signal, SIG_DFL);  // the read is tried again and ends the process
    if (info->si_code <= 0) raise(signal);
    return;
  }
  passing_thread = self;
  if (has_information) {
    handler_before.sa_sigaction(signal, info, context);
  } else {
    handler_before.sa_handler(signal);
  }
  passing_thread = 0;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  MappedRange* const range = info->si_code == BUS_ADRERR ? find(address) : nullptr;
  if (range != nullptr && replace_lost_pages(*range, address)) {
    errno = error;
    return;
  }
  pass_on(signal, info, context);
}

/// Called for every mapping: another handler may have come since the last one.
void handle_bus_errors() {
  struct sigaction now {};
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_bus_error) return;
  page_size();
  handler_before = now;
  struct sigaction ours {};
  ours.sa_sigaction = &on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGBUS, &ours, nullptr);
}

MappedRange& unused_range() {
  for (MappedRange* range = first; range != nullptr; range = range->next) {
    if (range->begin == 0) return *range;
  }
  auto* made = new MappedRange;
  made->next = first;
  first = made;
  return *made;
}

bool is_shorter(int descriptor, int64_t bytes) {
  struct stat now {};
  return fstat(descriptor, &now) != 0 || now.st_size < bytes;
}

}  // namespace

MappedFile::MappedFile(int descriptor, int64_t offset, int64_t bytes, std::string name) {
  const auto fail = [&](const std::string& why) {
    throw ExecutionError(cat("mapped file: ", name, " ", why));
  };
  const int64_t end = offset + bytes;
  if (offset < 0 || bytes <= 0 || is_shorter(descriptor, end)) {
    fail(cat("is shorter than the ", end, " bytes that are needed"));
  }
  const auto skipped = static_cast<uintptr_t>(offset) % page_size();
  const size_t length = static_cast<size_t>(bytes) + skipped;
  const int own = dup(descriptor);
  void* const pages = own < 0 ? MAP_FAILED
                              : mmap(nullptr, length, PROT_READ, MAP_PRIVATE, own,
                                     offset - static_cast<int64_t>(skipped));
  if (pages == MAP_FAILED) {
    const int error = errno;
    if (own >= 0) close(own);
    fail(cat("cannot be mapped: ", errno_text(error)));
  }
  const std::lock_guard lock(mutex);
  handle_bus_errors();
  range_ = &unused_range();
  range_->descriptor = own;
  range_->file_end = end;
  range_->name = std::move(name);
  range_->is_lost = false;
  const auto begin = reinterpret_cast<uintptr_t>(pages);
  range_->end = begin + round_up(length, page_size());
  range_->begin = begin;
  data_ = static_cast<std::byte*>(pages) + skipped;
}

MappedFile::~MappedFile() {
  const std::lock_guard lock(mutex);
  const uintptr_t begin = range_->begin, end = range_->end;
  munmap(reinterpret_cast<void*>(begin), end - begin);
  range_->begin = 0;
  close(range_->descriptor);
}

uint64_t lost_page_count() noexcept { return lost_pages.load(std::memory_order_relaxed); }

std::optional<std::string> cut_off_file(const void* address) {
  const std::lock_guard lock(mutex);
  if (address != nullptr) {
    MappedRange* const range = find(reinterpret_cast<uintptr_t>(address));
    if (range == nullptr) return std::nullopt;
    const bool is_cut_off = range->is_lost || is_shorter(range->descriptor, range->file_end);
    return is_cut_off ? std::optional(range->name) : std::nullopt;
  }
  for (MappedRange* range = first; range != nullptr; range = range->next) {
    if (range->begin != 0 && range->is_lost) return range->name;
  }
  return std::nullopt;
}

}  // namespace cuop::memory
