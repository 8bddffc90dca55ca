#include "cuop/core/json.h"

#include <algorithm>

namespace cuop {

namespace {

/// The bytes of the UTF-8 character that the text begins with; 0 when it begins with none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto count = static_cast<size_t>(std::countl_one(byte(0)));
  if (count == 0) return 1;
  if (count == 1 || count > 4 || count > text.size()) return 0;
  char32_t code = byte(0) & (0x7fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if (std::countl_one(byte(i)) != 1) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // what needs so many
  const bool is_half = code >= 0xd800 && code <= 0xdfff;       // of a pair in UTF-16
  return code < kLeast[count] || code > 0x10ffff || is_half ? 0 : count;
}

}  // namespace

std::string json_escape(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const char c = text[0];
    const size_t count = character_bytes(text);
    if (count == 1 && c < 0x20) {
      result.append(c < 0x10 ? "\\u000" : "\\u001") += "0123456789abcdef"[c % 16];
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += count == 0 ? "\xef\xbf\xbd" : text.substr(0, count);  // U+FFFD
    }
    text.remove_prefix(std::max<size_t>(count, 1));
  }
  return result;
}

JsonWriter& JsonWriter::open(char bracket) {
  begin() << bracket;
  closing_ += bracket == '{' ? '}' : ']';
  is_behind_value_ = false;
  return *this;
}

JsonWriter& JsonWriter::close() {
  is_behind_value_ = false;
  begin() << closing_.back();
  closing_.pop_back();
  return *this;
}

JsonWriter& JsonWriter::new_line() {
  is_line_due_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  value(name);
  out_ << ':';
  is_behind_value_ = false;
  return *this;
}

std::ostream& JsonWriter::begin() {
  if (std::exchange(is_behind_value_, true)) out_ << ',';
  if (std::exchange(is_line_due_, false)) out_ << '\n';
  return out_;
}

bool JsonReader::take(std::string_view expected) {
  if (!rest_.starts_with(expected)) return false;
  rest_.remove_prefix(expected.size());
  return true;
}

bool JsonReader::read(std::string& value) {
  if (!take("\"")) return false;
  std::string_view inside = rest_;
  for (value.clear(); !rest_.empty() && rest_[0] != '"';) {
    const size_t count = rest_.starts_with("\\u00") ? 6 : rest_[0] == '\\' ? 2 : 1;
    if (count > rest_.size()) return false;
    int code = rest_[count - 1];
    if (count == 6) std::from_chars(rest_.data() + 4, rest_.data() + 6, code, 16);
    value += static_cast<char>(code);
    rest_.remove_prefix(count);
  }
  inside.remove_suffix(rest_.size());
  // So nothing is taken that would have been written otherwise: bytes that are no UTF-8, control
  // characters, escapes of what needs none.
  return take("\"") && json_escape(value) == inside;
}

}  // namespace cuop
