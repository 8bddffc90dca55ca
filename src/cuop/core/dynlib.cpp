#include "cuop/core/dynlib.h"

#include <dlfcn.h>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

DynLib::DynLib(std::string title, const std::vector<std::string>& candidates)
    : title_(std::move(title)) {
  for (const std::string& candidate : candidates) {
    handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
      const char* why = dlerror();
      reason_ += (reason_.empty() ? "" : "; ") + std::string(why != nullptr ? why : candidate);
      continue;
    }
    reason_.clear();
    path_ = candidate;
    return;
  }
}

std::string DynLib::real_path(const char* symbol) const {
  Dl_info info{};
  const void* address = find(symbol);
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : path_;
}

void* DynLib::find(const char* symbol) const {
  return handle_ != nullptr ? dlsym(handle_, symbol) : nullptr;
}

void* DynLib::require(const char* symbol) const {
  if (handle_ == nullptr) throw DeviceError(cat(title_, ": the library was not found: ", reason_));
  void* address = find(symbol);
  if (address == nullptr) throw DeviceError(cat(title_, ": ", path_, " has no symbol ", symbol));
  return address;
}

}  // namespace cuop
