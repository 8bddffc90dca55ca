#include "cuop/core/env.h"

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

void parse(const char* name, const std::string& text, std::string& value) {
  (void)name;
  value = text;
}

void parse(const char* name, const std::string& text, bool& value) {
  value = text == "1" || text == "true" || text == "on" || text == "yes";
  if (!value && text != "0" && text != "false" && text != "off" && text != "no") {
    throw ExecutionError(cat(name, ": '", text, "' is not 0 or 1"));
  }
}

template <class Number>
void parse(const char* name, const std::string& text, Number& value) {
  if constexpr (std::numeric_limits<Number>::has_infinity) {
    if (text == "inf") {
      value = std::numeric_limits<Number>::infinity();
      return;
    }
  }
  std::istringstream in(text);
  Number parsed{};
  if (!(in >> parsed) || !in.eof() || parsed < 0) {
    throw ExecutionError(cat(name, ": '", text, "' is not a number of 0 or more"));
  }
  value = parsed;
}

/// Far more than any machine has; they are counted in 32 bits.
constexpr int64_t kMostThreads = 1 << 16;

void check_threads(const EnvField<int64_t>& threads) {
  if (threads.value <= kMostThreads) return;
  throw ExecutionError(
      cat(threads.name, ": ", threads.value, " is too many, allowed are 0 to ", kMostThreads));
}

template <class T>
void read(EnvField<T>& field) {
  for (const char* candidate : {field.name, field.alias}) {
    const char* text = *candidate != '\0' ? std::getenv(candidate) : nullptr;
    if (text == nullptr || *text == '\0') continue;
    parse(candidate, text, field.value);
    field.is_set = true;
    return;
  }
}

/// The same with what else is to be true of the field of `all`.
template <class T>
void read(Env& all, EnvField<T>& field) {
  read(field);
  if constexpr (std::is_same_v<T, int64_t>) {
    if (&field == &all.threads) check_threads(field);
  }
}

/// A path as it is from the directory in which the process is now, wherever it goes later.
std::string from_here(const std::string& path) {
  if (path.empty()) return path;
  std::error_code unknown;
  const std::filesystem::path whole = std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.string();
}

}  // namespace

const Env& env() {
  static const Env* instance = [] {
    auto result = std::make_unique<Env>();
    result->for_each([&](auto& field) { read(*result, field); });
    result->cache_dir.value = from_here(result->cache_dir.value);
    return result.release();  // what ends after static objects still asks
  }();
  return *instance;
}

std::vector<EnvRow> env_table() {
  std::vector<EnvRow> rows;
  Env defaults;
  defaults.for_each([&](auto& field) {
    rows.push_back({field.name, field.alias, cat(field.value), "", field.what});
  });
  size_t i = 0;
  const auto add = [&](const auto& field) {
    rows[i++].current = field.is_secret && field.is_set ? "(set)" : cat(field.value);
  };
  try {
    Env current = env();
    current.for_each(add);
  } catch (const ExecutionError&) {  // nothing is in force; which value is to blame says its row
    Env current;
    current.for_each([&](auto& field) {
      try {
        read(current, field);
        add(field);
      } catch (const ExecutionError& error) {
        rows[i++].current = error.what();
      }
    });
  }
  return rows;
}

}  // namespace cuop
