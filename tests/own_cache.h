// What a test compiles and chooses is kept in a folder that goes with the test.
#pragma once

#include <filesystem>

#include "cuop/operators/tuned/config.h"
#include "tests/temporary_folder.h"

namespace cuop::test {

/// For its life the process's cache; empty at first. The configuration comes back.
class OwnCache {
 public:
  OwnCache() {
    GlobalJitConfig config = before_;
    config.cache_dir = path().string();
    set_global_jit_config(config);
  }
  ~OwnCache() { set_global_jit_config(before_); }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

  std::filesystem::path path() const { return folder_.path() / "cache"; }

 private:
  const TemporaryFolder folder_;
  const GlobalJitConfig before_ = global_jit_config();
};

}  // namespace cuop::test
