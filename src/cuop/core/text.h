// Building messages: cat("axis ", 3, " of ", shape).
#pragma once

#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>

namespace cuop {

/// Something streamable without its type: all calls of cat() share the code that writes a type.
class TextPart {
 public:
  template <class Part>
  explicit TextPart(const Part& part) : part_(&part), write_(&write_value<Part>) {}
  template <size_t kSize>
  explicit TextPart(const char (&part)[kSize]) : part_(part), write_(&write_characters) {}

  void write(std::ostream& out) const { write_(out, part_); }

 private:
  template <class Part>
  static void write_value(std::ostream& out, const void* part) {
    out << *static_cast<const Part*>(part);
  }
  static void write_characters(std::ostream& out, const void* part) {
    out << static_cast<const char*>(part);
  }

  const void* part_;
  void (*write_)(std::ostream&, const void*);
};

/// Writes the parts one after the other behind what `text` holds.
void append(std::string& text, std::initializer_list<TextPart> parts);

/// Everything streamable, one after the other, as one string.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  append(text, {TextPart(parts)...});
  return text;
}

/// "a, b, c" from any range of streamable elements.
template <class Range>
std::string join(const Range& range, const char* separator = ", ") {
  std::string text;
  const char* between = "";
  for (const auto& element : range) {
    append(text, {TextPart(between), TextPart(element)});
    between = separator;
  }
  return text;
}

/// Why the last system call of this thread failed, in words.
std::string errno_text();

}  // namespace cuop
