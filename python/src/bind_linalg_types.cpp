// Side, Uplo, Trans and Diag: enums, and what else Python users may write for them.
#include <span>

#include "binders.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "linalg_types.h"

namespace cuop::python {

namespace {

template <class T>
struct Choice {
  T value;
  const char* text;    ///< what users may write
  const char* letter;  ///< LAPACK's letter
  const char* member;  ///< of the enum
};

constexpr Choice<Side> kSides[] = {{Side::kLeft, "left", "l", "LEFT"},
                                   {Side::kRight, "right", "r", "RIGHT"}};
constexpr Choice<Uplo> kUplos[] = {{Uplo::kLower, "lower", "l", "LOWER"},
                                   {Uplo::kUpper, "upper", "u", "UPPER"}};
constexpr Choice<Trans> kTranses[] = {{Trans::kNone, "none", "n", "NONE"},
                                      {Trans::kTrans, "trans", "t", "TRANS"},
                                      {Trans::kConjTrans, "conj_trans", "c", "CONJ_TRANS"}};
constexpr Choice<Diag> kDiags[] = {{Diag::kNonUnit, "non_unit", "n", "NON_UNIT"},
                                   {Diag::kUnit, "unit", "u", "UNIT"}};

template <class T>
std::string names_of(std::span<const Choice<T>> choices) {
  std::vector<std::string> names;
  for (const Choice<T>& choice : choices) names.push_back(cat("'", choice.text, "'"));
  return join(names);
}

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// `integers` says what 0, 1, ... stand for; empty where integers are ambiguous.
template <class T>
T pick(const char* who, nb::handle object, std::span<const Choice<T>> choices,
       std::span<const T> integers) {
  if (nb::isinstance<T>(object)) return nb::cast<T>(object);
  if (nb::isinstance<nb::str>(object)) {
    const std::string text = lower_case(nb::cast<std::string>(object));
    for (const Choice<T>& choice : choices) {
      if (text == choice.text || text == choice.letter) return choice.value;
    }
    throw ExecutionError(cat(who, ": '", text, "' is unknown; known are ", names_of(choices)));
  }
  int64_t number = 0;
  if (!nb::try_cast<int64_t>(object, number)) {
    throw DTypeError(cat(who, ": ", nb::cast<std::string>(nb::repr(object)),
                         " is neither a name nor an integer; names are ", names_of(choices)));
  }
  if (integers.empty()) {
    throw ExecutionError(cat(who, ": the integer ", number,
                             " has no one meaning (the operator classes differ); write ",
                             names_of(choices)));
  }
  if (number < 0 || number >= static_cast<int64_t>(integers.size())) {
    throw ExecutionError(cat(who, ": ", number, " is out of range; 0 to ", integers.size() - 1,
                             " are known, or ", names_of(choices)));
  }
  return integers[static_cast<size_t>(number)];
}

template <class T>
T pick_in_order(const char* who, nb::handle object, std::span<const Choice<T>> choices) {
  std::vector<T> integers;
  for (const Choice<T>& choice : choices) integers.push_back(choice.value);
  return pick<T>(who, object, choices, integers);
}

template <class T>
void bind_enum(nb::module_& m, const char* name, std::span<const Choice<T>> choices,
               const char* what) {
  nb::enum_<T> bound(m, name, what);
  for (const Choice<T>& choice : choices) bound.value(choice.member, choice.value);
}

}  // namespace

Side convert_argument(nb::handle object, TypeTag<Side>) {
  return pick_in_order<Side>("side", object, kSides);
}
Trans convert_argument(nb::handle object, TypeTag<Trans>) {
  return pick_in_order<Trans>("trans", object, kTranses);
}
Diag convert_argument(nb::handle object, TypeTag<Diag>) {
  return pick_in_order<Diag>("diag", object, kDiags);
}
Uplo convert_argument(nb::handle object, TypeTag<Uplo>) {
  return pick<Uplo>("uplo", object, kUplos, {});
}
Uplo uplo_argument(nb::handle object, const Uplo (&meaning)[2]) {
  return pick<Uplo>("uplo", object, kUplos, meaning);
}

void bind_linalg_types(nb::module_& m) {
  bind_enum<Side>(m, "Side", kSides,
                  "On which side of the product the structured matrix stands: 'left' (0) or "
                  "'right' (1).");
  bind_enum<Uplo>(m, "Uplo", kUplos,
                  "Which triangle of the structured matrix is read: 'lower' or 'upper'.");
  bind_enum<Trans>(m, "Trans", kTranses,
                   "op(A): 'none' (0), 'trans' (1) or 'conj_trans' (2; as 'trans' when real).");
  bind_enum<Diag>(m, "Diag", kDiags,
                  "'unit' (1) takes the diagonal as ones without reading it; 'non_unit' (0).");
}

}  // namespace cuop::python
