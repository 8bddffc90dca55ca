#include "cuop/tune/choice_store.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "cuop/core/fork_mutex.h"
#include "cuop/core/hash.h"
#include "cuop/core/json.h"
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
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, value);
  return digits;
}

constexpr int kSchema = 2;
/// Behind the value of the last member that the checksum covers.
constexpr std::string_view kBeforeChecksum = "\",\"checksum\":\"";

std::string encode(const std::string& key, const Choice& choice) {
  std::ostringstream out;
  JsonWriter json(out);
  json.open('{').members("schema", kSchema, "key", key, "made_in_ms", choice.made_in_ms, "gain",
                         choice.gain, "rounds", choice.rounds, "choice", choice.value);
  std::string body = out.str();
  body.pop_back();
  return cat(body, kBeforeChecksum, hex(hash_text(body)), "\"}\n");
}

/// The choice, and the key that it is for; nothing unless every byte is as it was written.
std::optional<std::pair<std::string, Choice>> decode(const std::string& text) {
  const size_t end = text.rfind(kBeforeChecksum);
  if (end == std::string::npos) return std::nullopt;
  const std::string checksum = hex(hash_text(std::string_view(text).substr(0, end)));
  if (text.substr(end) != cat(kBeforeChecksum, checksum, "\"}\n")) return std::nullopt;
  JsonReader json(text);
  int schema = 0;
  std::string key;
  Choice choice;
  const bool is_read = json.member("schema", schema) && schema == kSchema &&
                       json.member("key", key) && json.member("made_in_ms", choice.made_in_ms) &&
                       json.member("gain", choice.gain) && json.member("rounds", choice.rounds) &&
                       json.member("choice", choice.value);
  return is_read ? std::optional(std::pair(key, choice)) : std::nullopt;
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
  return files_.load(files_.open(Missing::kLeave), file_name(key), [&](const std::string& text) {
    const auto found = decode(text);
    // Escaped, what is no UTF-8 is the same on both sides.
    const bool is_asked = found && json_escape(found->first) == json_escape(key);
    return is_asked ? std::optional(found->second) : std::nullopt;
  });
}

std::vector<ChoiceStore::Entry> ChoiceStore::entries() const {
  std::vector<Entry> found;
  files_.visit([&](const PrivateDirectory::File& file, const std::string& text) {
    const auto choice = decode(text);
    if (!choice || file.name != file_name(choice->first)) return;
    found.push_back({choice->first, choice->second, file.used_ns / 1'000'000'000});
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
  static auto& mutex = *new ForkMutex;
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
