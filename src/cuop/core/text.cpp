#include "cuop/core/text.h"

#include <charconv>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "cuop/core/of_thread.h"

namespace cuop {
namespace {

/// Of what std::to_chars writes of the arguments.
template <class... Arguments>
void append_number(std::string& text, Arguments... arguments) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), arguments...).ptr;
  text.append(digits, end);
}

/// As a new one, but for its locale, which nobody sets.
void begin_again(std::ostringstream& out) {
  out.str({});
  out.clear();
  out.flags(std::ios_base::dec | std::ios_base::skipws);
  out.precision(6);
  out.width(0);
  out.fill(' ');
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
  // A stream takes longer to make than most parts to write. It is taken out meanwhile, as what is
  // written may have parts of its own.
  auto& kept = of_thread([] { return new std::unique_ptr<std::ostringstream>; });
  std::unique_ptr<std::ostringstream> out = std::exchange(kept, nullptr);
  if (out) {
    begin_again(*out);
  } else {
    out = std::make_unique<std::ostringstream>();
  }
  write(*out, part);
  text += out->view();
  kept = std::move(out);
}

std::string errno_text(int error) { return std::generic_category().message(error); }

}  // namespace cuop
