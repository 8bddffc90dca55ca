#include "cuop/tune/choice_store.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "cuop/core/hash.h"
#include "cuop/core/log.h"
#include "cuop/core/text.h"

namespace cuop::tune {

namespace {

namespace fs = std::filesystem;
using Missing = PrivateDirectory::Missing;

constexpr std::string_view kEnding = ".choice.json";
constexpr std::string_view kLogEnding = ".choice.json.log";
/// How a choice begins, whatever its schema, and a log.
constexpr std::string_view kHeader = "{\"schema\":";
constexpr std::string_view kLogHeader = "cuop choice log 1\n";
constexpr PrivateDirectory::Kind kChoices[] = {{kEnding, kHeader}};
constexpr PrivateDirectory::Kind kKinds[] = {kChoices[0], {kLogEnding, kLogHeader}};
constexpr std::chrono::hours kStaleAge{1};

std::string hex(uint64_t value) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << value;
  return out.str();
}

/// The text up to the numbers; a reader that knows the key expects exactly this.
std::string opening(const std::string& key) {
  return cat(kHeader, "2,\"key\":\"", json_escaped(key), '"');
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

std::string file_name(const std::string& key) { return cat(hex(hash_text(key)), kEnding); }

}  // namespace

ChoiceStore::ChoiceStore(std::string directory, int64_t max_bytes)
    : directory_(std::move(directory)), max_bytes_(max_bytes) {}

std::string ChoiceStore::path(const std::string& key) const {
  return (fs::path(directory_) / file_name(key)).string();
}

PrivateDirectory ChoiceStore::open(PrivateDirectory::Missing missing) const {
  return PrivateDirectory::open(directory_, missing);
}

std::string ChoiceStore::problem() const { return open(Missing::kLeave).problem(); }

std::optional<Choice> ChoiceStore::load(const std::string& key) {
  const PrivateDirectory directory = open(Missing::kLeave);
  std::string text;
  // Only a choice that is believed counts as used.
  const auto answer = directory.read(file_name(key), PrivateDirectory::Use::kLook, text);
  if (answer == PrivateDirectory::Answer::kAbsent) return std::nullopt;
  const bool is_read = answer == PrivateDirectory::Answer::kRead;
  auto choice = is_read ? decode(key, text) : std::nullopt;
  if (choice) {
    directory.read(file_name(key), PrivateDirectory::Use::kUse, text);
  } else {
    note_damage(path(key));
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
  const PrivateDirectory directory = open(Missing::kLeave);
  std::vector<Entry> found;
  for (const auto& file : directory.files(kChoices)) {
    std::string text;
    const auto answer = directory.read(file.name, PrivateDirectory::Use::kLook, text);
    if (answer != PrivateDirectory::Answer::kRead) continue;
    const std::string key = key_in(text);
    const auto choice = decode(key, text);
    if (!choice || file.name != file_name(key)) continue;
    found.push_back({key, *choice, file.used_ns / 1'000'000'000});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Entry& a, const Entry& b) { return a.used > b.used; });
  return found;
}

std::string ChoiceStore::make_directory() const {
  if (directory_.find('\0') != std::string::npos) return "has a zero byte in its path";
  const PrivateDirectory directory = open(Missing::kMake);
  std::error_code error;
  if (!directory.is_open() && !fs::is_directory(directory_, error)) {
    const std::string& why = directory.problem();  // it may be of a directory on the way
    return why.starts_with(directory_) ? why : cat(directory_, " cannot be made: ", why);
  }
  if (access(directory_.c_str(), W_OK | X_OK) != 0) return cat(directory_, " cannot be written to");
  if (!directory.is_open()) warn(directory.problem());
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

void ChoiceStore::write(const std::string& name, const std::string& text) {
  const PrivateDirectory directory = open(Missing::kMake);
  if (!directory.is_open()) return warn(directory.problem());
  if (!directory.write(name, text)) return warn("writing failed");
  evict(directory);
}

void ChoiceStore::save(const std::string& key, const Choice& choice) {
  write(file_name(key), encode(key, choice));
}

void ChoiceStore::save_log(const std::string& key, const std::string& text) {
  write(file_name(key) + ".log", cat(kLogHeader, text));
}

void ChoiceStore::evict(const PrivateDirectory& directory) const {
  directory.remove_unfinished(kKinds, kStaleAge);
  const auto files = directory.files(kKinds);
  int64_t total = 0;
  for (const auto& file : files) total += file.bytes;
  for (const auto& file : files) {
    if (total <= max_bytes_) break;
    directory.remove(file.name);
    total -= file.bytes;
  }
}

int64_t ChoiceStore::clear() {
  const PrivateDirectory directory = open(Missing::kLeave);
  int64_t count = 0;
  directory.remove_unfinished(kKinds, std::chrono::seconds(0));
  for (const auto& file : directory.files(kKinds)) {
    if (directory.remove(file.name) && file.name.ends_with(kEnding)) ++count;
  }
  return count;
}

}  // namespace cuop::tune
