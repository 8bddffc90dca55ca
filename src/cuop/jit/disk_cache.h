// Compiled kernels kept on disk for the next process, in a directory of this user's alone.
//
// An entry is one file, named by the digest of everything that changes the binary, written under
// another name and renamed, with a checksum over all of it. So neither a process that is killed
// while it writes nor a disk that fails can leave an entry that is believed. What cannot be used
// (damaged, cut short, of another owner, writable by others) counts as absent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuop/core/file_store.h"

namespace cuop::jit {

class DiskCache {
 public:
  struct Binary {
    std::string image;
    double made_in_ms = 0.0;  ///< what compiling it cost
  };
  struct Entry {
    std::string key;
    std::string name;  ///< of the kernel
    int64_t bytes = 0;
    double made_in_ms = 0.0;
    int64_t used = 0;  ///< when it was last read, in seconds since 1970
  };
  struct Statistics {
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t damaged = 0;    ///< entries that were there but could not be used
    int64_t evicted = 0;    ///< removed because of the size
    int64_t abandoned = 0;  ///< waits for another process that were given up
  };
  using Make = std::function<Binary()>;

  /// The directory is made on the first save. Beyond `max_bytes` the entries that were not used for
  /// the longest time are removed.
  DiskCache(std::string directory, int64_t max_bytes);

  std::optional<Binary> load(const std::string& key);
  /// Never throws: what cannot be written is kept by the process alone, and said once.
  void save(const std::string& key, const std::string& name, const Binary& binary);
  /// A text for readers beside the entry of the key, "<key>.cu" or "<key>.log"; texts count
  /// and go as entries do. Never throws, as save.
  void save_text(const std::string& key, const char* ending, const std::string& text);
  /// The entry, or what `make` returns, saved. While one process makes an entry the others wait for
  /// it, but no longer than `patience` seconds: then they make it themselves. The system drops the
  /// lock of a process that dies.
  Binary load_or_make(const std::string& key, const std::string& name, double patience,
                      const Make& make);

  /// Every entry that can be used, the last used first.
  std::vector<Entry> entries() const;
  /// Removes every entry and text and what killed processes left; returns how many entries there
  /// were. Files that the cache did not write stay, as they do when it grows too large.
  int64_t clear() { return files_.clear(); }
  /// Writes every entry into one file, which is complete or not there; returns how many.
  /// ExecutionError when it cannot be written.
  int64_t export_to(const std::string& file) const;
  /// Takes the entries of such a file whose checksums hold; returns how many. ExecutionError when
  /// it cannot be read or is no such file. Only import what you would run.
  int64_t import_from(const std::string& file);

  Statistics statistics() const;
  const std::string& directory() const { return files_.path(); }
  /// As FileStore's.
  std::string problem() const { return files_.problem(); }

 private:
  /// What the file of an entry holds.
  struct Content {
    std::string key;
    std::string name;  ///< of the kernel
    Binary binary;
  };
  using Visitor = std::function<void(const Content& entry, const PrivateDirectory::File& file,
                                     const std::string& content)>;

  static std::string encode(const Content& entry);
  /// Nothing unless every byte is as it was written.
  static std::optional<Content> decode(std::string_view content);

  /// Shows every entry that can be used, the last used first.
  void visit(const Visitor& look) const;
  std::optional<Binary> load(const PrivateDirectory& directory, const std::string& key);
  void write_file(const std::string& name, const std::string& content);
  void warn(const std::string& why);

  FileStore files_;
  std::atomic<bool> has_warned_ = false;
  /// `damaged_`: of archives that were imported; the store counts its own files.
  std::atomic<int64_t> hits_ = 0, misses_ = 0, damaged_ = 0, abandoned_ = 0;
};

}  // namespace cuop::jit
