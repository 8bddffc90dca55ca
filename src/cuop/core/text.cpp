#include "cuop/core/text.h"

#include <cerrno>
#include <sstream>
#include <system_error>

namespace cuop {

void append(std::string& text, std::initializer_list<TextPart> parts) {
  std::ostringstream out;
  for (const TextPart& part : parts) part.write(out);
  text += out.view();
}

std::string errno_text() { return std::generic_category().message(errno); }

}  // namespace cuop
