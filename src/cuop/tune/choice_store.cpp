#include "cuop/tune/choice_store.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "cuop/core/cache_directory.h"
#include "cuop/core/hash.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop::tune {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".choice.json";
constexpr std::string_view kLogEnding = ".choice.json.log";

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << value;
  return out.str();
}

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

/// The text up to the value; a reader that knows the key expects exactly this.
std::string opening(const std::string& key) {
  return cat("{\"schema\":1,\"key\":", json_text(key), ",\"made_in_ms\":");
}
constexpr std::string_view kBeforeValue = ",\"choice\":\"";
constexpr std::string_view kBeforeChecksum = "\",\"checksum\":\"";

std::string encode(const std::string& key, const Choice& choice) {
  const std::string body = cat(opening(key), choice.made_in_ms, kBeforeValue, choice.value);
  return cat(body, kBeforeChecksum, hex(hash_text(body)), "\"}\n");
}

std::optional<Choice> decode(const std::string& key, const std::string& text) {
  const size_t end = text.rfind(kBeforeChecksum);
  if (end == std::string::npos) return std::nullopt;
  const std::string body = text.substr(0, end);
  if (text.substr(end) != cat(kBeforeChecksum, hex(hash_text(body)), "\"}\n")) return std::nullopt;
  const std::string start = opening(key);
  const size_t value = body.rfind(kBeforeValue);
  if (body.rfind(start, 0) != 0 || value == std::string::npos) return std::nullopt;
  Choice choice;
  std::istringstream number(body.substr(start.size(), value - start.size()));
  if (!(number >> choice.made_in_ms) || !number.eof()) return std::nullopt;
  choice.value = body.substr(value + kBeforeValue.size());
  return choice;
}

struct File {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes;
};

std::vector<File> files_of(const std::string& directory) {
  std::vector<File> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kEnding) && !name.ends_with(kLogEnding)) continue;
    std::error_code gone;  // another process may remove files meanwhile
    const auto used = entry.last_write_time(gone);
    const auto bytes = static_cast<int64_t>(entry.file_size(gone));
    if (!gone) files.push_back({entry.path(), used, bytes});
  }
  return files;
}

}  // namespace

ChoiceStore::ChoiceStore(std::string directory, int64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {}

std::string ChoiceStore::path(const std::string& key) const {
  return (fs::path(directory_) / cat(hex(hash_text(key)), kEnding)).string();
}

std::string ChoiceStore::problem() const { return directory_problem(directory_); }

std::optional<Choice> ChoiceStore::load(const std::string& key) {
  if (!problem().empty()) return std::nullopt;
  const std::string file = path(key);
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  auto choice = decode(key, text.str());
  std::error_code error;
  if (choice) {
    fs::last_write_time(file, fs::file_time_type::clock::now(), error);  // recently used
  } else {
    ++damaged_;
  }
  return choice;
}

std::string ChoiceStore::make_directory() const {
  if (directory_.find('\0') != std::string::npos) return "has a zero byte in its path";
  const std::string why = make_private_directory(directory_);
  std::error_code error;
  if (!fs::is_directory(directory_, error)) return why;
  if (access(directory_.c_str(), W_OK | X_OK) != 0) return cat(directory_, " cannot be written to");
  if (!why.empty()) warn(why);
  return "";
}

/// Once a directory and process: many wrappers share one.
void ChoiceStore::warn(const std::string& why) const {
  static std::mutex mutex;
  static std::set<std::string>* const warned = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!warned->insert(directory_).second) return;
  }
  log(LogLevel::kWarn, "cache: ", directory_, " is not used (", why,
      "); choices are kept in memory only");
}

bool ChoiceStore::write(const std::string& file, const std::string& text) const {
  std::string why = make_directory();
  if (why.empty()) why = problem();
  if (why.empty()) {
    static std::atomic<int64_t> serial = 0;
    const std::string temporary = cat(file, ".", getpid(), ".", serial++);
    std::error_code error;
    std::ofstream out(temporary);
    out << text;
    out.close();
    if (!out.fail()) fs::rename(temporary, file, error);
    if (!out.fail() && !error) return true;
    fs::remove(temporary, error);
    why = "writing failed";
  }
  warn(why);
  return false;
}

void ChoiceStore::save(const std::string& key, const Choice& choice) {
  if (write(path(key), encode(key, choice))) evict();
}

void ChoiceStore::save_log(const std::string& key, const std::string& text) {
  if (write(path(key) + ".log", text)) evict();
}

void ChoiceStore::evict() {
  std::vector<File> files = files_of(directory_);
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  int64_t total = 0;
  for (const File& file : files) total += file.bytes;
  for (const File& file : files) {
    if (total <= max_bytes_) break;
    std::error_code error;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

int64_t ChoiceStore::clear() {
  int64_t count = 0;
  if (!problem().empty()) return 0;
  for (const File& file : files_of(directory_)) {
    std::error_code error;
    const bool is_choice = file.path.native().ends_with(kEnding);
    if (fs::remove(file.path, error) && is_choice) ++count;
  }
  return count;
}

}  // namespace cuop::tune
