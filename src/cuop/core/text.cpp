#include "cuop/core/text.h"

#include <charconv>
#include <sstream>
#include <system_error>

namespace cuop {
namespace {

/// Of what std::to_chars writes of the arguments.
template <class... Arguments>
void append_number(std::string& text, Arguments... arguments) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), arguments...).ptr;
  text.append(digits, end);
}

}  // namespace

void TextPart::write_number(std::string& text, long long value) { append_number(text, value); }

void TextPart::write_number(std::string& text, unsigned long long value) {
  append_number(text, value);
}

void TextPart::write_number(std::string& text, double value) {
  constexpr int kDigits = 6;  // as a stream
  append_number(text, value, std::chars_format::general, kDigits);
}

void TextPart::write_streamed(std::string& text, const void* part,
                              void (*write)(std::ostream&, const void*)) {
  std::ostringstream out;
  write(out, part);
  text += out.view();
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace cuop
