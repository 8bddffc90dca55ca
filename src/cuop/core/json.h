// JSON (RFC 8259), written and read back.
#pragma once

#include <charconv>
#include <cmath>
#include <locale>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace cuop {

/// The text as the inside of a JSON string. Control characters are escaped; each byte that is no
/// part of UTF-8 becomes U+FFFD.
std::string json_escape(std::string_view text);

/// Writes values, and the brackets, commas and quotes around them:
/// json.object("name", "a", "sizes", sizes), or in parts
/// json.open('{').members("name", "a").key("sizes").open('[').value(1).value(2).close().close().
class JsonWriter {
 public:
  /// Numbers look as the stream is set to write them, in the C locale.
  explicit JsonWriter(std::ostream& out) : out_(out) { out_.imbue(std::locale::classic()); }

  /// An object, '{', or a list, '['.
  JsonWriter& open(char bracket);
  /// What was opened last.
  JsonWriter& close();
  /// Puts what comes next on a line of its own.
  JsonWriter& new_line();
  /// Of the value that comes next.
  JsonWriter& key(std::string_view name);
  /// A text, a truth, a number (null when it is not finite, for which JSON has no word), or a range
  /// of them.
  template <class Value>
  JsonWriter& value(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value>) {
      static_assert(std::is_same_v<Value, bool> || sizeof(Value) > 1, "is written as a character");
      const bool is_number = std::isfinite(static_cast<double>(value));
      is_number ? begin() << std::boolalpha << value : begin() << "null";
    } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      begin() << '"' << json_escape(value) << '"';
    } else {
      open('[');
      for (const auto& element : value) this->value(element);
      close();
    }
    return *this;
  }
  /// Keys and values, in turn.
  template <class Value, class... More>
  JsonWriter& members(std::string_view name, const Value& value, const More&... more) {
    key(name).value(value);
    if constexpr (sizeof...(more) > 0) members(more...);
    return *this;
  }

  /// An object of these.
  template <class... Members>
  JsonWriter& object(const Members&... all) {
    return open('{').members(all...).close();
  }

 private:
  std::ostream& begin();

  std::ostream& out_;
  std::string closing_;  // the brackets that are due, the next one last
  bool is_behind_value_ = false, is_line_due_ = false;
};

/// Reads back the members of one object that JsonWriter wrote, in their order. Anything else ends
/// it, be it white space. There is no value in it that could be deep, and none is longer than the
/// text.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  /// Takes the next member; false when it has another key or is no such value.
  template <class Value>
  bool member(std::string_view key, Value& value) {
    return take(std::exchange(before_, ",\"")) && take(key) && take("\":") && read(value);
  }

 private:
  bool take(std::string_view expected);
  bool read(std::string& value);
  template <class Number>
  requires std::is_arithmetic_v<Number>
  bool read(Number& number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return error == std::errc() && std::isfinite(static_cast<double>(number));
  }

  std::string_view rest_;
  const char* before_ = "{\"";
};

}  // namespace cuop
