#include "cuop/dist/comm/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "cuop/core/cache_directory.h"
#include "cuop/core/descriptor.h"
#include "cuop/core/env.h"
#include "cuop/core/error.h"
#include "cuop/core/private_directory.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"

namespace cuop::dist {

namespace {

constexpr size_t kLeastCharacters = 16;
constexpr size_t kRandomBytes = 32;
constexpr size_t kFileCharacters = 2 * kRandomBytes;  // hexadecimal digits

[[noreturn]] void refuse(const std::string& why) {
  throw CommunicationError(
      cat("socket: the job has no secret: ", why,
          "; set CUOP_JOB_SECRET to the same text on all ranks, 16 characters or more"));
}

Descriptor open_file(const std::string& path, int flags) {
  return Descriptor(open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, 0600));
}

/// Puts a new secret at `path` unless one is there: complete when it appears, and never replaced.
void make_secret(const std::string& path) {
  static std::atomic<int64_t> serial = 0;
  const std::string draft = cat(path, ".", getpid(), ".", serial.fetch_add(1), ".tmp");
  bool is_written = false;
  {
    const Descriptor file = open_file(draft, O_CREAT | O_EXCL | O_WRONLY);
    is_written = file.is_open() && write_all(file.get(), to_hex(random_bytes(kRandomBytes))) &&
                 fsync(file.get()) == 0;
  }
  const bool is_there = is_written && (link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const std::string why = errno_text();
  unlink(draft.c_str());
  if (!is_there) refuse(cat(path, " cannot be made: ", why));
}

}  // namespace

std::string checked_secret(const std::string& source, const std::string& secret) {
  if (secret.size() >= kLeastCharacters) return secret;
  refuse(cat(source, " has ", secret.size(), " characters, which can be guessed"));
}

std::string secret_in(const std::string& directory) {
  const auto folder = PrivateDirectory::open(directory, PrivateDirectory::Missing::kMake);
  if (!folder.is_open()) refuse(folder.problem());
  const std::string path = cat(directory, "/job_secret");
  // Where it is something else than a file, opening must not wait for a writer.
  constexpr int kReading = O_RDONLY | O_NONBLOCK;
  if (!open_file(path, kReading).is_open() && errno == ENOENT) make_secret(path);
  const Descriptor file = open_file(path, kReading);
  if (!file.is_open()) refuse(cat(path, " cannot be read: ", errno_text()));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    refuse(cat(path, " is no regular file"));
  }
  if (status.st_uid != geteuid()) refuse(cat(path, " belongs to another user"));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    refuse(cat(path, " is open to other users, who may know it by now: remove it"));
  }
  std::string secret(kFileCharacters, '\0');
  const bool is_read =
      static_cast<size_t>(status.st_size) == secret.size() && read_all(file.get(), secret);
  if (!is_read || secret.find_first_not_of("0123456789abcdef") != std::string::npos) {
    refuse(cat(path, " is damaged: remove it"));
  }
  return secret;
}

std::string job_secret() {
  const auto& given = env().job_secret;
  return given.is_set ? checked_secret(given.name, given.value)
                      : secret_in(default_cache_directory());
}

}  // namespace cuop::dist
