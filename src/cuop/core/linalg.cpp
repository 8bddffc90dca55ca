#include "cuop/core/linalg.h"

#include <cctype>
#include <string>
#include <vector>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

template <class T>
T parse_choice(std::string_view who, std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string> known;
  for (const ChoiceName<T>& choice : kChoiceNames<T>) {
    if (lower == choice.name || lower == choice.letter) return choice.value;
    known.push_back(cat("'", choice.name, "'"));
  }
  throw ExecutionError(cat(who, ": '", text, "' is unknown; known are ", join(known)));
}

template Side parse_choice<Side>(std::string_view who, std::string_view text);
template Uplo parse_choice<Uplo>(std::string_view who, std::string_view text);
template Trans parse_choice<Trans>(std::string_view who, std::string_view text);
template Diag parse_choice<Diag>(std::string_view who, std::string_view text);

}  // namespace cuop
