#include "cuop/core/dynlib.h"

#include <dlfcn.h>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

DynLib::DynLib(std::string title, const std::vector<std::string>& candidates, std::string advice)
    : title_(std::move(title)), advice_(std::move(advice)) {
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

void DynLib::close() {
  if (handle_ != nullptr) dlclose(handle_);
  handle_ = nullptr;
}

std::string DynLib::real_path(const char* symbol) const {
  Dl_info info{};
  const void* address = find(symbol);
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : path_;
}

void* DynLib::find(const char* symbol) const {
  return handle_ != nullptr ? dlsym(handle_, symbol) : nullptr;
}

Symbol DynLib::require(const std::string& symbol) const {
  const std::string what_to_do = advice_.empty() ? "" : cat("; ", advice_);
  if (handle_ == nullptr) {
    throw DeviceError(cat(title_, ": the library was not found: ", reason_, what_to_do));
  }
  void* address = find(symbol.c_str());
  if (address == nullptr) {
    throw DeviceError(cat(title_, ": ", path_, " has no symbol ", symbol, what_to_do));
  }
  return Symbol(address);
}

}  // namespace cuop
