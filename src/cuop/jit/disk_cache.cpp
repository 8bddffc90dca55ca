#include "cuop/jit/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "cuop/core/cache_directory.h"
#include "cuop/core/error.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"
#include "cuop/jit/cache_entry.h"

namespace cuop::jit {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kEnding = ".kernel", kTemporary = ".tmp", kLock = ".lock";
constexpr std::string_view kTexts[] = {".cu", ".log"};
constexpr const char* kArchiveMagic = "cuop kernels 1\n";
/// What is left of a full cache: room for some entries before the next look.
constexpr double kKeptPart = 0.8;
/// Other processes add entries too: look at the directory again after so many.
constexpr int kSavesBetweenLooks = 64;
constexpr std::chrono::hours kStaleAge{1};

std::string file_name(const std::string& key) { return cat(key, kEnding); }

/// A file descriptor that is closed with its scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  int number_;
};

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool read_all(int file, std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

struct File {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

/// The files with this ending. Another process may remove some meanwhile.
std::vector<File> files_with(const std::string& directory, std::string_view ending) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().string().ends_with(ending)) continue;
    std::error_code gone;
    const auto used = at->last_write_time(gone);
    const auto bytes = static_cast<int64_t>(at->file_size(gone));
    if (!gone) files.push_back({at->path(), used, bytes});
  }
  return files;
}

}  // namespace

