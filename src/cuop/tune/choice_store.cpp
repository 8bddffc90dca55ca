#include "cuop/tune/choice_store.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
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

/// The text up to the numbers; a reader that knows the key expects exactly this.
std::string opening(const std::string& key) {
  return cat("{\"schema\":2,\"key\":\"", json_escaped(key), '"');
}
constexpr std::string_view kKey = "\"key\":\"";
constexpr std::string_view kMadeIn = ",\"made_in_ms\":";
constexpr std::string_view kGain = ",\"gain\":";
constexpr std::string_view kRounds = ",\"rounds\":";
constexpr std::string_view kBeforeValue = ",\"choice\":\"";
constexpr std::string_view kBeforeChecksum = "\",\"checksum\":\"";

std::string encode(const std::string& key, const Choice& choice) {
  const std::string body = cat(opening(key), kMadeIn, choice.made_in_ms, kGain, choice.gain,
                               kRounds, choice.rounds, kBeforeValue, choice.value);
  return cat(body, kBeforeChecksum, hex(hash_text(body)), "\"}\n");
}

/// Takes ",\"label\":number" off the front.
template <class Number>
bool take(std::string_view& text, std::string_view label, Number& number) {
  if (!text.starts_with(label)) return false;
  text.remove_prefix(label.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

std::optional<Choice> decode(const std::string& key, const std::string& text) {
  const size_t end = text.rfind(kBeforeChecksum);
  if (end == std::string::npos) return std::nullopt;
  const std::string body = text.substr(0, end);
  if (text.substr(end) != cat(kBeforeChecksum, hex(hash_text(body)), "\"}\n")) return std::nullopt;
  const std::string start = opening(key);
  if (!body.starts_with(start)) return std::nullopt;
  std::string_view rest = std::string_view(body).substr(start.size());
  Choice choice;
  const bool is_read = take(rest, kMadeIn, choice.made_in_ms) && take(rest, kGain, choice.gain) &&
                       take(rest, kRounds, choice.rounds) && rest.starts_with(kBeforeValue);
  if (!is_read) return std::nullopt;
  choice.value = rest.substr(kBeforeValue.size());
  return choice;
}

/// The key that a file says it is for, "" when it says none.
std::string key_in(const std::string& text) {
  std::string key;
  size_t i = text.find(kKey);
  if (i == std::string::npos) return key;
  for (i += kKey.size(); i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\') ++i;
    if (i < text.size()) key += text[i];
  }
  return key;
}

std::optional<std::string> contents(const fs::path& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
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
  const auto text = contents(file);
  if (!text) return std::nullopt;
  auto choice = decode(key, *text);
  std::error_code error;
  if (choice) {
    fs::last_write_time(file, fs::file_time_type::clock::now(), error);  // recently used
  } else {
    note_damage(file);
  }
  return choice;
}

void ChoiceStore::note_damage(const std::string& file) {
  ++damaged_;
  static std::once_flag is_said;
  std::call_once(is_said, [&] {
    log(LogLevel::kWarn, "cache: ", file,
        " is damaged or of another version; such files are ignored, and counted");
  });
}

std::vector<ChoiceStore::Entry> ChoiceStore::entries() const {
  std::vector<Entry> found;
  if (!problem().empty()) return found;
  for (const File& file : files_of(directory_)) {
    if (!file.path.native().ends_with(kEnding)) continue;
    const auto text = contents(file.path);
    if (!text) continue;
    const std::string key = key_in(*text);
    const auto choice = decode(key, *text);
    if (!choice || file.path != path(key)) continue;
    const auto used = std::chrono::file_clock::to_sys(file.used).time_since_epoch();
    found.push_back({key, *choice, std::chrono::duration_cast<std::chrono::seconds>(used).count()});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Entry& a, const Entry& b) { return a.used > b.used; });
  return found;
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
