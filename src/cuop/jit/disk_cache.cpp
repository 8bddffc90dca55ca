#include "cuop/jit/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "cuop/core/descriptor.h"
#include "cuop/core/error.h"
#include "cuop/core/file_replacement.h"
#include "cuop/core/interrupt.h"
#include "cuop/core/json.h"
#include "cuop/core/log.h"
#include "cuop/core/sha256.h"
#include "cuop/core/text.h"

namespace cuop::jit {

namespace {

using Missing = FileStore::Missing;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kEnding = ".kernel";
/// Each text begins so, which tells it from a file that somebody else put there.
constexpr std::string_view kTextHeader = "// cuop kernel text 1\n";
constexpr const char* kArchiveMagic = "cuop kernels 1\n";
/// How the file of an entry begins, in this format and in others.
constexpr std::string_view kEntryHeader = "cuop kernel ";
// Lines of text, then the image: "head -5" shows what a file is.
constexpr std::string_view kMagic = "cuop kernel 1";
static_assert(kMagic.starts_with(kEntryHeader));

std::string file_name(const std::string& key) { return cat(key, kEnding); }

/// The text up to the next line's end, which is taken off; nothing when there is none.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return line;
}

}  // namespace

std::string DiskCache::encode(const Content& entry) {
  const Binary& binary = entry.binary;
  const std::string body = cat(entry.key, "\n", json_escape(entry.name), "\n", binary.made_in_ms,
                               "\n", binary.image.size(), "\n", binary.image);
  return cat(kMagic, "\n", sha256_hex(body), "\n", body);
}

std::optional<DiskCache::Content> DiskCache::decode(std::string_view content) {
  const auto magic = take_line(content);
  if (!magic || *magic != kMagic) return std::nullopt;
  const auto checksum = take_line(content);
  if (!checksum || *checksum != sha256_hex(content)) return std::nullopt;
  const auto key = take_line(content), name = take_line(content), time = take_line(content),
             size = take_line(content);
  if (!size || *size != cat(content.size())) return std::nullopt;
  return Content{std::string(*key),
                 std::string(*name),
                 {std::string(content), std::strtod(std::string(*time).c_str(), nullptr)}};
}

DiskCache::DiskCache(std::string directory, int64_t max_bytes)
    : files_({std::move(directory),
              max_bytes,
              0.8,
              {{kEnding, kEntryHeader}, {".cu", kTextHeader}, {".log", kTextHeader}}}) {}

void DiskCache::warn(const std::string& why) {
  if (why.empty() || has_warned_.exchange(true)) return;
  log(LogLevel::kWarn, "kernel cache: ", why, "; kernels are kept in memory only");
}

std::optional<DiskCache::Binary> DiskCache::load(const std::string& key) {
  return load(files_.open(Missing::kLeave), key);
}

std::optional<DiskCache::Binary> DiskCache::load(const PrivateDirectory& directory,
                                                 const std::string& key) {
  warn(directory.problem());
  return files_.load(directory, file_name(key), [&](const std::string& content) {
    auto entry = decode(content);
    const bool is_asked = entry && entry->key == key;
    return is_asked ? std::optional(std::move(entry->binary)) : std::nullopt;
  });
}

void DiskCache::write_file(const std::string& name, const std::string& content) {
  warn(files_.write(name, content));
}

void DiskCache::save(const std::string& key, const std::string& name, const Binary& binary) {
  write_file(file_name(key), encode({key, name, binary}));
}

void DiskCache::save_text(const std::string& key, const char* ending, const std::string& text) {
  write_file(cat(key, ending), cat(kTextHeader, text));
}

