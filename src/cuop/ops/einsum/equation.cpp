#include "cuop/ops/einsum/equation.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "cuop/core/error.h"
#include "cuop/core/text.h"

namespace cuop {

namespace {

constexpr const char* kEinsum = "einsum: ";
using Letter = char32_t;
constexpr Letter kFirstBeyondAscii = 0xC0;

/// A term as written: the letters before and behind "...".
struct Term {
  std::vector<Letter> letters;
  std::optional<size_t> dots;  ///< how many letters stand before them
};

std::string written(Letter letter) {
  if (letter < 0x80) return {static_cast<char>(letter)};
  std::string bytes;
  const int more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
  bytes += static_cast<char>(kLead[more] | (letter >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    bytes += static_cast<char>(0x80 | ((letter >> (6 * i)) & 0x3F));
  }
  return bytes;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw ExecutionError(cat(kEinsum, why, " in \"", text, "\""));
}

/// Reads an equation from left to right.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::vector<Term> terms() {
    std::vector<Term> all{term()};
    while (take(",")) all.push_back(term());
    return all;
  }
  std::optional<Term> output() {
    if (!take("->")) return std::nullopt;
    return term();
  }
  void finish() {
    if (at_ == text_.size()) return;
    if (take("->")) refuse(text_, "a second \"->\"");
    if (take(",")) refuse(text_, "a comma behind \"->\"");
    if (text_[at_] == '.') {
      refuse(text_,
             "a \".\" that is not part of an ellipsis \"...\", of which a term may have one,");
    }
    if (text_[at_] == '-' || text_[at_] == '>') {
      refuse(text_, cat("a \"", text_[at_], "\" that is not part of \"->\""));
    }
    const std::string_view rest = text_.substr(at_);
    refuse(text_, cat("the character \"", rest.substr(0, character_length(rest)),
                      "\", which is no index (a-z, A-Z and characters from U+00C0 on),"));
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    skip_spaces();
    return true;
  }
  static size_t character_length(std::string_view rest) {
    const auto first = static_cast<unsigned char>(rest[0]);
    const size_t length = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    return std::min(length, rest.size());
  }
  std::optional<Letter> letter() {
    skip_spaces();
    if (at_ == text_.size()) return std::nullopt;
    const std::string_view rest = text_.substr(at_);
    const auto first = static_cast<unsigned char>(rest[0]);
    if (first < 0x80) {
      const bool is_letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
      if (!is_letter) return std::nullopt;
      ++at_;
      return first;
    }
    const size_t length = character_length(rest);
    if (length < 2) return std::nullopt;
    Letter code = first & (0xFFU >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
      code = (code << 6) | (static_cast<unsigned char>(rest[i]) & 0x3FU);
    }
    if (code < kFirstBeyondAscii || written(code) != rest.substr(0, length)) return std::nullopt;
    at_ += length;
    return code;
  }
  Term term() {
    Term result;
    while (true) {
      if (!result.dots && take("...")) {
        result.dots = result.letters.size();
      } else if (const auto next = letter()) {
        result.letters.push_back(*next);
      } else {
        return result;
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

/// Gives letters, and dimensions of "...", their numbers.
class Naming {
 public:
  explicit Naming(Equation& equation) : equation_(equation) {}

  int of_letter(Letter letter) { return number(letters_, letter, written(letter)); }
  std::optional<int> known(Letter letter) const {
    const auto found = letters_.find(letter);
    return found == letters_.end() ? std::nullopt : std::optional(found->second);
  }
  /// `from_back`: 0 is the last dimension of "...".
  int of_dots(int from_back) {
    return number(dots_, from_back, cat("dimension ", -1 - from_back, " of ..."));
  }

 private:
  template <class Key>
  int number(std::map<Key, int>& known, Key key, const std::string& name) {
    const auto [entry, is_new] = known.try_emplace(key, static_cast<int>(equation_.names.size()));
    if (is_new) {
      if (equation_.names.size() == kMostEinsumIndices) {
        throw ExecutionError(
            cat(kEinsum, "more than ", kMostEinsumIndices, " indices in \"", equation_.text, "\""));
      }
      equation_.names.push_back(name);
    }
    return entry->second;
  }

  Equation& equation_;
  std::map<Letter, int> letters_;
  std::map<int, int> dots_;
};

/// The indices of an operand's dimensions.
Indices operand_indices(const Term& term, size_t operand, int ndim, Naming& naming,
                        std::string_view text) {
  const int letters = static_cast<int>(term.letters.size());
  if (term.dots ? letters > ndim : letters != ndim) {
    throw ShapeError(cat(kEinsum, "operand ", operand, " has ", ndim, " dimensions, its term in \"",
                         text, "\" has ", letters, letters == 1 ? " index" : " indices",
                         term.dots ? " beside ..." : "",
                         letters < ndim ? "; ... stands for dimensions without an index" : ""));
  }
  const int dots = ndim - letters;
  Indices indices;
  for (size_t i = 0; i <= term.letters.size(); ++i) {
    if (term.dots == i) {
      for (int d = dots - 1; d >= 0; --d) indices.push_back(naming.of_dots(d));
    }
    if (i < term.letters.size()) indices.push_back(naming.of_letter(term.letters[i]));
  }
  return indices;
}

/// What "..." stands for and the letters that stand once.
Term implicit_output(const std::vector<Term>& terms) {
  std::map<Letter, int> counts;
  for (const Term& term : terms) {
    for (const Letter letter : term.letters) ++counts[letter];
  }
  Term output;
  output.dots = 0;
  for (const auto& [letter, count] : counts) {
    if (count == 1) output.letters.push_back(letter);
  }
  return output;
}

Indices output_indices(const Term& term, int dots, Naming& naming, std::string_view text) {
  if (dots > 0 && !term.dots) {
    refuse(text, "no ... behind \"->\", though that of the operands stands for dimensions,");
  }
  Indices indices;
  for (size_t i = 0; i <= term.letters.size(); ++i) {
    if (term.dots == i) {
      for (int d = dots - 1; d >= 0; --d) indices.push_back(naming.of_dots(d));
    }
    if (i == term.letters.size()) break;
    const auto index = naming.known(term.letters[i]);
    const std::string name = written(term.letters[i]);
    if (!index) refuse(text, cat("index ", name, " of the result, which no operand has,"));
    if (has_index(indices, *index)) refuse(text, cat("index ", name, " twice in the result"));
    indices.push_back(*index);
  }
  if (indices.size() > static_cast<size_t>(kMaxDims)) {
    throw ShapeError(cat(kEinsum, "the result of \"", text, "\" has ", indices.size(),
                         " dimensions; tensors have up to ", kMaxDims));
  }
  return indices;
}

}  // namespace

std::string index_letter(int number) {
  constexpr int kPlain = 26;
  if (number < kPlain) return written(U'A' + static_cast<Letter>(number));
  if (number < 2 * kPlain) return written(U'a' + static_cast<Letter>(number - kPlain));
  return written(kFirstBeyondAscii + static_cast<Letter>(number - 2 * kPlain));
}

std::string term_of(const Equation& equation, const Indices& indices) {
  std::string text;
  for (const int index : indices) {
    const std::string& name = equation.names[static_cast<size_t>(index)];
    text.append(name.find(' ') == std::string::npos ? name : cat('<', index, '>'));
  }
  return text;
}

int operand_count(std::string_view text) {
  const std::string_view terms = text.substr(0, text.find("->"));
  return static_cast<int>(std::count(terms.begin(), terms.end(), ',')) + 1;
}

Equation parse_equation(std::string_view text, std::span<const int> ndims) {
  if (ndims.empty() || ndims.size() > kMostEinsumOperands) {
    throw ExecutionError(
        cat(kEinsum, ndims.size(), " operands were given; allowed are 1 to ", kMostEinsumOperands));
  }
  Reader reader(text);
  const std::vector<Term> terms = reader.terms();
  const std::optional<Term> output = reader.output();
  reader.finish();
  if (terms.size() != ndims.size()) {
    throw ExecutionError(cat(kEinsum, "\"", text, "\" has ", terms.size(),
                             terms.size() == 1 ? " term, " : " terms, ", ndims.size(),
                             ndims.size() == 1 ? " operand was given" : " operands were given"));
  }
  Equation equation;
  equation.text = text;
  Naming naming(equation);
  int dots = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    equation.operands.push_back(operand_indices(terms[i], i, ndims[i], naming, text));
    if (terms[i].dots) dots = std::max(dots, ndims[i] - static_cast<int>(terms[i].letters.size()));
  }
  equation.output = output_indices(output ? *output : implicit_output(terms), dots, naming, text);
  return equation;
}

namespace {

/// The size of each index; who had it first is named where another disagrees.
std::vector<int64_t> index_sizes(const Equation& equation, std::span<const Shape> shapes) {
  std::vector<int64_t> sizes(equation.names.size(), 1);
  std::vector<size_t> given_by(sizes.size());
  for (size_t operand = 0; operand < shapes.size(); ++operand) {
    const Indices& indices = equation.operands[operand];
    std::map<int, int64_t> here;
    for (size_t dim = 0; dim < indices.size(); ++dim) {
      const auto index = static_cast<size_t>(indices[dim]);
      const int64_t size = shapes[operand][static_cast<int>(dim)];
      const std::string name =
          cat(kEinsum, "index ", equation.names[index], " of \"", equation.text, "\" has size ");
      const auto [first, is_first] = here.try_emplace(indices[dim], size);
      if (!is_first && first->second != size) {
        throw ShapeError(cat(name, first->second, " and size ", size, " in operand ", operand,
                             " of shape ", shapes[operand], "; a diagonal needs equal sizes"));
      }
      if (size == 1) continue;
      if (sizes[index] != 1 && sizes[index] != size) {
        const size_t other = given_by[index];
        throw ShapeError(cat(name, sizes[index], " in operand ", other, " of shape ", shapes[other],
                             " and size ", size, " in operand ", operand, " of shape ",
                             shapes[operand], "; it has one size in all operands, or 1"));
      }
      sizes[index] = size;
      given_by[index] = operand;
    }
  }
  return sizes;
}

}  // namespace

EinsumProblem einsum_problem(std::string_view text, std::span<const Shape> shapes) {
  std::vector<int> ndims;
  for (const Shape& shape : shapes) ndims.push_back(shape.ndim());
  EinsumProblem problem{parse_equation(text, ndims), {shapes.begin(), shapes.end()}, {}, {}, {}};
  const Equation& equation = problem.equation;
  problem.sizes = index_sizes(equation, shapes);
  Contraction& contraction = problem.contraction;
  contraction.sizes = problem.sizes;
  for (size_t operand = 0; operand < shapes.size(); ++operand) {
    Indices indices;
    for (size_t dim = 0; dim < equation.operands[operand].size(); ++dim) {
      const int index = equation.operands[operand][dim];
      const bool is_stretched = shapes[operand][static_cast<int>(dim)] == 1;
      if (!is_stretched && !has_index(indices, index)) indices.push_back(index);
    }
    contraction.inputs.push_back(std::move(indices));
  }
  for (const int index : equation.output) {
    const int64_t size = problem.sizes[static_cast<size_t>(index)];
    problem.shape.push_back(size);
    if (size != 1) contraction.output.push_back(index);
  }
  element_count(problem.shape);
  return problem;
}

}  // namespace cuop
