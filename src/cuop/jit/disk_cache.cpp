#include "cuop/jit/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <ranges>
#include <sstream>
#include <thread>

#include "cuop/core/error.h"
#include "cuop/core/file_replacement.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/jit/cache_entry.h"

namespace cuop::jit {

namespace {

using Missing = PrivateDirectory::Missing;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kEnding = ".kernel", kLock = ".lock";
/// Each text begins so, which tells it from a file that somebody else put there.
constexpr std::string_view kTextHeader = "// cuop kernel text 1\n";
constexpr const char* kArchiveMagic = "cuop kernels 1\n";
/// What is left of a full cache: room for some entries before the next look.
constexpr double kKeptPart = 0.8;
/// Other processes add entries too: look at the directory again after so many.
constexpr int kSavesBetweenLooks = 64;
constexpr std::chrono::hours kStaleAge{1};

/// What the cache may keep and remove: entries and texts.
constexpr PrivateDirectory::Kind kEntries[] = {{kEnding, kEntryHeader}};
constexpr PrivateDirectory::Kind kKinds[] = {
    kEntries[0], {".cu", kTextHeader}, {".log", kTextHeader}};
constexpr PrivateDirectory::Kind kLocks[] = {{kLock, ""}};

std::string file_name(const std::string& key) { return cat(key, kEnding); }

}  // namespace

/// The right to make one entry, held by one thread of one process at a time. The lock belongs to
/// the open file, so the system takes it back from a process that ends in whatever way.
class DiskCache::Lock {
 public:
  Lock(const PrivateDirectory& directory, std::string name)
      : directory_(directory), name_(std::move(name)) {}
  ~Lock() {
    // Removed before the lock goes, so that nobody gets it on a removed file.
    if (file_.is_open()) directory_.remove(name_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  enum class State { kMine, kTaken, kUnsupported };
  State attempt() {
    Descriptor file(openat(directory_.descriptor(), name_.c_str(),
                           O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open()) return State::kUnsupported;
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      return errno == EWOULDBLOCK || errno == EINTR ? State::kTaken : State::kUnsupported;
    }
    struct stat mine {
    }, there{};
    if (fstat(file.get(), &mine) != 0 ||
        fstatat(directory_.descriptor(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        mine.st_ino != there.st_ino) {
      return State::kTaken;  // its owner before has removed it: whoever comes next makes a new one
    }
    file_ = std::move(file);
    return State::kMine;
  }

 private:
  const PrivateDirectory& directory_;
  const std::string name_;
  Descriptor file_;
};

DiskCache::DiskCache(std::string directory, int64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {}

PrivateDirectory DiskCache::open(PrivateDirectory::Missing missing) const {
  return PrivateDirectory::open(directory_, missing);
}

std::string DiskCache::problem() const { return open(Missing::kLeave).problem(); }

void DiskCache::warn(const std::string& why) {
  if (has_warned_.exchange(true)) return;
  log(LogLevel::kWarn, "kernel cache: ", why, "; kernels are kept in memory only");
}

std::optional<std::string> DiskCache::read_entry(const PrivateDirectory& directory,
                                                 const std::string& name,
                                                 PrivateDirectory::Use use) {
  if (!directory.problem().empty()) warn(directory.problem());
  std::string content;
  const auto answer = directory.read(name, use, content);
  if (answer == PrivateDirectory::Answer::kRefused) ++damaged_;
  return answer == PrivateDirectory::Answer::kRead ? std::optional(std::move(content))
                                                   : std::nullopt;
}

std::optional<DiskCache::Binary> DiskCache::load(const std::string& key) {
  return load(open(Missing::kLeave), key);
}

std::optional<DiskCache::Binary> DiskCache::load(const PrivateDirectory& directory,
                                                 const std::string& key) {
  const auto content = read_entry(directory, file_name(key), PrivateDirectory::Use::kUse);
  if (!content) return std::nullopt;
  auto entry = decode_entry(*content);
  if (!entry || entry->key != key) {
    ++damaged_;
    return std::nullopt;
  }
  return std::move(entry->binary);
}

void DiskCache::write_file(const std::string& name, const std::string& content) {
  const PrivateDirectory directory = open(Missing::kMake);
  if (!directory.is_open()) return warn(directory.problem());
  if (!directory.write(name, content)) return warn(cat(directory_, " cannot be written"));
  evict(directory, static_cast<int64_t>(content.size()));
}

void DiskCache::save(const std::string& key, const std::string& name, const Binary& binary) {
  write_file(file_name(key), encode_entry(key, name, binary));
}

void DiskCache::save_text(const std::string& key, const char* ending, const std::string& text) {
  write_file(cat(key, ending), cat(kTextHeader, text));
}

DiskCache::Binary DiskCache::load_or_make(const std::string& key, const std::string& name,
                                          double patience, const Make& make) {
  const PrivateDirectory directory = open(Missing::kMake);
  const auto found = [&]() -> std::optional<Binary> {
    auto binary = load(directory, key);
    if (binary) ++hits_;
    return binary;
  };
  if (auto binary = found()) return std::move(*binary);
  if (!directory.is_open()) {
    ++misses_;
    return make();
  }
  Lock lock(directory, cat(key, kLock));
  const auto deadline =
      Clock::now() + std::chrono::microseconds(static_cast<int64_t>(patience * 1e6));
  auto pause = std::chrono::microseconds(500);
  for (auto state = lock.attempt(); state == Lock::State::kTaken; state = lock.attempt()) {
    if (directory.contains(file_name(key))) {
      if (auto binary = found()) return std::move(*binary);
    }
    if (Clock::now() >= deadline) {
      ++impatient_;
      break;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(20));
  }
  // Somebody may have finished it between the first look and the lock.
  if (auto binary = found()) return std::move(*binary);
  ++misses_;
  Binary binary = make();
  save(key, name, binary);
  return binary;
}

void DiskCache::evict(const PrivateDirectory& directory, int64_t added) {
  const std::lock_guard lock(size_mutex_);
  const bool is_known = size_ >= 0 && ++saves_ % kSavesBetweenLooks != 0;
  size_ += added;
  if (is_known && size_ <= max_bytes_) return;

  directory.remove_unfinished(kKinds, kStaleAge);
  const auto files = directory.files(kKinds);
  size_ = 0;
  for (const auto& file : files) size_ += file.bytes;
  if (size_ <= max_bytes_) return;
  const auto wanted = static_cast<int64_t>(static_cast<double>(max_bytes_) * kKeptPart);
  for (const auto& file : files) {
    if (size_ <= wanted) break;
    if (directory.remove(file.name)) ++evicted_;
    size_ -= file.bytes;
  }
}

std::vector<DiskCache::Entry> DiskCache::entries() {
  const PrivateDirectory directory = open(Missing::kLeave);
  std::vector<Entry> result;
  const auto files = directory.files(kEntries);
  for (const auto& file : std::views::reverse(files)) {
    const auto content = read_entry(directory, file.name, PrivateDirectory::Use::kLook);
    const auto entry = content ? decode_entry(*content) : std::nullopt;
    if (!entry || file_name(entry->key) != file.name) continue;
    result.push_back({entry->key, entry->name, static_cast<int64_t>(content->size()),
                      entry->binary.made_in_ms, file.used_ns / 1'000'000'000});
  }
  return result;
}

int64_t DiskCache::clear() {
  const PrivateDirectory directory = open(Missing::kLeave);
  int64_t count = 0;
  directory.remove_unfinished(kKinds, std::chrono::seconds(0));
  for (const auto& file : directory.files(kKinds)) {
    if (directory.remove(file.name) && file.name.ends_with(kEnding)) ++count;
  }
  // Of processes that were killed; one that is held goes with its holder.
  for (const auto& left : directory.files(kLocks)) Lock(directory, left.name).attempt();
  const std::lock_guard lock(size_mutex_);
  size_ = -1;
  return count;
}

int64_t DiskCache::export_to(const std::string& file) {
  FileReplacement out("kernel cache", file);
  out.write(kArchiveMagic);
  const PrivateDirectory directory = open(Missing::kLeave);
  int64_t count = 0;
  for (const Entry& entry : entries()) {
    const auto content = read_entry(directory, file_name(entry.key), PrivateDirectory::Use::kLook);
    if (!content) continue;
    out.write(cat(content->size(), "\n"));
    out.write(*content);
    ++count;
  }
  out.commit();
  return count;
}

int64_t DiskCache::import_from(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string archive = text.str();
  if (!in || archive.rfind(kArchiveMagic, 0) != 0) {
    throw ExecutionError(cat("kernel cache: ", file, " is no file that 'export' wrote"));
  }
  if (const PrivateDirectory directory = open(Missing::kMake); !directory.is_open()) {
    throw ExecutionError(cat("kernel cache: ", directory.problem()));
  }
  int64_t count = 0;
  for (size_t at = std::string_view(kArchiveMagic).size(); at < archive.size();) {
    const size_t end = archive.find('\n', at);
    const auto size = static_cast<size_t>(std::strtoull(archive.c_str() + at, nullptr, 10));
    if (end == std::string::npos || size == 0 || size > archive.size() - end - 1) {
      throw ExecutionError(
          cat("kernel cache: ", file, " is cut short after ", count, " kernels, which were taken"));
    }
    const std::string content = archive.substr(end + 1, size);
    at = end + 1 + size;
    const auto entry = decode_entry(content);
    if (!entry || entry->key.find_first_not_of("0123456789abcdef") != std::string::npos) {
      ++damaged_;
      continue;
    }
    write_file(file_name(entry->key), content);
    ++count;
  }
  return count;
}

DiskCache::Statistics DiskCache::statistics() const {
  return {hits_, misses_, damaged_, evicted_, impatient_};
}

}  // namespace cuop::jit