/// The right to make one entry, held by one thread of one process at a time. The lock belongs to
/// the open file, so the system takes it back from a process that ends in whatever way.
class DiskCache::Lock {
 public:
  Lock(const std::string& directory, const std::string& key)
      : path_((fs::path(directory) / cat(key, kLock)).string()) {}
  ~Lock() {
    if (file_ < 0) return;
    unlink(path_.c_str());  // before the lock goes, so that nobody gets it on a removed file
    close(file_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  enum class State { kMine, kTaken, kUnsupported };
  State attempt() {
    const int file = open(path_.c_str(), O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) return State::kUnsupported;
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
      const bool is_taken = errno == EWOULDBLOCK || errno == EINTR;
      close(file);
      return is_taken ? State::kTaken : State::kUnsupported;
    }
    struct stat mine {
    }, there{};
    if (fstat(file, &mine) != 0 || stat(path_.c_str(), &there) != 0 ||
        mine.st_ino != there.st_ino) {
      close(file);  // its owner before has removed it: whoever comes next makes a new one
      return State::kTaken;
    }
    file_ = file;
    return State::kMine;
  }

 private:
  std::string path_;
  int file_ = -1;
};

DiskCache::DiskCache(std::string directory, int64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {}

std::string DiskCache::problem() const { return directory_problem(directory_); }

void DiskCache::warn(const std::string& why) {
  if (has_warned_.exchange(true)) return;
  log(LogLevel::kWarn, "kernel cache: ", why, "; kernels are kept in memory only");
}

std::optional<std::string> DiskCache::read_entry(const std::string& name) {
  const Descriptor directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return std::nullopt;
  struct stat status {};
  // Asked of what is open, so that nothing can be put in its place in between.
  if (fstat(directory.get(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    warn(problem());
    return std::nullopt;
  }
  const Descriptor file(
      openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno != ENOENT) ++damaged_;
    return std::nullopt;
  }
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    ++damaged_;
    return std::nullopt;
  }
  std::string content(static_cast<size_t>(status.st_size), '\0');
  if (!read_all(file.get(), content)) {
    ++damaged_;
    return std::nullopt;
  }
  futimens(file.get(), nullptr);  // recently used
  return content;
}

std::optional<DiskCache::Binary> DiskCache::load(const std::string& key) {
  const auto content = read_entry(file_name(key));
  if (!content) return std::nullopt;
  auto entry = decode_entry(*content);
  if (!entry || entry->key != key) {
    ++damaged_;
    return std::nullopt;
  }
  return std::move(entry->binary);
}

void DiskCache::write_file(const std::string& name, const std::string& content) {
  if (const std::string why = make_private_directory(directory_); !why.empty()) return warn(why);
  static std::atomic<int64_t> serial = 0;
  const fs::path target = fs::path(directory_) / name;
  const std::string temporary =
      cat(target.string(), ".", getpid(), ".", serial.fetch_add(1), kTemporary);
  bool is_written = false;
  {
    const Descriptor file(
        open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
    is_written = file.is_open() && write_all(file.get(), content);
  }
  if (!is_written || rename(temporary.c_str(), target.c_str()) != 0) {
    warn(cat(directory_, " cannot be written"));
    unlink(temporary.c_str());
    return;
  }
  evict(static_cast<int64_t>(content.size()));
}

void DiskCache::save(const std::string& key, const std::string& name, const Binary& binary) {
  write_file(file_name(key), encode_entry(key, name, binary));
}

void DiskCache::save_text(const std::string& key, const char* ending, const std::string& text) {
  write_file(cat(key, ending), text);
}

DiskCache::Binary DiskCache::load_or_make(const std::string& key, const std::string& name,
                                          double patience, const Make& make) {
  const auto found = [&]() -> std::optional<Binary> {
    auto binary = load(key);
    if (binary) ++hits_;
    return binary;
  };
  if (auto binary = found()) return std::move(*binary);
  if (const std::string why = make_private_directory(directory_); !why.empty()) {
    warn(why);
    ++misses_;
    return make();
  }
  Lock lock(directory_, key);
  const auto deadline =
      Clock::now() + std::chrono::microseconds(static_cast<int64_t>(patience * 1e6));
  auto pause = std::chrono::microseconds(500);
  for (auto state = lock.attempt(); state == Lock::State::kTaken; state = lock.attempt()) {
    std::error_code error;
    if (fs::exists(fs::path(directory_) / file_name(key), error)) {
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

void DiskCache::evict(int64_t added) {
  const std::lock_guard lock(size_mutex_);
  const bool is_known = size_ >= 0 && ++saves_ % kSavesBetweenLooks != 0;
  size_ += added;
  if (is_known && size_ <= max_bytes_) return;

  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (const File& left : files_with(directory_, kTemporary)) {
    if (now - left.used > kStaleAge) fs::remove(left.path, error);
  }
  std::vector<File> files = files_with(directory_, kEnding);
  for (const std::string_view ending : kTexts) {
    for (File& text : files_with(directory_, ending)) files.push_back(std::move(text));
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  size_ = 0;
  for (const File& file : files) size_ += file.bytes;
  if (size_ <= max_bytes_) return;
  const auto wanted = static_cast<int64_t>(static_cast<double>(max_bytes_) * kKeptPart);
  for (const File& file : files) {
    if (size_ <= wanted) break;
    if (fs::remove(file.path, error)) ++evicted_;
    size_ -= file.bytes;
  }
}

std::vector<DiskCache::Entry> DiskCache::entries() {
  std::vector<Entry> result;
  if (!problem().empty()) return result;
  std::vector<File> files = files_with(directory_, kEnding);
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used > b.used; });
  for (const File& file : files) {
    struct stat status {};
    if (stat(file.path.c_str(), &status) != 0) continue;
    const auto content = read_entry(file.path.filename().string());
    const timespec times[2] = {status.st_atim, status.st_mtim};
    utimensat(AT_FDCWD, file.path.c_str(), times, AT_SYMLINK_NOFOLLOW);  // a look is no use
    const auto entry = content ? decode_entry(*content) : std::nullopt;
    if (!entry || file_name(entry->key) != file.path.filename()) continue;
    result.push_back({entry->key, entry->name, static_cast<int64_t>(content->size()),
                      entry->binary.made_in_ms, static_cast<int64_t>(status.st_mtim.tv_sec)});
  }
  return result;
}

int64_t DiskCache::clear() {
  if (!problem().empty()) return 0;
  std::error_code error;
  for (const std::string_view ending : {kTemporary, kLock, kTexts[0], kTexts[1]}) {
    for (const File& file : files_with(directory_, ending)) fs::remove(file.path, error);
  }
  int64_t count = 0;
  for (const File& file : files_with(directory_, kEnding)) {
    count += fs::remove(file.path, error) ? 1 : 0;
  }
  const std::lock_guard lock(size_mutex_);
  size_ = -1;
  return count;
}

int64_t DiskCache::export_to(const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  out << kArchiveMagic;
  int64_t count = 0;
  for (const Entry& entry : entries()) {
    const auto content = read_entry(file_name(entry.key));
    if (!content) continue;
    out << content->size() << "\n" << *content;
    ++count;
  }
  out.close();
  if (out.fail()) throw ExecutionError(cat("kernel cache: ", file, " cannot be written"));
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
  if (const std::string why = make_private_directory(directory_); !why.empty()) {
    throw ExecutionError(cat("kernel cache: ", why));
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
