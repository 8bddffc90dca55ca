#include "cuop/memory/sealed_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "cuop/core/text.h"

namespace cuop::memory {
namespace {

/// So that nobody who has mapped it loses a page.
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

Descriptor make_sealed_file(const char* label, int64_t bytes) {
  Descriptor file(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const bool is_made = file.is_open() && fchmod(file.get(), S_IRUSR | S_IWUSR) == 0 &&
                       ftruncate(file.get(), bytes) == 0 &&
                       fcntl(file.get(), F_ADD_SEALS, kSizeSeals) == 0;
  return is_made ? std::move(file) : Descriptor();
}

Descriptor open_sealed_file(int64_t process, int64_t descriptor, int64_t bytes, bool for_writing) {
  if (process <= 0 || descriptor < 0) return {};
  const std::string path = cat("/proc/", process, "/fd/", descriptor);
  const int access = for_writing ? O_RDWR : O_RDONLY;
  Descriptor file(::open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return {};
  struct stat status {};
  const int seals = fcntl(file.get(), F_GET_SEALS);
  const bool is_it = fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                     status.st_uid == geteuid() && status.st_size == bytes && seals >= 0 &&
                     (seals & kSizeSeals) == kSizeSeals;
  return is_it ? std::move(file) : Descriptor();
}

}  // namespace cuop::memory
