#include "cuop/core/trusted_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "cuop/core/text.h"

namespace cuop {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as many as the kernel follows
constexpr int kStep = O_PATH | O_NOFOLLOW | O_CLOEXEC;

/// One walk: where it stands, and the names that are still ahead, the next one last.
class Walk {
 public:
  Walk(const fs::path& path, bool makes_missing) : makes_missing_(makes_missing) {
    put_ahead(path);
  }

  TrustedPath take() {
    if (!start_at_root()) return refuse(cat("/", failure()));
    while (!ahead_.empty()) {
      const std::string name = std::move(ahead_.back());
      ahead_.pop_back();
      const fs::path next_path = so_far_ / name;
      Descriptor next = step(name);
      if (!next.is_open()) {
        if (errno == ENOENT && !makes_missing_) return {};
        return refuse(cat(next_path.string(), makes_missing_ ? " cannot be made" : "", failure()));
      }
      struct stat status {};
      if (fstat(next.get(), &status) != 0) return refuse(cat(next_path.string(), failure()));
      const std::string problem =
          S_ISLNK(status.st_mode) ? follow(next, status) : enter(std::move(next), status, name);
      if (!problem.empty()) return refuse(cat(next_path.string(), problem));
    }
    return {std::move(at_), ""};
  }

 private:
  static TrustedPath refuse(std::string why) { return {Descriptor(), std::move(why)}; }
  static std::string failure() { return cat(": ", errno_text()); }

  static bool is_trusted(uid_t owner) { return owner == 0 || owner == geteuid(); }

  bool start_at_root() {
    so_far_ = "/";
    at_ = Descriptor(open("/", kStep | O_DIRECTORY));
    return at_.is_open();
  }

  void put_ahead(const fs::path& path) {
    const fs::path names = path.relative_path();
    std::vector<std::string> in_order;
    for (const fs::path& name : names) {
      if (!name.empty() && name != ".") in_order.push_back(name.string());
    }
    ahead_.insert(ahead_.end(), in_order.rbegin(), in_order.rend());
  }

  Descriptor step(const std::string& name) {
    Descriptor next(openat(at_.get(), name.c_str(), kStep));
    if (next.is_open() || errno != ENOENT || !makes_missing_) return next;
    if (mkdirat(at_.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return next;
    return Descriptor(openat(at_.get(), name.c_str(), kStep));
  }

  std::string follow(const Descriptor& link, const struct stat& status) {
    if (!is_trusted(status.st_uid)) return " is a link that another user made";
    if (++links_ > kMostLinks) return " leads through too many links";
    char target[PATH_MAX];
    const ssize_t length = readlinkat(link.get(), "", target, sizeof target);
    if (length < 0) return failure();
    const fs::path to(std::string(target, static_cast<size_t>(length)));
    put_ahead(to);
    if (to.is_absolute() && !start_at_root()) return failure();
    return "";
  }

  std::string enter(Descriptor next, const struct stat& status, const std::string& name) {
    if (!S_ISDIR(status.st_mode)) return " is not a directory";
    if (!is_trusted(status.st_uid)) return " belongs to another user";
    if (is_writable_by_others(status.st_mode) && (status.st_mode & S_ISVTX) == 0) {
      return kWritableByOthers;
    }
    at_ = std::move(next);
    so_far_ /= name;
    return "";
  }

  const bool makes_missing_;
  fs::path so_far_;
  Descriptor at_;
  std::vector<std::string> ahead_;
  int links_ = 0;
};

}  // namespace

bool is_writable_by_others(unsigned mode) { return (mode & (S_IWGRP | S_IWOTH)) != 0; }

TrustedPath follow_trusted_path(const std::string& path, bool makes_missing) {
  if (path.find('\0') != std::string::npos) return {Descriptor(), "a path has no zero byte"};
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error || path.empty()) return {Descriptor(), cat("'", path, "' is no path of a directory")};
  return Walk(whole, makes_missing).take();
}

}  // namespace cuop
