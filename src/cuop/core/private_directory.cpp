#include "cuop/core/private_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "cuop/core/text.h"
#include "cuop/core/trusted_path.h"

namespace cuop {

namespace {

constexpr std::string_view kTemporary = ".tmp";

bool is_all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

/// "<hexadecimal digits><ending>".
bool is_own_name(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) &&
         is_all_of(name.substr(0, name.size() - ending.size()), "0123456789abcdef");
}

/// Such a name and ".<process>.<serial>.tmp".
bool is_temporary_name(std::string_view name, std::string_view ending) {
  if (!name.ends_with(kTemporary)) return false;
  name.remove_suffix(kTemporary.size());
  for (int part = 0; part < 2; ++part) {
    const size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || !is_all_of(name.substr(dot + 1), "0123456789")) {
      return false;
    }
    name = name.substr(0, dot);
  }
  return is_own_name(name, ending);
}

bool begins_with(int file, int64_t bytes, std::string_view header, bool may_be_cut) {
  if (header.empty()) return bytes == 0;
  const auto wanted = static_cast<int64_t>(header.size());
  if (bytes < wanted && !may_be_cut) return false;
  std::string start(static_cast<size_t>(std::min(bytes, wanted)), '\0');
  return read_all(file, start) && header.starts_with(start);
}

bool is_own_file(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

Descriptor open_file(int directory, const char* name) {
  return Descriptor(openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

/// Writers lock what they write, and the system unlocks what they leave.
bool is_being_written(int directory, const std::string& name) {
  const Descriptor file = open_file(directory, name.c_str());
  return file.is_open() && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace

PrivateDirectory PrivateDirectory::open(const std::string& path, Missing missing) {
  TrustedPath way = follow_trusted_path(path, missing == Missing::kMake);
  PrivateDirectory result;
  result.problem_ = std::move(way.problem);
  if (!way.directory.is_open()) return result;
  struct stat status {};
  if (fstat(way.directory.get(), &status) != 0 || status.st_uid != geteuid()) {
    result.problem_ = cat(path, " belongs to another user");
  } else if (is_writable_by_others(status.st_mode)) {
    result.problem_ = cat(path, kWritableByOthers);
  } else {
    result.directory_ =
        Descriptor(openat(way.directory.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!result.is_open()) {
      result.problem_ = cat(path, " cannot be read: ", errno_text());
    }
  }
  return result;
}

std::vector<PrivateDirectory::File> PrivateDirectory::find(std::span<const Kind> kinds,
                                                           State state) const {
  std::vector<File> found;
  if (!is_open()) return found;
  const int again = openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(again < 0 ? nullptr : fdopendir(again), &closedir);
  if (!list) return found;
  const auto is_named = state == State::kWhole ? &is_own_name : &is_temporary_name;
  while (const dirent* entry = readdir(list.get())) {
    const auto kind = std::ranges::find_if(
        kinds, [&](const Kind& each) { return is_named(entry->d_name, each.ending); });
    if (kind == kinds.end()) continue;
    const Descriptor file = open_file(descriptor(), entry->d_name);
    struct stat status {};
    if (!file.is_open() || fstat(file.get(), &status) != 0 || !is_own_file(status)) continue;
    if (!begins_with(file.get(), status.st_size, kind->header, state == State::kUnfinished)) {
      continue;
    }
    found.push_back({entry->d_name, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec,
                     status.st_size});
  }
  return found;
}

std::vector<PrivateDirectory::File> PrivateDirectory::files(std::span<const Kind> kinds) const {
  std::vector<File> found = find(kinds, State::kWhole);
  std::ranges::sort(found, {}, &File::used_ns);
  return found;
}

void PrivateDirectory::remove_unfinished(std::span<const Kind> kinds,
                                         std::chrono::seconds age) const {
  const auto then = std::chrono::system_clock::now().time_since_epoch() - age;
  for (const File& left : find(kinds, State::kUnfinished)) {
    const bool is_old = left.used_ns <= std::chrono::nanoseconds(then).count();
    if (is_old && !is_being_written(descriptor(), left.name)) remove(left.name);
  }
}

PrivateDirectory::ReadStatus PrivateDirectory::read(const std::string& name,
                                                    std::string& content) const {
  if (!is_open()) return ReadStatus::kAbsent;
  const Descriptor file = open_file(descriptor(), name.c_str());
  if (!file.is_open()) return errno == ENOENT ? ReadStatus::kAbsent : ReadStatus::kRefused;
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !is_own_file(status) ||
      is_writable_by_others(status.st_mode) || status.st_size > kMostBytes) {
    return ReadStatus::kRefused;
  }
  content.assign(static_cast<size_t>(status.st_size), '\0');
  return read_all(file.get(), content) ? ReadStatus::kRead : ReadStatus::kRefused;
}

void PrivateDirectory::mark_used(const std::string& name) const {
  utimensat(descriptor(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool PrivateDirectory::write(const std::string& name, std::string_view content) const {
  static std::atomic<int64_t> serial = 0;
  const std::string temporary = cat(name, ".", getpid(), ".", serial.fetch_add(1), kTemporary);
  Descriptor file(openat(descriptor(), temporary.c_str(),
                         O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return false;
  // Where files cannot be locked, it may be taken away.
  const Descriptor locked(
      flock(file.get(), LOCK_EX | LOCK_NB) == 0 ? fcntl(file.get(), F_DUPFD_CLOEXEC, 0) : -1);
  const bool is_written = write_all(file.get(), content) && file.close();
  if (is_written && renameat(descriptor(), temporary.c_str(), descriptor(), name.c_str()) == 0) {
    return true;
  }
  const int why = errno;
  remove(temporary);
  errno = why;
  return false;
}

bool PrivateDirectory::contains(const std::string& name) const {
  struct stat status {};
  return fstatat(descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool PrivateDirectory::remove(const std::string& name) const {
  return unlinkat(descriptor(), name.c_str(), 0) == 0;
}

}  // namespace cuop
