// Side, Uplo, Trans and Diag: enums, and what else Python users may write for them.
#include <cctype>
#include <span>

#include "binders.h"
#include "cuop/core/error.h"
#include "cuop/core/text.h"
#include "operator_arguments.h"

namespace cuop::python {

namespace {

template <class T>
std::string names_of() {
  std::vector<std::string> names;
  for (const ChoiceName<T>& choice : kChoiceNames<T>) names.push_back(cat("'", choice.name, "'"));
  return join(names);
}

/// `integers` says what 0, 1, ... stand for; empty where integers are ambiguous.
template <class T>
T pick(const char* who, nb::handle object, std::span<const T> integers) {
  if (nb::isinstance<T>(object)) return nb::cast<T>(object);
  if (nb::isinstance<nb::str>(object)) {
    return parse_choice<T>(who, text_of(object));
  }
  Raised why;
  const std::optional<int64_t> given = integer_in(object, why);
  if (!given) {
    refuse<DTypeError>(cat(who, ": ", describe(object),
                           " is neither a name nor an integer; names are ", names_of<T>()),
                       why);
  }
  const int64_t number = *given;
  if (integers.empty()) {
    throw ExecutionError(cat(who, ": the integer ", number,
                             " has no one meaning (the operator classes differ); write ",
                             names_of<T>()));
  }
  if (number < 0 || number >= static_cast<int64_t>(integers.size())) {
    throw ExecutionError(cat(who, ": ", number, " is out of range; 0 to ", integers.size() - 1,
                             " are known, or ", names_of<T>()));
  }
  return integers[static_cast<size_t>(number)];
}

template <class T>
T pick_in_order(const char* who, nb::handle object) {
  std::vector<T> integers;
  for (const ChoiceName<T>& choice : kChoiceNames<T>) integers.push_back(choice.value);
  return pick<T>(who, object, integers);
}

/// The members are the names in capitals.
template <class T>
void bind_enum(Module& m, const char* name, const char* what) {
  nb::enum_<T> bound(m, name, what);
  for (const ChoiceName<T>& choice : kChoiceNames<T>) {
    std::string member(choice.name);
    for (char& c : member) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    bound.value(member.c_str(), choice.value);
  }
}

}  // namespace

Side convert_argument(nb::handle object, TypeTag<Side>) {
  return pick_in_order<Side>("side", object);
}
Trans convert_argument(nb::handle object, TypeTag<Trans>) {
  const nb::handle flag = plain_bool(object);
  if (nb::isinstance<nb::bool_>(flag)) return TransLike(nb::cast<bool>(flag)).value();
  return pick_in_order<Trans>("trans", object);
}
Diag convert_argument(nb::handle object, TypeTag<Diag>) {
  return pick_in_order<Diag>("diag", object);
}
Uplo convert_argument(nb::handle object, TypeTag<Uplo>) { return pick<Uplo>("uplo", object, {}); }
Uplo uplo_argument(nb::handle object, const Uplo (&meaning)[2], nb::handle type) {
  const std::string who = cat(name_of_class(type), ": uplo");
  return pick<Uplo>(who.c_str(), object, meaning);
}

void bind_linalg_types(Module& m) {
  bind_enum<Side>(m, "Side",
                  "On which side of the product the structured matrix stands: 'left' (0) or "
                  "'right' (1).");
  bind_enum<Uplo>(m, "Uplo",
                  "Which triangle of the structured matrix is read: 'lower' or 'upper'.");
  bind_enum<Trans>(m, "Trans",
                   "op(A): 'none' (0), 'trans' (1) or 'conj_trans' (2; as 'trans' when real).");
  bind_enum<Diag>(m, "Diag",
                  "'unit' (1) takes the diagonal as ones without reading it; 'non_unit' (0).");
}

}  // namespace cuop::python
