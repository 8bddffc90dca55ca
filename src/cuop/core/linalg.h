// The four choices of the BLAS interface, as values.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

namespace cuop {

/// On which side of the product the structured matrix stands.
enum class Side : uint8_t { kLeft, kRight };
/// Which triangle of the structured matrix is read; the other one is never touched.
enum class Uplo : uint8_t { kLower, kUpper };
/// op(A): A, its transpose, or its conjugate transpose (the transpose for real dtypes).
enum class Trans : uint8_t { kNone, kTrans, kConjTrans };
/// kUnit takes the diagonal as ones without reading it.
enum class Diag : uint8_t { kNonUnit, kUnit };

/// One value of a choice and what users may write for it.
template <class T>
struct ChoiceName {
  T value;
  std::string_view name;
  std::string_view letter;  ///< LAPACK's
};
template <class T>
inline constexpr ChoiceName<T> kChoiceNames[1] = {};  // each choice has its own, below
template <>
inline constexpr ChoiceName<Side> kChoiceNames<Side>[] = {{Side::kLeft, "left", "l"},
                                                          {Side::kRight, "right", "r"}};
template <>
inline constexpr ChoiceName<Uplo> kChoiceNames<Uplo>[] = {{Uplo::kLower, "lower", "l"},
                                                          {Uplo::kUpper, "upper", "u"}};
template <>
inline constexpr ChoiceName<Trans> kChoiceNames<Trans>[] = {{Trans::kNone, "none", "n"},
                                                            {Trans::kTrans, "trans", "t"},
                                                            {Trans::kConjTrans, "conj_trans", "c"}};
template <>
inline constexpr ChoiceName<Diag> kChoiceNames<Diag>[] = {{Diag::kNonUnit, "non_unit", "n"},
                                                          {Diag::kUnit, "unit", "u"}};

/// The value of a name or of LAPACK's letter, in lower or upper case. ExecutionError "who: ..."
/// names what is known. For the four choices above.
template <class T>
T parse_choice(std::string_view who, std::string_view text);

/// op(A) of a product as an argument: a Trans, true for "transposed", or a name of a Trans.
class TransLike {
 public:
  TransLike(Trans value = Trans::kNone) : value_(value) {}  // NOLINT(google-explicit-constructor)
  template <std::same_as<bool> Flag>  // a template, so that text and numbers do not decay to bool
  TransLike(Flag is_transposed)       // NOLINT(google-explicit-constructor)
      : value_(is_transposed ? Trans::kTrans : Trans::kNone) {}
  template <std::convertible_to<std::string_view> Text>
  TransLike(const Text& text)  // NOLINT(google-explicit-constructor)
      : value_(parse_choice<Trans>("trans", text)) {}

  Trans value() const { return value_; }
  bool is_transposed() const { return value_ != Trans::kNone; }

 private:
  Trans value_;
};

}  // namespace cuop
