// Building messages: cat("axis ", 3, " of ", shape).
#pragma once

#include <cerrno>
#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>

namespace cuop {

/// Something streamable without its type: all calls of cat() share the code that writes a type.
/// Text and numbers, most parts of most messages, need no stream.
class TextPart {
 public:
  template <class Part>
  explicit TextPart(const Part& part) : part_(&part), write_(&write_value<Part>) {}
  template <size_t kSize>
  explicit TextPart(const char (&part)[kSize]) : part_(part), write_(&write_characters) {}

  void write(std::string& text) const { write_(text, part_); }

 private:
  template <class Part>
  static constexpr bool is_whole_number =
      std::is_integral_v<Part> && !std::is_same_v<Part, bool> && sizeof(Part) > 1;

  template <class Part>
  static void write_value(std::string& text, const void* part) {
    const Part& value = *static_cast<const Part*>(part);
    if constexpr (std::is_same_v<std::decay_t<Part>, const char*> ||
                  std::is_same_v<std::decay_t<Part>, char*>) {
      if (value != nullptr) text += value;
    } else if constexpr (std::is_same_v<Part, char>) {
      text += value;
    } else if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
      text += std::string_view(value);
    } else if constexpr (is_whole_number<Part> && std::is_signed_v<Part>) {
      write_number(text, static_cast<long long>(value));
    } else if constexpr (is_whole_number<Part>) {
      write_number(text, static_cast<unsigned long long>(value));
    } else if constexpr (std::is_floating_point_v<Part>) {
      write_number(text, static_cast<double>(value));
    } else {
      write_streamed(text, part, [](std::ostream& out, const void* each) {
        out << *static_cast<const Part*>(each);
      });
    }
  }
  static void write_characters(std::string& text, const void* part) {
    text += static_cast<const char*>(part);
  }
  static void write_number(std::string& text, long long value);
  static void write_number(std::string& text, unsigned long long value);
  static void write_number(std::string& text, double value);
  static void write_streamed(std::string& text, const void* part,
                             void (*write)(std::ostream&, const void*));

  const void* part_;
  void (*write_)(std::string&, const void*);
};

/// Writes the parts one after the other behind what `text` holds.
inline void append(std::string& text, std::initializer_list<TextPart> parts) {
  for (const TextPart& part : parts) part.write(text);
}

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

/// Why a system call failed, in words: by default this thread's last one.
std::string errno_text(int error = errno);

}  // namespace cuop
