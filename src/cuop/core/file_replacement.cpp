#include "cuop/core/file_replacement.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

namespace fs = std::filesystem;

FileReplacement::FileReplacement(std::string who, const std::string& path)
    : who_(std::move(who)), asked_(path) {
  find_target();
  static std::atomic<int> serial = 0;
  const std::string name = cat(".cuop-", getpid(), "-", serial.fetch_add(1), ".part");
  temporary_ = (fs::path(target_).parent_path() / name).string();
  // The system takes the umask off the mode. What replaces a file nobody else may read meanwhile.
  const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
  const mode_t mode = is_replacing_ ? 0600 : 0666;
  file_ = Descriptor(open(temporary_.c_str(), flags, mode));
  if (!file_.is_open() && errno == EEXIST) {  // of a killed process that had our number
    unlink(temporary_.c_str());
    file_ = Descriptor(open(temporary_.c_str(), flags, mode));
  }
  if (!file_.is_open()) fail();
}

FileReplacement::~FileReplacement() {
  if (file_.is_open()) unlink(temporary_.c_str());
}

void FileReplacement::write(std::string_view bytes) {
  if (!write_all(file_.get(), bytes)) fail();
}

void FileReplacement::commit() {
  if (is_replacing_) pass_on_permissions();
  if (fsync(file_.get()) != 0 || rename(temporary_.c_str(), target_.c_str()) != 0) fail();
  file_.close();
}

void FileReplacement::fail(const std::string& why) const {
  throw ExecutionError(cat(who_, ": ", asked_, " ", why));
}

void FileReplacement::fail() const { fail(cat("cannot be written: ", errno_text())); }

void FileReplacement::find_target() {
  if (asked_.find('\0') != std::string::npos) {
    throw ExecutionError(cat(who_, ": the path holds a zero byte, which no file name may"));
  }
  if (asked_.empty()) throw ExecutionError(cat(who_, ": the path is empty"));
  std::error_code error;
  // Of a file that does not exist yet, what does exist of its path is followed.
  const fs::path target = fs::weakly_canonical(fs::absolute(asked_, error), error);
  if (error) fail(cat("cannot be written: ", error.message()));
  target_ = target.string();
  struct stat status {};
  if (lstat(target_.c_str(), &status) != 0) {
    if (errno != ENOENT) fail();
    return;
  }
  if (S_ISLNK(status.st_mode)) fail("is a link that leads to no file");
  if (S_ISDIR(status.st_mode)) fail("is a directory, needed is a file name");
  if (!S_ISREG(status.st_mode)) fail("is no ordinary file and would be replaced by one");
  is_replacing_ = true;
}

void FileReplacement::pass_on_permissions() const {
  struct stat before {
  }, now{};
  if (stat(target_.c_str(), &before) != 0 || fstat(file_.get(), &now) != 0) return;
  mode_t mode = before.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
  const bool is_same_group =
      now.st_gid == before.st_gid || fchown(file_.get(), uid_t(-1), before.st_gid) == 0;
  // What the one group was granted is nothing that another may have, unless everybody may.
  if (!is_same_group) mode &= ~mode_t{S_IRWXG} | ((mode & S_IRWXO) << 3);
  // Only root may give files away; of anybody else's the file becomes this user's.
  [[maybe_unused]] const int is_kept = fchown(file_.get(), before.st_uid, gid_t(-1));
  if (fchmod(file_.get(), mode) != 0) fail();
}

}  // namespace cuop
