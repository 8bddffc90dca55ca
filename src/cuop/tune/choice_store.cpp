#include "cuop/tune/choice_store.h"

#include <unistd.h>

#include <charconv>
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
using Missing = FileStore::Missing;

constexpr std::string_view kEnding = ".choice.json";
constexpr std::string_view kLogEnding = ".choice.json.log";
/// How a choice begins, whatever its schema, and a log.
constexpr std::string_view kHeader = "{\"schema\":";
constexpr std::string_view kLogHeader = "cuop choice log 1\n";

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

void warn_of_damage(const std::string& file) {
  static std::once_flag is_said;
  std::call_once(is_said, [&] {
    log(LogLevel::kWarn, "cache: ", file,
        " is damaged or of another version; such files are ignored, and counted");
  });
}

}  // namespace

ChoiceStore::ChoiceStore(std::string directory, int64_t max_bytes)
    : files_({std::move(directory),
              max_bytes,
              1.0,
              {{kEnding, kHeader}, {kLogEnding, kLogHeader}},
              &warn_of_damage}) {}

std::string ChoiceStore::path(const std::string& key) const {
  return (fs::path(directory()) / file_name(key)).string();
}

std::optional<Choice> ChoiceStore::load(const std::string& key) {
  return files_.load(files_.open(Missing::kLeave), file_name(key),
                     [&](const std::string& text) { return decode(key, text); });
}

std::vector<ChoiceStore::Entry> ChoiceStore::entries() const {
  std::vector<Entry> found;
  files_.visit([&](const PrivateDirectory::File& file, const std::string& text) {
    const std::string key = key_in(text);
    const auto choice = decode(key, text);
    if (!choice || file.name != file_name(key)) return;
    found.push_back({key, *choice, file.used_ns / 1'000'000'000});
  });
  return found;
}

std::string ChoiceStore::make_directory() const {
  const std::string& path = directory();
  if (path.find('\0') != std::string::npos) return "has a zero byte in its path";
  const PrivateDirectory made = files_.open(Missing::kMake);
  std::error_code error;
  if (!made.is_open() && !fs::is_directory(path, error)) {
    const std::string& why = made.problem();  // it may be of a directory on the way
    return why.starts_with(path) ? why : cat(path, " cannot be made: ", why);
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) return cat(path, " cannot be written to");
  warn(made.problem());
  return "";
}

void ChoiceStore::warn(const std::string& why) const {
  if (why.empty()) return;
  static std::mutex mutex;
  static std::set<std::string>* const warned = new std::set<std::string>;
  {
    const std::lock_guard lock(mutex);
    if (!warned->insert(directory()).second) return;
  }
  log(LogLevel::kWarn, "cache: ", directory(), " is not used (", why,
      "); choices are kept in memory only");
}

void ChoiceStore::save(const std::string& key, const Choice& choice) {
  warn(files_.write(file_name(key), encode(key, choice)));
}

void ChoiceStore::save_log(const std::string& key, const std::string& text) {
  warn(files_.write(file_name(key) + ".log", cat(kLogHeader, text)));
}

}  // namespace cuop::tune
