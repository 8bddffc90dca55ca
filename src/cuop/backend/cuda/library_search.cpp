#include "cuop/backend/cuda/library_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <sstream>

#include "cuop/core/env.h"
#include "cuop/core/fork_mutex.h"

namespace cuop::backend {

namespace {

namespace fs = std::filesystem;

// Never destroyed: threads may compute while the process ends.
auto& mutex = *new ForkMutex;
auto& package_folders = *new std::vector<std::string>;

std::vector<std::string> listed_folders() {
  std::vector<std::string> folders;
  std::istringstream list(env().library_path.value);
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

/// The folder above the one in which this library lies: site-packages when it is part of a package.
std::string own_package_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&set_package_folders), &info) == 0) return "";
  return fs::path(info.dli_fname).parent_path().parent_path().string();
}

/// nvidia/cu13/lib, nvidia/cuda_nvrtc/lib, ... of a site-packages folder, newest names first.
void add_package_libraries(const std::string& packages, std::vector<std::string>& folders) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(packages) / "nvidia", error)) {
    if (fs::is_directory(entry.path() / "lib", error)) {
      found.push_back((entry.path() / "lib").string());
    }
  }
  std::sort(found.rbegin(), found.rend());
  folders.insert(folders.end(), found.begin(), found.end());
}

void append(const std::vector<std::string>& folders, const std::vector<std::string>& sonames,
            std::vector<std::string>& candidates) {
  for (const std::string& folder : folders) {
    for (const std::string& soname : sonames) {
      std::error_code error;
      const fs::path path = fs::path(folder) / soname;
      if (fs::exists(path, error)) candidates.push_back(path.string());
    }
  }
}

}  // namespace

std::vector<std::string> cuda_library_candidates(const std::vector<std::string>& sonames) {
  std::vector<std::string> candidates;
  append(listed_folders(), sonames, candidates);
  candidates.insert(candidates.end(), sonames.begin(), sonames.end());
  std::vector<std::string> folders;
  const std::string& toolkit = env().cuda_home.value;
  for (const std::string& root : {toolkit, std::string("/usr/local/cuda")}) {
    if (!root.empty()) folders.push_back(root + "/lib64");
  }
  const std::lock_guard lock(mutex);
  for (const std::string& packages : package_folders) add_package_libraries(packages, folders);
  add_package_libraries(own_package_folder(), folders);
  append(folders, sonames, candidates);
  return candidates;
}

void set_package_folders(std::vector<std::string> folders) {
  const std::lock_guard lock(mutex);
  package_folders = std::move(folders);
}

}  // namespace cuop::backend