DiskCache::Binary DiskCache::load_or_make(const std::string& key, const std::string& name,
                                          double patience, const Make& make) {
  const PrivateDirectory directory = files_.open(Missing::kMake);
  const auto found = [&]() -> std::optional<Binary> {
    auto binary = load(directory, key);
    if (binary) ++hits_;
    return binary;
  };
  if (auto binary = found()) return std::move(*binary);
  if (!directory.is_open()) {
    ++misses_;
    return make();
  }
  FileLock lock(directory, cat(key, FileLock::kKind.ending));
  const auto deadline =
      Clock::now() + std::chrono::microseconds(static_cast<int64_t>(patience * 1e6));
  auto pause = std::chrono::microseconds(500);
  for (auto state = lock.attempt(); state == FileLock::State::kTaken; state = lock.attempt()) {
    if (directory.contains(file_name(key))) {
      if (auto binary = found()) return std::move(*binary);
    }
    if (Clock::now() >= deadline) {
      ++abandoned_;
      break;
    }
    std::this_thread::sleep_for(pause);
    check_interrupt();
    pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(20));
  }
  // Somebody may have finished it between the first look and the lock.
  if (auto binary = found()) return std::move(*binary);
  ++misses_;
  Binary binary = make();
  save(key, name, binary);
  return binary;
}

void DiskCache::visit(const Visitor& look) const {
  files_.visit([&](const PrivateDirectory::File& file, const std::string& content) {
    const auto entry = decode(content);
    if (entry && file_name(entry->key) == file.name) look(*entry, file, content);
  });
}

namespace {

/// The whole of a file that begins as archives do, of which nothing else is read: devices and pipes
/// may have no end.
std::string read_archive(const std::string& file) {
  const auto refused = [&] {
    return ExecutionError(cat("kernel cache: ", file, " is no file that 'export' wrote"));
  };
  const Descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!opened.is_open() || fstat(opened.get(), &status) != 0) {
    throw ExecutionError(cat("kernel cache: ", file, " cannot be read: ", errno_text()));
  }
  if (!S_ISREG(status.st_mode)) throw refused();
  std::string archive(kArchiveMagic);
  if (!read_all(opened.get(), archive) || archive != kArchiveMagic) throw refused();
  std::string rest(static_cast<size_t>(status.st_size) - archive.size(), '\0');
  if (!read_all(opened.get(), rest)) throw refused();
  return archive + rest;
}

}  // namespace

std::vector<DiskCache::Entry> DiskCache::entries() const {
  std::vector<Entry> result;
  visit([&](const Content& entry, const PrivateDirectory::File& file, const std::string&) {
    result.push_back(
        {entry.key, entry.name, file.bytes, entry.binary.made_in_ms, file.used_ns / 1'000'000'000});
  });
  return result;
}

int64_t DiskCache::export_to(const std::string& file) const {
  FileReplacement out("kernel cache", file);
  out.write(kArchiveMagic);
  int64_t count = 0;
  visit([&](const Content&, const PrivateDirectory::File&, const std::string& content) {
    out.write(cat(content.size(), "\n"));
    out.write(content);
    ++count;
  });
  out.commit();
  return count;
}

int64_t DiskCache::import_from(const std::string& file) {
  const std::string archive = read_archive(file);
  if (const PrivateDirectory directory = files_.open(Missing::kMake); !directory.is_open()) {
    throw ExecutionError(cat("kernel cache: ", directory.problem()));
  }
  int64_t count = 0;
  for (size_t at = std::string_view(kArchiveMagic).size(); at < archive.size();) {
    const size_t end = archive.find('\n', at);
    const auto size = static_cast<size_t>(std::strtoull(archive.c_str() + at, nullptr, 10));
    if (end == std::string::npos || size == 0 || size > archive.size() - end - 1) {
      throw ExecutionError(
          cat("kernel cache: ", file, " is cut short after ", count, " kernels, which were taken"));
    }
    const std::string content = archive.substr(end + 1, size);
    at = end + 1 + size;
    const auto entry = decode(content);
    if (!entry || entry->key.find_first_not_of("0123456789abcdef") != std::string::npos) {
      ++damaged_;
      continue;
    }
    write_file(file_name(entry->key), content);
    ++count;
  }
  return count;
}

DiskCache::Statistics DiskCache::statistics() const {
  return {hits_, misses_, damaged_ + files_.damaged_count(), files_.evicted_count(), abandoned_};
}

}  // namespace cuop::jit
