#include "cuop/core/file_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <ranges>
#include <vector>

#include "cuop/core/text.h"

namespace cuop {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::hours kStaleAge{1};
/// Other processes add files too: look at the directory again after so many.
constexpr int kWritesBetweenLooks = 64;
/// Others may remove the directory, or on some file systems a file, before it has its name.
constexpr int kWriteAttempts = 64;

/// A directory and those on the way to it that are missing, the last first.
std::vector<fs::path> missing_directories(const std::string& path) {
  std::error_code unknown;
  std::vector<fs::path> missing;
  for (fs::path at = fs::absolute(path, unknown); !unknown && at.has_relative_path();
       at = at.parent_path()) {
    if (fs::exists(at, unknown)) break;
    unknown.clear();
    missing.push_back(at);
  }
  return missing;
}

}  // namespace

std::string FileStore::problem() const {
  const auto missing = missing_directories(path());
  const std::string why = obstacle();
  for (const fs::path& each : missing) rmdir(each.c_str());  // of those that are empty still
  return why;
}

std::string FileStore::obstacle() const {
  const PrivateDirectory directory = open(Missing::kMake);
  if (!directory.is_open()) return directory.problem();
  if (faccessat(directory.descriptor(), ".", W_OK | X_OK, AT_EACCESS) == 0) return "";
  return cat(path(), " cannot be written to: ", errno_text());
}

std::string FileStore::write(const std::string& name, std::string_view content) {
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    const PrivateDirectory directory = open(Missing::kMake);
    if (!directory.is_open()) return directory.problem();
    if (directory.write(name, content)) {
      evict(directory, static_cast<int64_t>(content.size()));
      return "";
    }
    if (errno != ENOENT) break;  // it was not taken away meanwhile
  }
  return cat(path(), " cannot be written: ", errno_text());
}

void FileStore::visit(const std::function<void(const PrivateDirectory::File& file,
                                               const std::string& content)>& look) const {
  const PrivateDirectory directory = open(Missing::kLeave);
  std::string content;
  for (const auto& file : std::views::reverse(directory.files({options_.kinds.data(), 1}))) {
    if (directory.read(file.name, content) == PrivateDirectory::ReadStatus::kRead)
      look(file, content);
  }
}

int64_t FileStore::clear() {
  const PrivateDirectory directory = open(Missing::kLeave);
  int64_t count = 0;
  directory.remove_unfinished(options_.kinds, std::chrono::seconds(0));
  for (const auto& file : directory.files(options_.kinds)) {
    if (directory.remove(file.name) && file.name.ends_with(options_.kinds[0].ending)) ++count;
  }
  // Of processes that were killed; one that is held goes with its holder.
  for (const auto& left : directory.files({&FileLock::kKind, 1})) {
    FileLock(directory, left.name).attempt();
  }
  const std::lock_guard lock(size_mutex_);
  size_ = -1;
  return count;
}

void FileStore::note_damage(const std::string& name) {
  ++damaged_;
  if (options_.on_damage) options_.on_damage(cat(path(), "/", name));
}

void FileStore::evict(const PrivateDirectory& directory, int64_t added) {
  const std::lock_guard lock(size_mutex_);
  const bool is_known = size_ >= 0 && ++writes_ % kWritesBetweenLooks != 0;
  size_ += added;
  if (is_known && size_ <= options_.max_bytes) return;

  directory.remove_unfinished(options_.kinds, kStaleAge);
  const auto files = directory.files(options_.kinds);
  size_ = 0;
  for (const auto& file : files) size_ += file.bytes;
  if (size_ <= options_.max_bytes) return;
  const auto wanted =
      static_cast<int64_t>(static_cast<double>(options_.max_bytes) * options_.kept_part);
  for (const auto& file : files) {
    if (size_ <= wanted) break;
    if (directory.remove(file.name)) ++evicted_;
    size_ -= file.bytes;
  }
}

FileLock::~FileLock() {
  if (file_.is_open()) directory_.remove(name_);
}

FileLock::State FileLock::attempt() {
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

}  // namespace cuop
